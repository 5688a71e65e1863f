"""What must come out of a run with controls against a planted server, computed apart from all of our own code.

The run may have several providers; whatever depends on a provider is there once for each label.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from tests.servers.controlled_brain import Asked, ControlledBrain, right_answer_of
from tests.servers.planted_brain import PlantedItem

ARMS = ("detail", "simple", "reask", "mismatched")
WRITTEN = ("detail", "mismatched")
"""Arms whose words come from a provider."""


@dataclass(frozen=True, kw_only=True)
class Lineup:
    """Who takes part."""

    receiver: str
    providers: Mapping[str, str]
    """Label -> model; the label of a single one is empty."""
    flip_sample: int


@dataclass(frozen=True, kw_only=True)
class Lent:
    """What the records say of the second pass; `second_pass_of` reads it and checks it."""

    flips: frozenset[str]
    """Items right at round 0 that were tried."""
    donors: Mapping[tuple[str, str], str | None]
    """(item, label) -> the item whose hint it was given; None where there was none to give."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One item with one provider."""

    first: str | None
    right: str
    answers: Mapping[str, str | None]
    """Arm -> the answer; None where it is unreadable, absent where the arm was left out."""
    n_options: int
    leaks: bool

    def has(self, arm: str) -> bool:
        """Whether the arm was played."""
        return arm in self.answers

    def is_right(self, arm: str) -> bool:
        """Whether it gave the right answer."""
        return self.answers[arm] == self.right


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Everything that is known before the run, but for the draws of the second pass."""

    metrics: Mapping[str, tuple[Fraction, int]]
    """Metric -> its value, and over how many episodes; counts of episodes have n = all."""
    asked: Counter[Asked]
    """What the server must be asked, and how often."""
    test: Mapping[str, frozenset[str]]
    """Label -> items of the test set."""
    flip: Mapping[str, frozenset[str]]
    """Label -> items of the flip set."""


def controlled_expected(
    brain: ControlledBrain,
    items: Sequence[PlantedItem],
    lineup: Lineup,
    lent: Lent,
    *,
    asked_as: Mapping[str, str] | None = None,
) -> Expected:
    """What `brain` planted for these items.

    Args: asked_as = item -> the item that the brain takes it for, where two items ask the very same.
    """
    told = asked_as or {}
    plan = _Plan(brain, lineup, lent, {item.id: told.get(item.id, item.id) for item in items})
    by_id = {item.id: item for item in items}
    firsts = {item.id: plan.answer(item.id, lineup.receiver) for item in items}
    right = {key for key, answer in firsts.items() if answer == right_answer_of(by_id[key])}
    invalid = {key for key, answer in firsts.items() if answer is None}
    readable = set(firsts) - right - invalid
    test, flip = {}, {}
    for label, model in lineup.providers.items():
        solved = {key for key, item in by_id.items() if plan.answer(key, model) == right_answer_of(item)}
        test[label], flip[label] = frozenset(readable & solved), frozenset(lent.flips & solved)
    tried = {
        label: {key: plan.tried(by_id[key], label, firsts[key]) for key in test[label] | flip[label]} for label in test
    }
    counts = {
        "n": len(items),
        "n_negative": len(items) - len(right),
        "n_invalid": len(invalid),
        "n_failed": 0,
        **{f"n_test{at(label)}": len(test[label]) for label in test},
        **({f"n_flip{at(label)}": len(flip[label]) for label in test} if lineup.flip_sample else {}),
    }
    metrics = {name: (Fraction(count), len(items)) for name, count in counts.items()}
    metrics["accuracy"] = (Fraction(len(right), len(items)), len(items))
    for label in test:
        own = _of_a_provider(
            [tried[label][key] for key in sorted(test[label])],
            [tried[label][key] for key in sorted(flip[label])],
            counts,
            n_readable=len(readable),
        )
        metrics |= {name + at(label): value for name, value in own if value is not None}
    metrics |= {name: value for name, value in _between_providers(tried, test) if value is not None}
    asked = Counter(plan.asked(firsts, readable, test, flip))
    return Expected(metrics=metrics, asked=asked, test=test, flip=flip)


@dataclass(frozen=True)
class _Plan:
    brain: ControlledBrain
    lineup: Lineup
    lent: Lent
    asked_as: Mapping[str, str]

    def request(self, item: str, model: str, arm: str = "", label: str = "") -> Asked:
        """The request for an answer, as the brain sees it."""
        if arm not in WRITTEN:
            return Asked(model=model, item=self.asked_as[item], arm=arm)
        donor = item if arm == "detail" else self.lent.donors[item, label]
        assert donor is not None
        donor, own, author = self.asked_as[donor], self.asked_as[item], self.lineup.providers[label]
        seen_as = "detail" if donor == own else "mismatched"  # borrowed from its twin, it is its own
        return Asked(model=model, item=own, arm=seen_as, author=author, donor=donor)

    def answer(self, item: str, model: str, arm: str = "", label: str = "", after: str | None = None) -> str | None:
        return self.brain.answer_of(self.request(item, model, arm, label), after=after)

    def arms(self, item: str, label: str) -> list[str]:
        """The arms that are played: nobody may have lent anything."""
        return [arm for arm in ARMS if arm != "mismatched" or self.lent.donors[item, label] is not None]

    def tried(self, item: PlantedItem, label: str, first: str | None) -> Tried:
        return Tried(
            first=first,
            right=right_answer_of(item),
            answers={
                arm: self.answer(item.id, self.lineup.receiver, arm, label, after=first)
                for arm in self.arms(item.id, label)
            },
            n_options=len(item.options),
            leaks=self.brain.leaks(self.lineup.providers[label], self.asked_as[item.id]),
        )

    def asked(
        self,
        firsts: Mapping[str, str | None],
        readable: set[str],
        test: Mapping[str, frozenset[str]],
        flip: Mapping[str, frozenset[str]],
    ) -> Iterator[Asked]:
        """Every request of the run: each thing once."""
        receiver, providers = self.lineup.receiver, self.lineup.providers
        yield from (self.request(item, receiver) for item in firsts)
        for item in readable | self.lent.flips:
            yield from (self.request(item, model) for model in providers.values())
            able = [label for label in providers if item in test[label] | flip[label]]
            if able:
                yield from (self.request(item, receiver, arm) for arm in ARMS if arm not in WRITTEN)
            for label in able:
                yield Asked(model=providers[label], item=self.asked_as[item], kind="feedback")
                for arm in self.arms(item, label):
                    if arm in WRITTEN:
                        yield self.request(item, receiver, arm, label)


def at(label: str) -> str:
    return f"@{label}" if label else ""


def _share(values: Iterable[bool | int | Fraction]) -> tuple[Fraction, int] | None:
    found = [Fraction(value) for value in values]
    return (sum(found, Fraction(0)) / len(found), len(found)) if found else None


Named = Iterator[tuple[str, tuple[Fraction, int] | None]]


def _of_a_provider(
    test: Sequence[Tried], flip: Sequence[Tried], counts: Mapping[str, int], *, n_readable: int
) -> Named:
    n, negative = counts["n"], counts["n_negative"]
    corrected = {arm: sum(tried.is_right(arm) for tried in test if tried.has(arm)) for arm in ARMS}
    for arm in ARMS:
        rate = _share(tried.is_right(arm) for tried in test if tried.has(arm))
        flips = _share(not tried.is_right(arm) for tried in flip if tried.has(arm))
        yield f"accuracy_after.{arm}", (Fraction(n - negative + corrected[arm], n), n)
        yield f"correction_rate.{arm}", rate
        yield f"correction_rate_on_negatives.{arm}", (Fraction(corrected[arm], negative), negative)
        yield f"repeat_rate.{arm}", _share(tried.answers[arm] == tried.first for tried in test if tried.has(arm))
        yield f"flip_rate.{arm}", flips
        both = None if rate is None or flips is None else (rate[0] - flips[0], rate[1] + flips[1])
        yield f"discrimination.{arm}", both
    yield "provider_solve_rate_on_negatives", (Fraction(len(test), n_readable), n_readable)
    for one, other in combinations(ARMS, 2):
        yield f"difference.{one}-{other}", _difference(test, one, other)
        yield f"same_answer_rate.{one}-{other}", _same([(tried, tried) for tried in test], one, other)
    yield "net_content_effect", _difference(test, "detail", "mismatched")
    yield "net_bit_effect", _difference(test, "simple", "reask")
    floors = [min(Fraction(1), Fraction(1, tried.n_options - 1)) for tried in test if tried.n_options]
    yield "elimination_floor", _share(floors)
    yield "leak_rate.detail", _share(tried.leaks for tried in test)
    yield "leak_placebo_rate.detail", _share(False for _ in test)


def _difference(test: Sequence[Tried], one: str, other: str) -> tuple[Fraction, int] | None:
    both = [tried for tried in test if tried.has(one) and tried.has(other)]
    return _share(int(tried.is_right(one)) - int(tried.is_right(other)) for tried in both)


def _same(pairs: Sequence[tuple[Tried, Tried]], one: str, other: str) -> tuple[Fraction, int] | None:
    both = [(left.answers[one], right.answers[other]) for left, right in pairs if left.has(one) and right.has(other)]
    return _share(first is not None and first == second for first, second in both)


def _between_providers(tried: Mapping[str, Mapping[str, Tried]], test: Mapping[str, frozenset[str]]) -> Named:
    for one, other in combinations(test, 2):
        pairs = [(tried[one][key], tried[other][key]) for key in sorted(test[one] & test[other])]
        for arm in WRITTEN:
            yield f"same_answer_rate.{arm}@{one}-{arm}@{other}", _same(pairs, arm, arm)


# --- what the records must say ----------------------------------------------------------------------------------


def second_pass_of(records: Sequence[Mapping[str, Any]], lineup: Lineup) -> Lent:
    """What the second pass drew, checked for what every draw must be.

    Right answers are tried as often as asked for, or all there are. A borrowed explanation is another item's of the
    same category, word for word what that provider wrote there; in the test set everyone lends exactly once.
    """
    by_id = {record["episode_id"]: record for record in records}
    assert len(by_id) == len(records)
    for record in records:
        places = [(turn.get("branch", ""), turn["round"]) for turn in record["turns"]]
        ends = [end["branch"] for end in record.get("ends", [])]
        assert len(places) == len(set(places)), places
        assert len(ends) == len(set(ends)), ends
    right = {key for key, record in by_id.items() if record["turns"][0]["judgement"]["correct"]}
    flips = [record["episode_id"] for record in records if record["stop_reason"] == "flip_played"]
    assert set(flips) <= right
    assert len(flips) == len(set(flips)) == min(lineup.flip_sample, len(right))
    donors: dict[tuple[str, str], str | None] = {}
    for label in lineup.providers:
        lenders = {key: found[0] for key, record in by_id.items() if (found := _turns(record, "detail", label))}
        test = {key for key in lenders if key not in right}
        donors |= {(key, label): _donor(by_id[key], label) for key in lenders}
        _check_words(by_id, lenders, donors, label)
        _check_circle(by_id, test, {key: donors[key, label] for key in test})
        for key in set(lenders) - test:  # a right answer borrows from the test set, wherever there is one
            group = {other for other in test if by_id[other]["category"] == by_id[key]["category"]}
            assert (donors[key, label] in group) if group else donors[key, label] is None
    return Lent(flips=frozenset(flips), donors=donors)


def _turns(record: Mapping[str, Any], arm: str, label: str) -> list[Mapping[str, Any]]:
    return [turn for turn in record["turns"] if turn.get("branch", "") == arm + at(label)]


def _donor(record: Mapping[str, Any], label: str) -> str | None:
    found = _turns(record, "mismatched", label)
    if not found:
        (end,) = [end for end in record["ends"] if end["branch"] == "mismatched" + at(label)]
        assert end["reason"] == "no_partner"
        return None
    (turn,) = found
    return str(turn["feedback"]["source"])


def _check_words(
    by_id: Mapping[str, Any], lenders: Mapping[str, Any], donors: Mapping[tuple[str, str], str | None], label: str
) -> None:
    for (key, of), donor in donors.items():
        if of != label or donor is None:
            continue
        (turn,) = _turns(by_id[key], "mismatched", label)
        assert donor != key
        assert by_id[donor]["category"] == by_id[key]["category"]
        assert turn["feedback"]["text"] == lenders[donor]["feedback"]["text"]
        assert turn["user"]["content"] == [turn["feedback"]["text"]]
        assert turn["feedback"].get("reply") is None


def _check_circle(by_id: Mapping[str, Any], test: set[str], donors: Mapping[str, str | None]) -> None:
    groups: dict[object, set[str]] = {}
    for key in test:
        groups.setdefault(by_id[key]["category"], set()).add(key)
    for group in groups.values():
        if len(group) == 1:
            assert {donors[key] for key in group} == {None}
        else:
            assert Counter(donors[key] for key in group) == Counter(group)


def assert_controlled_metrics(found: Mapping[str, Mapping[str, Any]], expected: Expected) -> None:
    """Every metric is there and none else, each exactly the planted one, and nothing is unscored."""
    assert sorted(found) == sorted(expected.metrics)
    for name, (value, n) in expected.metrics.items():
        estimate = found[name]
        assert estimate["value"] == pytest.approx(float(value), abs=1e-12), name
        assert (estimate["n"], estimate["unscored"]) == (n, 0), name
        if estimate["count"] is not None:
            assert estimate["count"] == (value if estimate["method"] == "count" else value * n), name


def without_run(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The records without what differs from run to run: times, waits, what came from the ledger."""
    return [json.dumps({key: value for key, value in record.items() if key != "run"}) for record in records]
