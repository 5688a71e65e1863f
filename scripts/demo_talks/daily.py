"""Conversations on everyday topics."""

from __future__ import annotations

from demo_talks.cards import bars, card, sign
from demo_talks.talk import Asked, Talk, fact, say

TRAVEL = Talk(
    name="travel_lisbon",
    topic="Travel",
    turns=(
        say("I am planning a trip to Lisbon with my sister Ines, probably in May."),
        say("We have put aside 900 euros for it. Any advice on how to split that?"),
        say(
            "My friend Paul went to Porto last year and paid 1500 euros, which is too much for us.",
            card("Porto", "old town", "7 days", colour="grey"),
        ),
        say("This is our booking for the flight.", card("Boarding pass", "Flight TP 539", "Seat 14 C", "Gate 7")),
        say("Ines gets seasick, so please no boat tours."),
        say("Good news: I got a bonus, so we can spend 1200 euros."),
        say("We found a room in the hotel Aurora near the river."),
        say("I would love to hear some fado music one evening. What is it about?"),
        say(
            "The hotel Aurora cancelled on us. We now stay at the Casa Verde.",
            card("Casa Verde", "Room 21", "Breakfast 8 to 10", colour="orange"),
        ),
        say("Is the tram a good way to see the old town?"),
        say("One more change: Ines has an exam, so we travel in June and not in May."),
        say("Can you suggest a small restaurant with fish dishes?"),
    ),
    questions=(
        Asked(
            ability="IE",
            question="List everything that the boarding pass says.",
            answer="flight TP 539, seat 14 C, gate 7",
            items=("flight TP 539", "seat 14 C", "gate 7"),
            at=(3,),
        ),
        Asked(ability="IU", question="How much can we spend on the trip now?", answer="1200 euros", at=(5,), updates=1),
        Asked(ability="IU", question="Where do we stay?", answer="Casa Verde", at=(8,), updates=1),
        Asked(ability="IU", question="In which month do we travel?", answer="June", at=(10,), updates=1),
        Asked(ability="MR", question="What is my sister's name?", answer="Ines", at=(0,)),
        Asked(
            ability="CR",
            question="Would a boat trip on the river be a good surprise for my sister? Why?",
            answer="no, Ines gets seasick",
            at=(0, 4),
        ),
        Asked(
            ability="IM",
            question="Which picture is about the place where we sleep, and which room is ours?",
            answer="picture 3, room 21",
            images=(3,),
            at=(8,),
        ),
        Asked(
            ability="AR",
            question="What did I pay for our two flights?",
            answer="The conversation does not say what the flights cost.",
        ),
    ),
)

MUSIC = Talk(
    name="music_choir",
    topic="Music",
    turns=(
        say("I joined a choir last winter. We sing on Tuesdays."),
        say("I am an alto, and my neighbour Greta sings soprano."),
        say("This is the poster of our concert.", sign("circle", "orange", "CHOIR")),
        say("We practise three pieces: Locus iste, Ubi caritas and a song by Brahms."),
        say("Our conductor fell ill, so the rehearsals are on Thursdays from now on."),
        say("How can I learn to hold a long note?"),
        say("A colleague told me about a jazz club, but I have never been there."),
        say("The song by Brahms was dropped; we sing one by Reger instead."),
    ),
    questions=(
        Asked(
            ability="IE",
            question="Which pieces do we sing, after all that I told you?",
            answer="Locus iste, Ubi caritas, a song by Reger",
            items=("Locus iste", "Ubi caritas", "a song by Reger"),
            at=(3, 7),
        ),
        Asked(ability="IU", question="On which day are the rehearsals?", answer="Thursday", at=(4,), updates=1),
        Asked(ability="MR", question="Which voice do I sing?", answer="alto", at=(1,)),
        Asked(ability="CR", question="Greta is a soprano.", answer="true", at=(1,), truth=True),
        Asked(
            ability="IM",
            question="What does the poster of the concert show?",
            answer="picture 1, an orange circle with the word CHOIR",
            images=(1,),
            at=(2,),
        ),
        Asked(
            ability="AR",
            question="Which band played when I went to the jazz club?",
            answer="The user has never been to the jazz club.",
        ),
    ),
)

