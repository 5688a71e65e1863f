"""Items, pictures and refusals are read from replies as a careful reader would, and never guessed."""

from __future__ import annotations

import time

import pytest

from interbench_tasks.answers.item_lists import item_counts
from interbench_tasks.answers.picture_numbers import picture_numbers
from interbench_tasks.answers.refusals import refuses

# --- refusals -----------------------------------------------------------------------------------------------------

DECLINING = [
    "The conversation does not say what the flights cost.",
    "I don't have any information about the price of the oven.",
    "I don\u2019t know.",
    "You never mentioned the cost.",
    "I'm sorry, but I can't answer that because it wasn't mentioned.",
    "There is no mention of a sofa in our conversation.",
    "Based on our conversation, there's no information about the wine.",
    "I do not recall you telling me about the shoes.",
    "Unknown",
    "Not mentioned.",
    "It isn't specified in the conversation. However, you can check your booking.",
    "The depth of the pond was never mentioned.",
    "I cannot see any picture of a cat in our chat.",
    "No salary was mentioned.",
    "I\u2019m unable to determine this from the conversation.",
    "As an AI, I can't know that.",
    "The film The Silver Wolf was never mentioned.",
    "Nothing was said about it.",
    "That information was not provided.",
    "We haven't talked about that.",
    "You did not tell me how many players took part.",
    "Sorry, that's not something we discussed.",
    "I have no record of that.",
    "It's impossible to say from what you told me.",
    "The question cannot be answered from the conversation.",
    "You mentioned the flights, but you did not mention what they cost.",
    "<think>300 euros? No.</think>You did not say.",
    "对话中没有提到价格。",
    "I don't have that.",
    "The chat history does not hold the price.",
    "You don't have any information about it.",
    "You did not mention it, but you have named 3 films.",
]
ANSWERING = [
    "",
    "The sofa cost 300 euros.",
    "No, Ines gets seasick.",
    "The pond is not deep.",
    "You didn't buy the sofa.",
    "Your sister's name isn't Ines.",
    "It was not mentioned, but it's probably about 300 euros.",
    "I'm not sure, but I think it was red.",
    "You did not say, so I would guess Friday.",
    "The conversation does not say it. It may have been 20.",
    "You paid 300 euros, I cannot say more.",
    "You said 300 euros. Nothing else was mentioned.",
    "Felix, not Karl.",
    "None of them.",
    "You cannot swim.",
    "<think>The conversation does not say.",
    "对话中没有提到价格\uff0c可能是三百。",
    "You don't have a sister.",
    "He does not have a car.",
    "She doesn't have a dog, she has a cat.",
    "I'm not sure, but 5 euros.",
]


@pytest.mark.parametrize("text", DECLINING)
def test_a_reply_that_declines_is_a_refusal(text):
    assert refuses(text)


@pytest.mark.parametrize("text", ANSWERING)
def test_a_reply_that_answers_or_guesses_is_none(text):
    assert not refuses(text)


# --- pictures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("picture 3, room 21", (3,)),
        ("Pictures 1, 2 and 4", (1, 2, 4)),
        ("It's the second picture, room 21", (2,)),
        ("Images 1-3", (1, 2, 3)),
        ("Images 1 to 3 and 5", (1, 2, 3, 5)),
        ("photos 4-2", (2, 4)),
        ("The last picture", (5,)),
        ("3", (3,)),
        ("2 and 3.", (2, 3)),
        ("image #2", (2,)),
        ("photo number two", (2,)),
        ("Picture no. 2", (2,)),
        ("not picture 1 but picture 2", (2,)),
        ("It is picture 2, rather than picture 1.", (2,)),
        ("In picture 2 there are 5 dogs", (2,)),
        ("The first and third images", (1, 3)),
        ("the 2nd photo", (2,)),
        ("**Image 4**", (4,)),
        ("(Image 4)", (4,)),
        ("image 1 and image 4", (1, 4)),
        ("picture 12 and 1", (1, 12)),
        ("第三张图", (3,)),
        ("图2", (2,)),
        ("<think>picture 1</think>picture 2", (2,)),
        ("", ()),
        ("The picture with the 3 dogs", ()),
        ("The pictures show 3 dogs", ()),
        ("Image 2.5", ()),
        ("picture 20:00", ()),
        ("room 21", ()),
        ("I do not know.", ()),
        ("one", (1,)),
    ],
)
def test_pictures_are_read_by_their_numbers(text, expected):
    assert picture_numbers(text, 5) == expected


