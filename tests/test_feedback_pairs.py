"""Whose feedback is borrowed, and which right answers are tried: the same for any order, and fair."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from interbench_tasks.protocols.feedback_pairs import likenesses, plan_from, ring_from, sampled
from interbench_tasks.records import Message, PictureRef


def fact(doc_id, *, right=False, test=("",), category="c", cluster=None, repeat=0, told="detail", alike=()):
    given = {told: {label: {"text": f"for {doc_id} by {label}", "source": str(doc_id)} for label in test}}
    return {
        "doc_id": doc_id,
        "repeat": repeat,
        "category": category,
        "cluster": cluster,
        "alike": list(alike),
        "right": right,
        "test": [] if right else list(test),
        "given": {} if right or not told else given,
    }


def plan(facts, **changes):
    options = {
        "borrowing": {"mismatched": "detail"}, "labels": ("",), "max_rounds": 1, "flip_sample": 0, "seed": 0,
    }  # fmt: skip
    return plan_from(facts, **(options | changes))


def sources(planned, label="", arm="mismatched"):
    return {key: [told["source"] for told in entry["borrowed"][arm][label]] for key, entry in planned.items()}


def test_everybody_borrows_from_another_of_the_category_and_is_borrowed_once():
    facts = [fact(doc, category="even" if doc % 2 == 0 else "odd") for doc in range(11)]
    borrowed = sources(plan(facts))
    assert len(borrowed) == 11
    assert all(int(source) != key[0] and int(source) % 2 == key[0] % 2 for key, [source] in borrowed.items())
    assert set(Counter(source for [source] in borrowed.values()).values()) == {1}


def test_each_round_has_another_partner_as_long_as_there_are_enough():
    borrowed = sources(plan([fact(doc) for doc in range(4)], max_rounds=3))
    assert all(len(set(found)) == 3 and str(key[0]) not in found for key, found in borrowed.items())
    two = sources(plan([fact(0), fact(1)], max_rounds=3))
    assert two == {(0, 0): ["1"] * 3, (1, 0): ["0"] * 3}


def test_alone_in_its_category_it_has_nobody_to_borrow_from():
    assert sources(plan([fact(0), fact(1, category="other")])) == {(0, 0): [], (1, 0): []}


def test_the_plan_is_the_same_for_any_order_and_another_for_another_seed():
    facts = [fact(doc, right=doc % 3 == 0, category=None) for doc in range(30)]
    shuffled = random.Random(5).sample(facts, len(facts))
    assert plan(facts, flip_sample=4) == plan(shuffled, flip_sample=4)
    assert plan(facts, flip_sample=4) != plan(facts, flip_sample=4, seed=1)


def test_each_provider_lends_only_its_own():
    facts = [fact(doc, test=("a", "b") if doc < 4 else ("a",)) for doc in range(6)]
    planned = plan(facts, labels=("a", "b"))
    assert planned[(5, 0)]["borrowed"]["mismatched"].keys() == {"a"}
    for entry in planned.values():
        for label, told in entry["borrowed"]["mismatched"].items():
            assert all(one["text"].endswith(f"by {label}") for one in told)
    assert {int(source) for found in sources({k: v for k, v in planned.items() if k[0] < 4}, "b").values()
            for source in found} == {0, 1, 2, 3}  # fmt: skip


def test_what_failed_is_lent_by_nobody_but_still_borrows():
    facts = [fact(0), fact(1), fact(2, told="")]
    borrowed = sources(plan(facts))
    assert set(borrowed) == {(0, 0), (1, 0), (2, 0)}
    assert "2" not in {source for found in borrowed.values() for source in found}
    assert len(borrowed[(2, 0)]) == 1


def test_repeats_borrow_within_their_repeat():
    facts = [fact(doc, repeat=repeat) for doc in range(3) for repeat in range(2)]
    assert all(int(source) != key[0] for key, [source] in sources(plan(facts)).items())


def test_a_sample_of_the_right_ones_gets_every_arm_and_borrows_too():
    facts = [fact(doc, right=doc < 5) for doc in range(9)]
    planned = plan(facts, flip_sample=3)
    flips = [key for key, entry in planned.items() if entry["flip"]]
    assert len(flips) == 3
    assert all(key[0] < 5 for key in flips)
    assert all(len(planned[key]["borrowed"]["mismatched"][""]) == 1 for key in flips)
    assert len(planned) == 3 + 4


@pytest.mark.parametrize(("n", "found"), [(0, 0), (3, 3), (99, 5)])
def test_the_sample_is_as_large_as_asked_for_or_all_there_are(n, found):
    assert len(sampled([fact(doc, right=doc < 5) for doc in range(9)], n, seed=0)) == found


def test_every_right_answer_is_as_likely_to_be_tried_as_another():
    facts = [fact(doc, right=True) for doc in range(10)]
    counts = Counter(key for seed in range(2000) for key in sampled(facts, 3, seed))
    assert all(510 < count < 690 for count in counts.values())  # 600 expected, standard deviation 20.5


def test_without_borrowing_arms_only_the_sample_is_played_on():
    facts = [fact(doc, right=doc < 5) for doc in range(9)]
    assert all(entry["flip"] for entry in plan(facts, borrowing={}, flip_sample=2).values())
    assert plan(facts, borrowing={}) == {}


def test_one_episode_more_changes_the_partner_of_one_other_only():
    before = sources(plan([fact(doc) for doc in range(20)]))
    after = sources(plan([fact(doc) for doc in range(21)]))
    assert sum(before[key] != after[key] for key in before) == 1
    few = sampled([fact(doc, right=True) for doc in range(20)], 5, seed=0)
    assert len(few & sampled([fact(doc, right=True) for doc in range(21)], 5, seed=0)) >= 4


def test_a_ring_leads_back_to_its_start():
    ring = ring_from(dict.fromkeys([(doc, 0) for doc in range(5)], frozenset()), "seed")
    key, seen = (0, 0), []
    for _ in range(5):
        [key] = ring.partners(key, frozenset(), 1)
        seen.append(key)
    assert sorted(seen) == [(doc, 0) for doc in range(5)]


def test_nobody_borrows_within_its_cluster():
    borrowed = sources(plan([fact(doc, cluster=str(doc // 3)) for doc in range(12)], max_rounds=3))
    assert all(int(source) // 3 != key[0] // 3 for key, found in borrowed.items() for source in found)
    assert all(len(set(found)) == 3 for found in borrowed.values())
    assert sources(plan([fact(doc, cluster="one") for doc in range(3)])) == {(doc, 0): [] for doc in range(3)}


def test_nobody_borrows_from_a_twin_however_many_there_are():
    facts = [fact(doc, alike=[f"text {doc % 5}"]) for doc in range(15)]
    for seed in range(20):
        borrowed = sources(plan(facts, max_rounds=2, seed=seed))
        assert all(int(source) % 5 != key[0] % 5 for key, found in borrowed.items() for source in found)
    assert plan(facts) == plan(random.Random(1).sample(facts, len(facts)))
    assert sources(plan([fact(doc, alike=["same"]) for doc in range(3)])) == {(doc, 0): [] for doc in range(3)}


def test_a_flip_borrows_from_no_twin_either():
    facts = [fact(0, right=True, alike=["one"]), fact(1, alike=["one"]), fact(2, alike=["two"])]
    assert all(sources(plan(facts, flip_sample=1, seed=seed))[(0, 0)] == ["2"] for seed in range(10))


def shown(*content, target="5", options=()):
    return set(likenesses(Message(role="user", content=content), target, dict(options)))


def picture(digest):
    return PictureRef(digest=digest, width=1, height=1, mime="image/png")


def test_twins_are_those_that_are_shown_alike_or_have_words_and_free_form_answer_in_common():
    assert shown("How many?") & shown("How many?", target="6")
    assert shown("How many?", picture("a")) & shown("How many?", picture("b"))
    assert not shown("How many?", picture("a")) & shown("How many?", picture("b"), target="6")
    assert not shown("How many?") & shown("How many dogs?")
    assert not shown("ab", "c") & shown("a", "bc", target="6")
    letters = {"A": "1", "B": "2"}.items()
    assert shown("Which?", picture("a"), target="A", options=letters) & shown(
        "Which?", picture("a"), target="B", options=letters
    )
    assert not shown("Which?", picture("a"), target="A", options=letters) & shown(
        "Which?", picture("b"), target="A", options=letters
    )


def test_mathverses_twins_lend_each_other_nothing(shared_data):
    rows = json.loads((shared_data / "mathverse/testmini_text_only.json").read_text(encoding="utf-8"))
    free = [row for row in rows if row["question_type"] != "multi-choice"]
    texts = Counter(row["question"] for row in rows)
    assert sum(count == 2 for count in texts.values()) == 8
    facts = [
        fact(number, category="free", cluster=row["problem_index"],
             alike=likenesses(Message(role="user", content=(row["query_wo"],)), row["answer"], {}))
        for number, row in enumerate(free)
    ]  # fmt: skip
    for seed in range(5):
        for key, [source] in sources(plan(facts, seed=seed)).items():
            assert free[int(source)]["question"] != free[key[0]]["question"]
