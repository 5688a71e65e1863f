"""How far people agree with each other, with each judge and with the panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interbench_tasks.critique_votes import SPLIT
from interbench_tasks.labels.opinions import Labelled, LabelledRun
from interbench_tasks.labels.scales import DETECTED, FLAWED, LabelField, Opinion
from interbench_tasks.metrics.agreement import (
    Coefficient,
    cohens_kappa,
    estimates_from_coefficients,
    labels_from,
)
from interbench_tasks.metrics.intervals import DRAWS, Estimate
from interbench_tasks.metrics.score_agreement import concordance, exact_agreement

PEOPLE = "people"
PANEL = "panel"
ALL = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two raters on one value."""

    what: str
    """`detected`, `diag`, ...; of conversations `score.<ability>`, and `score` over all abilities."""
    who: str
    """`people` (two of them), or whom people are compared with: a judge, or `panel`."""
    kappa: Estimate | None
    """Cohen's, of numbers with quadratic weights; None where it is undefined (all said the same)."""
    weighted: bool
    exact: Estimate | None
    """Share of replies on which both say the same (numbers: within less than half a point)."""


def agreements_of(labelled: LabelledRun, *, draws: int = DRAWS) -> list[Agreement]:
    """People with each other, then with each judge and the panel, value by value.

    Two people: the first two labels of a reply, in the order of the annotators' names; a third one, who looked because
    these differ, says nothing of how often people differ. People and others: what people come to together, where no
    question is open. What needs detection counts where both say that something was detected. Clusters of replies (one
    conversation, one item) are drawn as a whole.
    """
    items = list(labelled.items.values())
    found: list[Agreement] = []
    for what, field, own in _values(labelled, items):
        pairs = [(one.item.cluster, *_first_two(one)) for one in own if len(one.opinions) >= 2]
        found += _compared(what, PEOPLE, field, pairs, draws)
        for judge in labelled.run.judges:
            asked = [one for one in own if judge in one.item.judges]
            given = [(one.item.cluster, one.people, one.item.judges[judge]) for one in asked if one.people]
            found += _compared(what, judge, field, given, draws)
        by_panel = [(one.item.cluster, one.people, one.item.panel) for one in own if one.people]
        found += _compared(what, PANEL, field, by_panel, draws)
    return found


def _values(labelled: LabelledRun, items: Sequence[Labelled]) -> Iterator[tuple[str, LabelField, list[Labelled]]]:
    kinds = list(dict.fromkeys(one.item.kind for one in items))
    order = [kind for kind in labelled.run.asked if kind in kinds]
    for kind in order:
        own = [one for one in items if one.item.kind == kind]
        for field in labelled.run.asked[kind].fields:
            yield field.name if kind == FLAWED else f"{field.name}.{kind}", field, own
    if FLAWED not in order and len(order) > 1:
        yield ALL, labelled.run.asked[order[0]].fields[0], list(items)


def _first_two(one: Labelled) -> tuple[Opinion, Opinion]:
    """The labels of the two people who did not know of a disagreement: the first two that came, by name."""
    first = sorted(zip(one.labels[:2], one.opinions[:2], strict=True), key=lambda pair: pair[0].annotator)
    return first[0][1], first[1][1]


def _compared(
    what: str, who: str, field: LabelField, pairs: Sequence[tuple[str, Opinion, Opinion | None]], draws: int
) -> list[Agreement]:
    """Args: pairs = cluster, what the first says, what the second says (None: it failed)."""
    kept = [pair for pair in pairs if _concerns(field, pair[1], pair[2])]
    first = [one.get(field.name) for _, one, _ in kept]
    second = [None if other is None else other.get(field.name) for _, _, other in kept]
    if not any(a is not None and b is not None for a, b in zip(first, second, strict=True)):
        return []
    made = _numbers(first, second) if field.ordinal else _words(field, first, second)
    estimates = estimates_from_coefficients(made, [cluster for cluster, _, _ in kept], draws=draws)
    return [
        Agreement(
            what=what,
            who=who,
            kappa=estimates.get("kappa"),
            weighted=field.ordinal,
            exact=estimates.get("exact"),
        )
    ]


def _concerns(field: LabelField, first: Opinion, second: Opinion | None) -> bool:
    """Whether the reply counts; where one of the two is not known, it may."""
    sides = [first, *([second] if second is not None else [])]
    return not field.needs_detection or all(side.get(DETECTED) == 1.0 for side in sides)


def _numbers(first: Sequence[float | str | None], second: Sequence[float | str | None]) -> dict[str, Coefficient]:
    x, y = ([None if one is None else float(one) for one in own] for own in (first, second))
    return {"kappa": concordance(x, y), "exact": exact_agreement(x, y)}


def _words(
    field: LabelField, first: Sequence[float | str | None], second: Sequence[float | str | None]
) -> dict[str, Coefficient]:
    categories = [*field.values, SPLIT]
    rows = [[None if one is None else field.to_text(one) for one in pair] for pair in zip(first, second, strict=True)]
    codes = [[None if one is None else float(categories.index(one)) for one in row] for row in rows]
    labels = labels_from(rows, judges=("first", "second"), categories=categories)
    return {
        "kappa": cohens_kappa(labels, "first", "second"),
        "exact": exact_agreement([row[0] for row in codes], [row[1] for row in codes]),
    }