def test_the_last_picture_is_not_known_where_nobody_says_how_many_there_are():
    assert picture_numbers("the last picture") == ()


# --- items --------------------------------------------------------------------------------------------------------

PASS = ("flight TP 539", "seat 14 C", "gate 7")


@pytest.mark.parametrize(
    ("text", "hits", "named"),
    [
        ("The boarding pass says flight TP 539, seat 14 C and gate 7.", 3, 3),
        ("- Flight: TP 539\n- Seat: 14 C\n- Gate: 7", 3, 3),
        ("* **Flight TP 539**\n* Seat 14 C (window)\n", 2, 2),
        ("Here is what it says:\n1. Flight TP 539\n2. Seat 14 C\n3. Row 9\n\nHope this helps!", 2, 3),
        ("It says flight TP 539 and seat 14 C. Let me know if you need more!", 2, 2),
        ("Gate 7, gate 7 and the GATE 7", 1, 1),
        ("Gate 8, seat 2 B", 0, 2),
        ("There are three things on it. They are: flight TP 539, seat 14 C, gate 7.", 3, 3),
        ("flight TP 539; seat 14 C; gate 7; name Paul; class economy", 3, 5),
        ("I don't know.", 0, 0),
        ("The conversation does not say.", 0, 0),
        ("", 0, 0),
        ("<think>gate 7", 0, 0),
        ("<think>gate 9</think>gate 7", 1, 1),
        ("A passport", 0, 1),
    ],
)
def test_items_of_a_reply_are_compared_with_the_references(text, hits, named):
    counts = item_counts(text, PASS)
    assert (counts.hits, counts.named, counts.wanted) == (hits, named, 3)


def test_precision_recall_and_f1():
    counts = item_counts("Up, Cars, Shrek and Heat", ["Up", "Cars", "Alien"])
    assert (counts.precision, counts.recall) == (0.5, pytest.approx(2 / 3))
    assert counts.f1 == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    nothing = item_counts("", ["Up"])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


@pytest.mark.parametrize(
    ("text", "items", "hits", "named"),
    [
        ("salt and pepper, rice", ["salt and pepper", "rice"], 2, 2),
        ("the cars", ["A Cars"], 1, 1),
        ("1,200 euros", ["1200 euros"], 1, 1),
        ("苹果、香蕉和梨", ["苹果", "香蕉", "桃"], 2, 3),
        ("New York", ["York", "New York"], 1, 1),
        ("York, New York", ["York", "New York"], 2, 2),
        ("Upper floor", ["Up"], 0, 1),
    ],
)
def test_words_are_compared_not_letters(text, items, hits, named):
    counts = item_counts(text, items)
    assert (counts.hits, counts.named) == (hits, named)


def test_a_reference_without_items_is_an_error():
    with pytest.raises(ValueError, match="at least one item"):
        item_counts("Up", ["..."])


@pytest.mark.parametrize("text", ["not " * 20_000, "picture 1, " * 10_000, "a, " * 20_000, "no the " * 10_000 + "x"])
def test_a_very_long_reply_does_not_hang(text):
    began = time.process_time()
    refuses(text)
    picture_numbers(text, 5)
    item_counts(text, PASS)
    assert time.process_time() - began < 4


def test_initials_end_no_sentence():
    names = ["J.K. Rowling", "R.R. Martin", "J. R. R. Tolkien"]
    counts = item_counts("J.K. Rowling, R.R. Martin, and J. R. R. Tolkien.", names)
    assert (counts.hits, counts.named) == (3, 3)