FILM = Talk(
    name="film_night",
    topic="Film",
    turns=(
        say("We have a film night on Friday, and I choose the films."),
        say("Yesterday I watched The Lighthouse Keeper again. It is still my favourite film."),
        say("My flatmate Omar only likes comedies, and Lena cannot stand horror."),
        say("I drew a ticket for everybody.", card("Film night", "Friday 20:00", "Bring snacks", colour="orange")),
        say("I saw Paper Boats today. It is wonderful: that is my favourite now."),
        say("How long should a break between two films be?"),
    ),
    questions=(
        Asked(ability="IU", question="Which film is my favourite right now?", answer="Paper Boats", at=(4,), updates=1),
        Asked(
            ability="MR",
            question="Which film did I watch the day before I saw Paper Boats?",
            answer="The Lighthouse Keeper",
            at=(1,),
        ),
        Asked(
            ability="IE",
            question="List the films that I named.",
            answer="The Lighthouse Keeper, Paper Boats",
            items=("The Lighthouse Keeper", "Paper Boats"),
            at=(1, 4),
        ),
        Asked(
            ability="CR",
            question="Which films suit both Omar and Lena?",
            answer="B",
            options=("horror films", "comedies", "war films", "westerns"),
            at=(2,),
        ),
        Asked(
            ability="AR",
            question="What do I think of the film The Silver Wolf?",
            answer="The film The Silver Wolf was never mentioned.",
        ),
        Asked(
            ability="IM",
            question="At what time does the film night begin, and which picture says so?",
            answer="20:00, picture 1",
            images=(1,),
            at=(3,),
        ),
    ),
)

SPORT = Talk(
    name="sport_running",
    topic="Sport",
    turns=(
        say("I started running in spring. My aim is ten kilometres without a break."),
        say("Here is what I ran last week.", bars("km last week", {"Mon": 3, "Wed": 5, "Sat": 8})),
        say("My left knee hurts a little after long runs."),
        say("My cousin Mara runs marathons; her best time is 3 hours 40."),
        say("What should I eat before a run?"),
        say("I registered for the city race on 4 October."),
        say("And this is this week.", bars("km this week", {"Mon": 4, "Wed": 6, "Sat": 9}, colour="orange")),
        say("The doctor says that it is the right knee that needs rest, not the left one; I had mixed them up."),
        say("I want fifteen kilometres by winter now, ten was too easy."),
        say("The race was moved to 11 October because of road works."),
    ),
    questions=(
        Asked(ability="IU", question="When is the city race?", answer="11 October", at=(9,), updates=1),
        Asked(ability="IU", question="What is my aim?", answer="fifteen kilometres", at=(8,), updates=1),
        Asked(
            ability="CR",
            question="By how many kilometres was my Saturday run longer this week than last week?",
            answer="1",
            at=(1, 6),
        ),
        Asked(
            ability="IM",
            question="Which picture is about this week, and how far did I run on Wednesday in it?",
            answer="6 km, picture 2",
            images=(2,),
            at=(6,),
        ),
        Asked(ability="MR", question="Who of my family runs marathons?", answer="Mara", at=(3,)),
        Asked(
            ability="MR",
            question="Which knee needs rest, as the doctor says?",
            answer="A",
            options=("the right one", "the left one", "both", "none"),
            at=(7,),
        ),
        Asked(ability="AR", question="Which shoes do I run in?", answer="The conversation does not say which shoes."),
    ),
)

GAME = Talk(
    name="game_board",
    topic="Game",
    turns=(
        say("I invented a board game with two teams: the owls and the foxes."),
        say("The owls have this sign.", sign("hexagon", "blue", "OWLS")),
        say("And the foxes have this one.", sign("triangle", "orange", "FOXES")),
        say("Each team starts with seven stones."),
        say("Whoever reaches the tower first wins."),
        say("My brother thinks that seven stones are too many, so each team starts with five."),
        say("Is a game of half an hour too short?"),
        say("After a test I am back at six stones for each team."),
        say("Red stones may jump, green stones may not."),
    ),
    questions=(
        Asked(ability="IU", question="With how many stones does each team start?", answer="six", at=(7,), updates=2),
        Asked(
            ability="IM",
            question="Which picture shows the sign of the foxes, and what is its shape?",
            answer="picture 2, a triangle",
            images=(2,),
            at=(2,),
        ),
        Asked(ability="IE", question="Which teams are there?", answer="owls, foxes", items=("owls", "foxes"), at=(0,)),
        Asked(ability="CR", question="A green stone may jump.", answer="false", at=(8,), truth=True),
        Asked(ability="MR", question="How does one win?", answer="by reaching the tower first", at=(4,)),
        Asked(
            ability="AR",
            question="How many players took part in the test?",
            answer="The user did not say how many players there were.",
        ),
    ),
)

