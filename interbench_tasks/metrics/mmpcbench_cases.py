"""Summaries of critiques -> the cases of every metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from interbench_tasks.critique_votes import PARTS, SPLIT, STRATEGIES, TOP, Panel, majority, panel_of
from interbench_tasks.flaws import type_of
from interbench_tasks.metrics.cases import OUT, Case, known, truth
from interbench_tasks.metrics.mmpcbench_names import STYLES, suffix_of
from interbench_tasks.metrics.mmpcbench_summary import values_in, votes_in
from interbench_tasks.sweeps import pairs_of

Cases = Iterator[tuple[str, Case]]


def cases_of(summary: Mapping[str, Any], panels: Mapping[str, Panel], *, declared: int, quorum: int | None) -> Cases:
    """Each metric that the row has a part in, with its case; a pooled metric once a judge.

    Args: panels = what `panels_of` gives for it; declared = judges that were asked.
    """
    kind = summary["kind"]
    if kind == "flawed":
        yield from _flawed_cases(summary, panels, declared, quorum)
    elif kind == "dual":
        yield from _dual_cases(values_in(summary["votes"].get(""), declared, (0, "")), declared, quorum)
    elif kind == "valid":
        yield from _valid_cases(values_in(summary["votes"].get(""), declared, (0, 0)), declared, quorum)
    if "clarified" in summary:
        yield "solved_after_clarification", truth(summary["clarified"][0])


def panels_of(summary: Mapping[str, Any], *, declared: int, quorum: int | None) -> dict[str, Panel]:
    """Branch ('', a style or a variant) -> what the panel made of the response to a flawed input."""
    if summary["kind"] != "flawed":
        return {}
    cells = {"": None, **summary["votes"]}
    return {branch: panel_of(votes_in(cell, declared), quorum) for branch, cell in cells.items()}


def _flawed_cases(summary: Mapping[str, Any], panels: Mapping[str, Panel], declared: int, quorum: int | None) -> Cases:
    main = panels[""]
    of_type = type_of(summary["category"])
    for name, case in panel_cases(main):
        yield name, case
        if not name.startswith("strategy."):
            yield f"{name}.{of_type}", case
    yield "precision", Case(counts=_counts(main), value=1.0 if main.detected else None, low=1.0, high=1.0)
    yield "recall", detection(main)
    for branch, panel in panels.items():
        if branch:
            at = suffix_of(branch)
            yield from ((f"{name}{at}", case) for name, case in panel_cases(panel) if "." not in name)
            yield f"shift_eda{at}", _difference(detection(panel), detection(main))
    thoughts = thoughts_of(summary, declared=declared, quorum=quorum)
    for branch, thought in thoughts.items():
        yield from ((f"{name}{suffix_of(branch)}", case) for name, case in _consistency(thought, panels[branch]))
        if branch and "" in thoughts:
            yield f"shift_eda_r{suffix_of(branch)}", _difference(detection(thought), detection(thoughts[""]))
    for one, other in pairs_of([branch for branch in panels if branch not in ("", *STYLES)]):
        yield f"shift_eda@{one}-{other}", _difference(detection(panels[one]), detection(panels[other]))
        if one in thoughts and other in thoughts:
            yield f"shift_eda_r@{one}-{other}", _difference(detection(thoughts[one]), detection(thoughts[other]))


def thoughts_of(summary: Mapping[str, Any], *, declared: int, quorum: int | None) -> dict[str, Panel]:
    """Branch -> what the panel made of the reasoning there; without those that have none, or that nobody judged."""
    cells = {"": summary["reasoning"]} if "reasoning" in summary else {}
    cells |= summary.get("thoughts", {})
    return {branch: panel_of(votes_in(cell, declared), quorum) for branch, cell in cells.items()}


def panel_cases(panel: Panel) -> Cases:
    """EDA, DP, SE and the shares of strategies, of one response."""
    yield "eda", detection(panel)
    counts, possible = _counts(panel), panel.possible
    if counts is False or possible.dp is None or possible.se is None:
        yield from ((name, OUT) for name in ("dp", "se"))
        return
    yield "dp", Case(counts=counts, value=panel.dp, low=possible.dp.low, high=possible.dp.high)
    yield "se", Case(counts=counts, value=panel.se, low=possible.se.low, high=possible.se.high)
    for strategy in (*STRATEGIES, SPLIT):
        yield (
            f"strategy.{strategy}",
            Case(
                counts=counts,
                value=None if panel.strategy is None else float(panel.strategy == strategy),
                low=float(possible.strategies == {strategy}),
                high=float(strategy in possible.strategies),
            ),
        )


def detection(panel: Panel) -> Case:
    """Whether something was detected, as a case."""
    ends = [float(outcome) for outcome in panel.possible.detected]
    value = None if panel.detected is None else float(panel.detected)
    return Case(counts=True, value=value, low=min(ends), high=max(ends))


def _counts(panel: Panel) -> bool | None:
    """Whether the item is among the detected ones; None where missing judges decide it."""
    return panel.possible.detected[0] if len(panel.possible.detected) == 1 else None


def _difference(first: Case, second: Case) -> Case:
    value = None if first.value is None or second.value is None else first.value - second.value
    return Case(counts=True, value=value, low=first.low - second.high, high=first.high - second.low)


def _consistency(thought: Panel, said: Panel) -> Cases:
    """EDA_R, EDA_F, DDR and DQD of an item whose reply has reasoning."""
    yield "eda_r", detection(thought)
    yield "eda_f", detection(said)
    absent = [1.0 - float(outcome) for outcome in said.possible.detected]
    told = None if said.detected is None else 1.0 - float(said.detected)
    value = told if thought.detected else None
    yield "ddr", Case(counts=_counts(thought), value=value, low=min(absent), high=max(absent))
    yield "dqd", _quality_drop(thought, said)


def _quality_drop(thought: Panel, said: Panel) -> Case:
    both = (_counts(thought), _counts(said))
    r, f = thought.possible.dp, said.possible.dp
    if False in both or r is None or f is None:
        return OUT
    value = None if thought.dp is None or said.dp is None else thought.dp - said.dp
    counts = True if both == (True, True) else None
    return Case(counts=counts, value=value, low=r.low - f.high, high=r.high - f.low)


def _heard(case: Case, said: Sequence[object], quorum: int | None) -> Case:
    """The case, unscored where fewer judges spoke than the quorum; its range stays what it is."""
    return case if len(said) >= (quorum or 0) else replace(case, value=None)


def _dual_cases(given: Sequence[Sequence[Any] | None], declared: int, quorum: int | None) -> Cases:
    said = [values for values in given if values is not None]
    missing = declared - len(said)
    detected = majority(sum(bool(values[0]) for values in said), missing, declared)
    yield "meda", _heard(truth(detected), said, quorum)
    parts = [frozenset(str(values[1]).split("+")) & set(PARTS) if values[0] else frozenset() for values in said]
    found = [majority(sum(part in own for own in parts), missing, declared) for part in PARTS]
    low, high = [float(one is True) for one in found], [float(one is not False) for one in found]
    decided = None not in found
    covered = Case(counts=True, value=sum(low) / 2 if decided else None, low=sum(low) / 2, high=sum(high) / 2)
    yield "type_coverage", _heard(covered, said, quorum)
    # One defect that is certainly not identified settles it, whatever the other is.
    settled = decided or min(high) == 0.0
    both = Case(counts=True, value=min(low) if settled else None, low=min(low), high=min(high))
    yield "all_detected", _heard(both, said, quorum)
    for own in parts:
        yield "type_coverage_pooled", known(len(own) / 2)
        yield "all_detected_pooled", known(float(len(own) == 2))
    for _ in range(missing):
        yield "type_coverage_pooled", truth(None)
        yield "all_detected_pooled", truth(None)


def _valid_cases(given: Sequence[Sequence[Any] | None], declared: int, quorum: int | None) -> Cases:
    said = [values for values in given if values is not None]
    missing = declared - len(said)
    refused = majority(sum(bool(values[0]) for values in said), missing, declared)
    # Declining the whole task is an alarm, also where a judge says that it is none.
    alarmed = majority(sum(any(values) for values in said), missing, declared)
    yield "urr_v", _heard(truth(refused), said, quorum)
    yield "far_v", _heard(truth(alarmed), said, quorum)
    yield "precision", _heard(Case(counts=alarmed, value=0.0 if alarmed else None), said, quorum)


def item_pcq(panel: Panel) -> tuple[tuple[float, float] | None, tuple[float, float], tuple[float, float]]:
    """What a response adds to the sums that PCQ is a function of: (dp, se), and the least and largest of each.

    PCQ rises with the sum of dp and with the sum of se over detected items, in each of its forms, and the missing
    judges can push both to their ends at once.
    """
    possible = panel.possible
    value = (0.0, 0.0) if panel.detected is False else None
    if panel.dp is not None and panel.se is not None:
        value = (panel.dp, panel.se)
    if possible.dp is None or possible.se is None:
        return value, (0.0, 0.0), (0.0, 0.0)
    low = (possible.dp.low, possible.se.low) if possible.sure else (0.0, 0.0)
    return value, low, (min(possible.dp.high, TOP), min(possible.se.high, TOP))
