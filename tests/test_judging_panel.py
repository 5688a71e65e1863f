"""Panel rules: what several judges come to, whatever their order, and what it takes for a panel to speak at all."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from interbench_tasks.errors import InterbenchError
from interbench_tasks.judging_panel import panel_problems, with_quorum
from interbench_tasks.plugins.judges import (
    AlignedMean,
    MeanOfValid,
    MedianOfValid,
    StrictMajority,
    interbench_panel_rules,
)
from interbench_tasks.records import Verdict

RULES = {name: make() for name, make in interbench_panel_rules().items()}
FAILED = "(failed)"


def verdict(judge, vote) -> Verdict:
    """A vote: a score, a label, (label, score), or FAILED."""
    if vote == FAILED:
        return Verdict(judge=judge, status="error", score=None)
    label, score = vote if isinstance(vote, tuple) else (vote, None) if isinstance(vote, str) else (None, vote)
    return Verdict(judge=judge, status="scored", score=score, label=label)


def combined(rule, *votes, declared=None) -> tuple:
    """(status, score, label), the same for every order of the judges."""
    verdicts = [verdict(f"j{number}", vote) for number, vote in enumerate(votes)]
    found = {rule.combine(order, declared or len(votes)) for order in permutations(verdicts)}
    assert len(found) == 1
    (only,) = found
    return only.status, only.score, only.label


UNDECIDED = ("undecided", None, None)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (("yes", "yes", "no"), ("scored", None, "yes")),
        (("yes", "yes", FAILED), ("scored", None, "yes")),
        (("yes", "no", FAILED), UNDECIDED),
        (("yes", FAILED, FAILED), UNDECIDED),
        ((FAILED, FAILED, FAILED), UNDECIDED),
        (("yes", "no", "perhaps"), UNDECIDED),
        (("yes", "no"), UNDECIDED),
        (("yes", "yes", "no", "no"), UNDECIDED),
        (("yes", "yes", "yes", "no"), ("scored", None, "yes")),
        (("yes",), ("scored", None, "yes")),
        ((4, 4, 2), ("scored", 4, None)),
        ((4, 3, 2), UNDECIDED),
        ((0, 0, 5), ("scored", 0, None)),
        ((("a", 2), ("a", 1), ("b", 0)), ("scored", 1.5, "a")),
        ((("a", 2), ("b", 1), ("c", 0)), UNDECIDED),
    ],
    ids=repr,
)
def test_strict_majority_is_more_than_half_of_the_judges_that_were_asked(votes, expected):
    assert combined(StrictMajority(), *votes) == expected


def test_a_judge_that_was_asked_and_left_no_verdict_at_all_counts_as_failed():
    assert combined(StrictMajority(), "yes", "yes", declared=3) == ("scored", None, "yes")
    assert combined(StrictMajority(), "yes", declared=3) == UNDECIDED
    assert combined(MeanOfValid(), 4, declared=3) == ("scored", 4, None)


@pytest.mark.parametrize(
    ("votes", "mean", "median"),
    [
        ((4, FAILED, 5), 4.5, 4.5),
        ((0, 5, 5), 10 / 3, 5),
        ((1, 2, 3, 5), 2.75, 2.5),
        ((3,), 3, 3),
        ((FAILED, 0), 0, 0),
    ],
)
def test_a_judge_that_failed_is_no_zero_in_a_mean_or_a_median(votes, mean, median):
    assert combined(MeanOfValid(), *votes) == ("scored", pytest.approx(mean), None)
    assert combined(MedianOfValid(), *votes) == ("scored", median, None)


def test_where_all_judges_fail_no_rule_gives_a_score():
    for rule in RULES.values():
        assert combined(rule, FAILED, FAILED) == UNDECIDED


def test_a_mean_has_the_label_of_more_than_half_of_all_judges():
    assert combined(MeanOfValid(), ("yes", 5), ("yes", 4), ("no", 0)) == ("scored", 3, "yes")
    assert combined(MeanOfValid(), ("yes", 5), ("no", 4), FAILED) == ("scored", 4.5, None)
    assert combined(MedianOfValid(), ("yes", 5), ("yes", 4), 0) == ("scored", 4, "yes")


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ((("a", 2), ("a", 1), ("b", 0)), ("scored", 1.5, "a")),
        ((("a", 2), ("a", 1), FAILED), ("scored", 1.5, "a")),
        ((("a", 2), ("b", 1), ("c", 0)), ("scored", 1, "split")),
        ((("a", 2), ("b", 1), FAILED), UNDECIDED),
        ((("a", 2), FAILED, FAILED), UNDECIDED),
        ((("a", 2), ("a", 1), ("b", 0), ("b", 1)), ("scored", 1, "split")),
        ((("a", 2), ("b", 1), ("c", 0), FAILED), ("scored", 1, "split")),
        ((("a", 2), ("a", 2), ("b", 0), FAILED), UNDECIDED),
        ((("a", 2),), ("scored", 2, "a")),
    ],
    ids=repr,
)
def test_aligned_mean_is_over_the_judges_that_chose_the_majoritys_label(votes, expected):
    assert combined(AlignedMean(), *votes) == expected


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_order_of_the_judges_never_matters_to_the_last_digit(name):
    rng = random.Random(1)
    for _ in range(200):
        votes = [(rng.choice("ab"), rng.choice([0, 0.1, 0.2, 0.3, 1 / 3, 2])) for _ in range(rng.randint(1, 5))]
        combined(RULES[name], *(vote if rng.random() < 0.8 else FAILED for vote in votes))


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_panel_never_says_more_than_its_judges(name):
    """Whatever they say, a score lies within theirs, and a label is one of theirs."""
    for votes in product([("a", 0), ("a", 2), ("b", 1), FAILED], repeat=3):
        status, score, label = combined(RULES[name], *votes)
        valid = [vote for vote in votes if vote != FAILED]
        if status == "scored":
            assert min(vote[1] for vote in valid) <= score <= max(vote[1] for vote in valid)
            assert label in {None, "split", *(vote[0] for vote in valid)}
        else:
            assert (status, score, label) == UNDECIDED


def test_the_votes_are_told():
    votes = [verdict("a", "yes"), verdict("b", "no"), verdict("c", FAILED)]
    told = StrictMajority().combine(votes, 3)
    assert (told.judge, told.reason) == ("panel:strict_majority", "no 1, yes 1, failed 1 of 3")
    assert MeanOfValid().combine([verdict("a", 4), verdict("b", 4.5)], 2).reason == "4 1, 4.5 1, failed 0 of 2"


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize(
    ("verdicts", "declared", "message"),
    [
        ([], 0, "at least one judge"),
        ([("a", 1), ("b", 1)], 1, "2 verdicts of 1 judges"),
        ([("a", ("x", 1)), ("a", ("x", 2))], 2, "a judge is there twice: a, a"),
        ([("a", float("nan"))], 1, "no finite number"),
        ([("a", None)], 1, "neither score nor label"),
    ],
)
def test_what_cannot_be_a_panel_is_an_error_and_no_quiet_number(name, verdicts, declared, message):
    votes = [
        Verdict(judge=judge, status="scored", score=None) if vote is None else verdict(judge, vote)
        for judge, vote in verdicts
    ]
    with pytest.raises(InterbenchError, match=message):
        RULES[name].combine(votes, declared)


@pytest.mark.parametrize(
    ("rule", "vote", "message"),
    [
        (MeanOfValid(), "yes", "mean_of_valid needs scores, and a judge gave a label only; use strict_majority"),
        (MedianOfValid(), "yes", "median_of_valid needs scores"),
        (AlignedMean(), "yes", "aligned_mean needs scores"),
        (AlignedMean(), 4, "aligned_mean needs labels, and a judge gave a score only; use mean_of_valid"),
    ],
)
def test_a_rule_that_does_not_fit_the_rubric_says_which_does(rule, vote, message):
    with pytest.raises(InterbenchError, match=message):
        rule.combine([verdict("a", vote)], 1)


# --- quorum, and the YAML's words ---------------------------------------------------------------------------------


def test_below_its_quorum_a_panel_is_undecided():
    two = with_quorum(MeanOfValid(), 2)
    assert combined(two, 4, FAILED, FAILED) == UNDECIDED
    assert combined(two, 4, 5, FAILED) == ("scored", 4.5, None)
    told = two.combine([verdict("a", 4), verdict("b", FAILED)], 2)
    assert told.reason == "1 of 2 judges gave a verdict, the quorum is 2"
    assert told.judge == "panel:mean_of_valid"
    rule = MeanOfValid()
    assert with_quorum(rule, None) is rule


def told(**changes) -> list[str]:
    right = {"rule": "strict_majority", "quorum": 2, "judges": ["openai:a", "openai:b"], "allowed": sorted(RULES)}
    return [str(problem) for problem in panel_problems(**right | changes, key="metadata.interbench")]


def test_a_good_panel_has_no_problems():
    assert told() == []
    assert told(quorum=None) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"judges": [], "quorum": None}, "metadata.interbench.roles.judge is missing: name at least one judge"),
        (
            {"judges": ["openai:a", "openai:a"]},
            "metadata.interbench.roles.judge: openai:a is there 2 times; name each judge once",
        ),
        ({"quorum": 3}, "metadata.interbench.quorum = 3: must be from 1 to the number of judges, 2"),
        ({"quorum": 0}, "metadata.interbench.quorum = 0: must be from 1 to the number of judges, 2"),
        (
            {"rule": "strict_majorty"},
            "metadata.interbench.panel = 'strict_majorty' is no panel rule (did you mean 'strict_majority'?)\n"
            "  allowed: aligned_mean, mean_of_valid, median_of_valid, strict_majority",
        ),
    ],
)
def test_a_mistake_in_a_panel_is_told_with_its_key_and_what_is_allowed(changes, expected):
    assert told(**changes) == [expected]