HOUSE = Talk(
    name="house_kitchen",
    topic="House",
    turns=(
        say("We renovate our kitchen. It is four metres long and three metres wide."),
        say("The walls shall be sage green."),
        say("My wife Dora is allergic to strong paint, so it must be free of solvents."),
        say("This is the plan of the cupboards.", card("Cupboards", "Left: plates", "Middle: pans", "Right: spices")),
        say("The floor will be oak."),
        say("How do I clean old tiles?"),
        say("We changed our minds: the walls become white."),
        say("Our neighbour has black walls. Terrible."),
        say("The plumber comes on Monday at nine."),
        say("The oak is too expensive, so we take cork for the floor."),
        say(
            "A new plan: I swapped the pans and the spices.",
            card("Cupboards new", "Left: plates", "Middle: spices", "Right: pans", colour="orange"),
        ),
        say("The plumber called: he comes on Wednesday at two."),
        say("Dora wants the walls in pale yellow, and that is final."),
        say("What plants grow well above a stove?"),
    ),
    questions=(
        Asked(ability="IU", question="Which colour do our walls get?", answer="pale yellow", at=(12,), updates=2),
        Asked(ability="IU", question="When does the plumber come?", answer="Wednesday at two", at=(11,), updates=1),
        Asked(ability="IU", question="What will our floor be made of?", answer="cork", at=(9,), updates=1),
        Asked(
            ability="IM",
            question="Which picture is the new plan, and where are the pans in it?",
            answer="picture 2, right",
            images=(2,),
            at=(10,),
        ),
        Asked(ability="CR", question="How many square metres of floor do we need?", answer="12", at=(0,)),
        Asked(
            ability="CR",
            question="Why can we not use just any yellow paint?",
            answer="Dora is allergic to strong paint",
            at=(2, 12),
        ),
        Asked(ability="MR", question="What is my wife called?", answer="Dora", at=(2,)),
        Asked(
            ability="IE",
            question="What is kept in the cupboards?",
            answer="plates, spices, pans",
            items=("plates", "spices", "pans"),
            at=(10,),
        ),
        Asked(
            ability="AR", question="What does the new oven cost?", answer="An oven and its price were never mentioned."
        ),
    ),
)

FOOD = Talk(
    name="food_dinner",
    topic="Food",
    twin=True,
    turns=(
        fact(
            "I cook for four guests: Tom, Nadia, Jo and Ravi.",
            "I cook for these guests.",
            card("Guests", "Tom", "Nadia", "Jo", "Ravi"),
        ),
        fact(
            "Tom eats no nuts, and Nadia eats no meat.",
            "I noted what two of them do not eat.",
            card("Please note", "Tom: no nuts", "Nadia: no meat", colour="orange"),
        ),
        say("What goes well with roasted pumpkin?"),
        fact(
            "At home I have rice, lentils and a pumpkin.",
            "This is what I have at home.",
            card("At home", "rice", "lentils", "a pumpkin"),
        ),
        say("I set the table for seven o'clock."),
    ),
    questions=(
        Asked(
            ability="IE",
            question="Who are my guests?",
            answer="Tom, Nadia, Jo, Ravi",
            items=("Tom", "Nadia", "Jo", "Ravi"),
            at=(0,),
        ),
        Asked(
            ability="MR",
            question="What do I have at home?",
            answer="rice, lentils, a pumpkin",
            items=("rice", "lentils", "a pumpkin"),
            at=(3,),
        ),
        Asked(ability="CR", question="Who could not eat a beef curry?", answer="Nadia", at=(1,)),
        Asked(ability="MR", question="Who eats no nuts?", answer="D", options=("Jo", "Nadia", "Ravi", "Tom"), at=(1,)),
        Asked(ability="AR", question="Which wine did I buy?", answer="The user did not say anything about wine."),
    ),
)

SHOPPING = Talk(
    name="shopping_flat",
    topic="Shopping",
    twin=True,
    turns=(
        say("I move into my first own flat, and I need nearly everything."),
        fact(
            "My list: 2 chairs, 3 lamps and 1 shelf.",
            "This is my list.",
            card("My list", "2 chairs", "3 lamps", "1 shelf"),
        ),
        say("Is it wise to buy a used sofa?"),
        fact(
            "The shop Mobel Nord sells lamps for 15 euros each.",
            "I saw an offer.",
            card("Mobel Nord", "Lamps", "15 euros each", colour="orange"),
        ),
        say("My father gives me a table, so I need none."),
        fact(
            "The shop Casa Sur sells the same lamps for 12 euros each.",
            "And another one.",
            card("Casa Sur", "The same lamps", "12 euros each", colour="grey"),
        ),
        say("How do I get a shelf up to the fourth floor?"),
        say("I need 4 lamps, not 3: I forgot the hall."),
        say("My neighbour Elif lends me her drill."),
        say("What colour of curtains makes a small room look larger?"),
        say("I skip the shelf; my books stay in boxes for now."),
    ),
    questions=(
        Asked(ability="IU", question="How many lamps do I need?", answer="4", at=(7,), updates=1),
        Asked(
            ability="IE",
            question="What is on my list after all changes?",
            answer="2 chairs, 4 lamps",
            items=("2 chairs", "4 lamps"),
            at=(1, 7, 10),
        ),
        Asked(ability="CR", question="In which shop do I pay less for the lamps?", answer="Casa Sur", at=(3, 5)),
        Asked(ability="MR", question="Who lends me a drill?", answer="Elif", at=(8,)),
        Asked(ability="MR", question="My father gives me a table.", answer="true", at=(4,), truth=True),
        Asked(
            ability="AR", question="What did I pay for the sofa?", answer="The user did not say that a sofa was bought."
        ),
    ),
)

TALKS = (TRAVEL, MUSIC, FILM, SPORT, GAME, HOUSE, FOOD, SHOPPING)
