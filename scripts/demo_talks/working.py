"""Conversations on professional topics."""

from __future__ import annotations

from demo_talks.cards import bars, card, sign
from demo_talks.talk import Asked, Talk, fact, say

HISTORY = Talk(
    name="history_mill",
    topic="History",
    twin=True,
    turns=(
        say("I write about an old mill in our town."),
        fact(
            "It was built in 1782 by Anton Weber.",
            "This plate is above its door.",
            card("The mill", "Built 1782", "by Anton Weber"),
        ),
        say("How did water mills work at that time?"),
        fact(
            "It burned down in 1841 and was built again in 1846.",
            "The plate on its side tells more.",
            card("Rebuilt", "Fire in 1841", "Again in 1846", colour="orange"),
        ),
        say("Today a bakery is in it."),
        say("The archive writes that the founder was Anton Weber's father, Josef Weber."),
        say("Which sources would you look for next?"),
    ),
    questions=(
        Asked(
            ability="IU",
            question="Who built the mill, as far as we know now?",
            answer="Josef Weber",
            at=(5,),
            updates=1,
        ),
        Asked(ability="CR", question="How many years was the mill in ruins after the fire?", answer="5", at=(3,)),
        Asked(
            ability="MR",
            question="When did the mill burn down?",
            answer="B",
            options=("in 1782", "in 1841", "in 1846", "in 1864"),
            at=(3,),
        ),
        Asked(
            ability="IE",
            question="Which years of the mill's history did I tell you?",
            answer="1782, 1841, 1846",
            items=("1782", "1841", "1846"),
            at=(1, 3),
        ),
        Asked(
            ability="AR",
            question="In which year did the bakery open?",
            answer="The conversation does not say when the bakery opened.",
        ),
    ),
)

ECONOMY = Talk(
    name="economy_cafe",
    topic="Economy",
    turns=(
        say("I run a small cafe and want to understand my numbers."),
        say("These are my sales of the first week, in hundreds.", bars("Sales week 1", {"Mon": 4, "Tue": 6, "Wed": 5})),
        say("The rent is 1100 euros a month."),
        say("What is a break-even point?"),
        say("I employ two people, Karl and Yasmin."),
        say("The second week went better.", bars("Sales week 2", {"Mon": 5, "Tue": 7, "Wed": 9}, colour="orange")),
        say("A cup of coffee costs 3 euros at my place."),
        say("The landlord raised the rent to 1250 euros."),
        say("How do others set their prices?"),
        say("Karl left. Now only Yasmin works here."),
        say("I made coffee dearer: 3 euros 40."),
        say("My supplier is called Bruno, his beans are from Peru."),
        say("I hired a student, Felix, for the weekends."),
        say("The rent changes again: from March it is 1180 euros."),
        say("And this is the third week.", bars("Sales week 3", {"Mon": 6, "Tue": 3, "Wed": 8}, colour="grey")),
        say("Is a loyalty card worth it?"),
    ),
    questions=(
        Asked(ability="IU", question="How high is my rent from March on?", answer="1180 euros", at=(13,), updates=2),
        Asked(
            ability="IU",
            question="What does a cup of coffee cost at my place?",
            answer="3 euros 40",
            at=(10,),
            updates=1,
        ),
        Asked(
            ability="IE",
            question="Who works for me now?",
            answer="Yasmin, Felix",
            items=("Yasmin", "Felix"),
            at=(9, 12),
        ),
        Asked(
            ability="IM",
            question="Which picture shows the week with the best Wednesday, and what were its sales on that day?",
            answer="9 hundred, picture 2",
            images=(2,),
            at=(1, 5, 14),
        ),
        Asked(
            ability="CR",
            question="On Tuesday, was the third week better or worse than the first?",
            answer="worse",
            at=(1, 14),
        ),
        Asked(ability="MR", question="Where do the beans of my supplier come from?", answer="Peru", at=(11,)),
        Asked(
            ability="MR",
            question="Who left the cafe?",
            answer="A",
            options=("Karl", "Yasmin", "Felix", "Bruno"),
            at=(9,),
        ),
        Asked(ability="AR", question="What do I pay Yasmin a month?", answer="The user did not say what Yasmin earns."),
    ),
)

BIOLOGY = Talk(
    name="biology_pond",
    topic="Biology",
    turns=(
        say("My class counts animals in a pond. We found 12 newts and 5 dragonflies."),
        say("This sign stands at the water.", sign("square", "blue", "POND 3")),
        say("What do newts eat?"),
        say("One pupil counted twice: there were 10 newts."),
    ),
    questions=(
        Asked(ability="IU", question="How many newts did we find?", answer="10", at=(3,), updates=1),
        Asked(
            ability="IE",
            question="Which animals did we count?",
            answer="newts, dragonflies",
            items=("newts", "dragonflies"),
            at=(0,),
        ),
        Asked(
            ability="IM",
            question="What is the number of our pond, and which picture says so?",
            answer="3, picture 1",
            images=(1,),
            at=(1,),
        ),
        Asked(ability="CR", question="There were more dragonflies than newts.", answer="false", at=(0, 3), truth=True),
        Asked(ability="AR", question="How deep is the pond?", answer="Its depth was never mentioned."),
    ),
)

COMPUTER = Talk(
    name="computer_network",
    topic="Computer",
    turns=(
        say("I look after the computers of a school with three floors."),
        say("The server is called Atlas."),
        say("This label is on the rack of the ground floor.", card("Rack A", "Port 1: office", "Port 2: library")),
        say("There are 40 laptops for the pupils."),
        say("How often should I make a backup?"),
        say("The wireless network is called Owlnet."),
        say(
            "And this is the rack of the first floor.",
            card("Rack B", "Port 1: physics", "Port 2: art", colour="orange"),
        ),
        say("Backups run every Sunday night."),
        say("Our old server was called Titan; it is in the cellar and switched off."),
        say("We got 12 more laptops as a gift."),
        say("What is the difference between a hub and a switch?"),
        say("The third rack is on the second floor.", card("Rack C", "Port 1: music", "Port 2: lab", colour="grey")),
        say("My colleague Ida has the key of the server room."),
        say("From now on backups run every night, not only on Sundays."),
        say("Somebody spilled tea: two laptops are broken for good."),
        say("The network was renamed to Ravenet after the festival."),
        say("Ida is on leave, so Sven has the key now."),
        say("Which tool shows me a slow cable?"),
    ),
    questions=(
        Asked(ability="IU", question="What is the wireless network called?", answer="Ravenet", at=(15,), updates=1),
        Asked(ability="IU", question="Who has the key of the server room?", answer="Sven", at=(16,), updates=1),
        Asked(ability="IU", question="How often do backups run?", answer="every night", at=(13,), updates=1),
        Asked(ability="CR", question="How many laptops work?", answer="50", at=(3, 9, 14)),
        Asked(
            ability="IM",
            question="Which picture is the rack with the lab, and at which port is it?",
            answer="picture 3, port 2",
            images=(3,),
            at=(11,),
        ),
        Asked(
            ability="IM",
            question="Which picture belongs to the ground floor, and what is at its port 2?",
            answer="picture 1, the library",
            images=(1,),
            at=(2,),
        ),
        Asked(
            ability="IE",
            question="Which rooms are connected to the racks?",
            answer="office, library, physics, art, music, lab",
            items=("office", "library", "physics", "art", "music", "lab"),
            at=(2, 6, 11),
        ),
        Asked(ability="MR", question="What is our server called?", answer="Atlas", at=(1,)),
        Asked(ability="MR", question="Titan is the server in use.", answer="false", at=(8,), truth=True),
        Asked(ability="AR", question="Which virus did we have last year?", answer="A virus was never mentioned."),
    ),
)

JOB = Talk(
    name="job_interview",
    topic="Job Career",
    turns=(
        say("I have an interview at a firm called Norvik on Tuesday."),
        say("The job is in their design team."),
        say("I have worked as a carpenter for six years."),
        say("This is the badge they sent me.", sign("pentagon", "blue", "VISITOR")),
        say("What should I ask them at the end?"),
        say("They moved the interview to Friday."),
        say("My second choice is a firm called Holm, but they never answered."),
    ),
    questions=(
        Asked(ability="IU", question="On which day is my interview?", answer="Friday", at=(5,), updates=1),
        Asked(ability="MR", question="How long have I worked as a carpenter?", answer="six years", at=(2,)),
        Asked(
            ability="CR",
            question="At which firm can I still hope for a job, and in which team?",
            answer="Norvik, in the design team",
            at=(0, 1, 6),
        ),
        Asked(
            ability="IM",
            question="Which picture is the badge, and what does it say?",
            answer="picture 1, VISITOR",
            images=(1,),
            at=(3,),
        ),
        Asked(
            ability="IE", question="Which firms did I name?", answer="Norvik, Holm", items=("Norvik", "Holm"), at=(0, 6)
        ),
        Asked(ability="AR", question="What salary does Norvik offer me?", answer="No salary was mentioned."),
    ),
)

TALKS = (HISTORY, ECONOMY, BIOLOGY, COMPUTER, JOB)
