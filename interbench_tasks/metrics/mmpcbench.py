"""Metrics of critiques: whether a model challenges a flawed input, names the cause, and deals with it well.

`critique_votes` has the rules of the panel, and what a missing judge means: an item is unscored where it could have
decided, never 0. Every metric has bounds over all that missing judges, and failed calls, could have said.

The paper's (MMPCBench, arXiv 2608.29286), over items that one thing is wrong with:

- `eda`: items where the majority says that something was detected / items.
- `dp`, `se`: mean diagnosis and mean strategy score over the detected items, in [0, 2].
- `pcq`: eda times a mean of dp/2 and se/2; see `pcq.py`. 0 where nothing was detected; `dp` and `se` are absent then.
- `strategy.<s>`: detected items whose majority strategy is s (`split` without one) / detected items.
- All of them again per type, e.g. `pcq.MP`, where the rows are of several types; per subcategory in `categories`.
- `eda_r`, `eda_f`: detected in the reasoning, and in the final answer / items whose reply has reasoning.
- `ddr`: of the items detected in the reasoning, those that are not in the final answer. Not 1 - eda_f/eda_r, for some
  items are detected in the final answer alone.
- `dqd`: mean of dp of the reasoning - dp of the answer, over items detected in both, in [-2, 2].
- Of items that two things are wrong with: `meda` = detected / items; `type_coverage` = mean share of the two defects
  that the majority says were identified; `all_detected` = both. `..._pooled`: the same of each judge's own verdict,
  over all pairs of judge and item.
- Of valid items: `urr_v` = declined as a whole by the majority's verdict / items.

Ours: `far_v` = any false alarm / valid items. `precision`, `recall` (the same number as `eda`) and `f1` of detection,
where there are flawed and valid items: TP = flawed and detected, FA = valid with a false alarm, FN = flawed and not
detected; dual errors are not among them. `<metric>.<style>`: of the items that were asked in a further style;
`shift_eda.<style>`, `shift_pcq.<style>`: that style - the task's own, over the items that both have scored.
`<metric>@<variant>`: of a variant of a sweep, e.g. `eda@effort=low`, with `eda_r` to `dqd`; `shift_<metric>@<variant>`
(`eda`, `eda_r`, `pcq`): that variant - the task's own settings, and `shift_<metric>@<one>-<other>`: one variant -
another, over the items that both have scored.
`solved_after_clarification`: right answers / items whose model asked back and was told (`n_never_told`: those that only
other judges, asked later, take for asking back).

Counts: `n_undecided` flawed items, of which missing judges could have decided whether anything was detected (or below
the quorum); `n_partial`: judged without all judges; `n_no_trace` replies to flawed items without reasoning;
`n_no_answer` replies that end while thinking (nothing was challenged); `n_judge_missing` verdicts that never came;
`n_judge_asked_again`. An item that was never started, and of a data set whose rows are read late, may have no known
kind: it is in `n_failed` only.

Intervals: `sums`; `pcq`, `f1` and `shift_pcq` are drawn from the bootstrap by cluster (items of one `cluster`, and
repeats of one item, are drawn together), or where all draws are equal, a Wilson interval in which a
cluster counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interbench_tasks.critique_votes import Panel
from interbench_tasks.flaws import TYPES, type_of
from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.cases import Case, Column
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.composed import composed_pcq
from interbench_tasks.metrics.critique_panel import CritiquePanel
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.mmpcbench_cases import cases_of, panels_of
from interbench_tasks.metrics.mmpcbench_names import (
    COUNTS,
    HEADLINE,
    MAIN,
    CritiqueOptions,
    branch_of,
    kind_of_metric,
    rate_names,
    suffix_of,
)
from interbench_tasks.metrics.mmpcbench_ratios import Items, f1_estimate, pcq_estimates
from interbench_tasks.metrics.mmpcbench_summary import summary_from_record
from interbench_tasks.metrics.pcq import TOP, pcq
from interbench_tasks.metrics.sums import ZERO_TO_ONE, estimates_from_sums
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.sweeps import pairs_of

SPANS = {
    "share": ZERO_TO_ONE,
    "score": Interval(0.0, TOP),
    "score_difference": Interval(-TOP, TOP),
    "share_difference": Interval(-1.0, 1.0),
}
GRADED = ("type_coverage", "type_coverage_pooled")
"""Shares that are fractions of one item."""


class CritiqueMetrics:
    """The metric set of the protocol `critique`."""

    def __init__(self, options: CritiqueOptions) -> None:
        self._declared = max(1, len(options.judges))
        self._quorum = options.quorum
        self._combine = options.pcq_combine
        self._judge_reasoning = options.judge_reasoning
        self._variants = tuple(options.variants)
        self._branches = (*options.more_styles, *self._variants)
        self._names = tuple(rate_names(options.more_styles, self._variants))

    def summary(self, record: EpisodeRecord) -> dict[str, Any]:
        """Every judge's vote; JSON-able; under 4 KB for 15 judges, or 3 and 8 variants."""
        return summary_from_record(record, judge_reasoning=self._judge_reasoning)

    def contributions(self, summary: Mapping[str, Any]) -> dict[str, float]:
        """Metric -> this item's own value, for each metric that it is scored in, and all counts."""
        values: dict[str, list[float]] = {}
        panels = self._panels(summary)
        for name, case in self._cases(summary, panels):
            if case.scored and case.value is not None:
                values.setdefault(name, []).append(case.value)
        own = {name: sum(found) / len(found) for name, found in values.items()}
        for suffix in ("", *map(suffix_of, self._branches)):
            if f"eda{suffix}" in own and (own[f"eda{suffix}"] == 0 or f"se{suffix}" in own):
                parts = own[f"eda{suffix}"], own.get(f"dp{suffix}"), own.get(f"se{suffix}")
                own[f"pcq{suffix}"] = pcq(*parts, self._combine)
        counts = self._counts(summary, panels.get(""))
        return {name: own[name] for name in self._names if name in own} | {name: float(counts[name]) for name in COUNTS}

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
        """All metrics, in the order to show; undefined ones are absent, without items all are.

        The order of `summaries` does not matter.
        """
        rows = sorted(summaries, key=lambda row: (row["doc_id"], row["repeat"]))
        if not rows:
            return {}
        panels = [self._panels(row) for row in rows]
        found = self._rates(rows, panels)
        types = _types_of(rows)
        for of_type in types if len(types) > 1 else ():
            # From its own rows alone, so that it is the same number, with the same interval, in a table of that type.
            places = [place for place, row in enumerate(rows) if _is_of(row, of_type)]
            own = self._rates([rows[place] for place in places], [panels[place] for place in places])
            found |= {f"{name}.{of_type}": own[name] for name in MAIN if name in own}
        in_order = {name: found[name] for name in self._names if name in found}
        counts = [self._counts(row, own.get("")) for row, own in zip(rows, panels, strict=True)]
        return in_order | {name: _count([own[name] for own in counts]) for name in COUNTS}

    def _rates(self, rows: Sequence[Mapping[str, Any]], panels: Sequence[Mapping[str, Panel]]) -> dict[str, Estimate]:
        """All metrics but the counts, and those of single types."""
        clusters = [_cluster(row) for row in rows]
        columns = self._columns(rows, panels)
        sums = {name: column.sums(len(rows)) for name, column in columns.items()}
        found = estimates_from_sums(sums, clusters)
        found = {name: columns[name].with_bounds(estimate) for name, estimate in found.items()}
        items = self._items(rows, panels)
        found |= pcq_estimates(items, clusters, self._combine)
        if {"far_v", "eda"} <= found.keys():
            found |= f1_estimate(sums, columns, clusters)
        return found

    def headline(self, names: Sequence[str]) -> list[str]:
        """The names for the harness's table; all the others are in `metrics.json`."""
        return [name for name in names if name in HEADLINE]

    def composites(self) -> dict[str, Composed]:
        """Metric -> how it comes from the means of others: PCQ, of all items, of each type, style and variant."""
        suffixes = ("", *(f".{of_type}" for of_type in TYPES), *map(suffix_of, self._branches))
        return {f"pcq{suffix}": composed_pcq(suffix, self._combine) for suffix in suffixes}

    @property
    def panel(self) -> CritiquePanel:
        """What each judge said, for agreement and for rankings by smaller panels."""
        return CritiquePanel(combine=self._combine)

    # --- its parts ----------------------------------------------------------------------------------------------------

    def _panels(self, summary: Mapping[str, Any]) -> dict[str, Panel]:
        return panels_of(summary, declared=self._declared, quorum=self._quorum)

    def _cases(self, summary: Mapping[str, Any], panels: Mapping[str, Panel]) -> Iterator[tuple[str, Case]]:
        return cases_of(summary, panels, declared=self._declared, quorum=self._quorum)

    def _columns(self, rows: Sequence[Mapping[str, Any]], panels: Sequence[Mapping[str, Panel]]) -> dict[str, Column]:
        """Each metric's cases, without those of single types, and those that say nothing new for these rows."""
        cases: dict[str, tuple[list[int], list[Case]]] = {}
        for place, row in enumerate(rows):
            for name, case in self._cases(row, panels[place]):
                places, found = cases.setdefault(name, ([], []))
                places.append(place)
                found.append(case)
        kinds = {row["kind"] for row in rows}
        mixed = {"flawed", "valid"} <= kinds
        left_out = {"precision", "recall"} if not mixed else set()
        return {
            name: _column(name, places, found)
            for name, (places, found) in cases.items()
            if name not in left_out and not _is_of_a_type(name)
        }

    def _items(self, rows: Sequence[Mapping[str, Any]], panels: Sequence[Mapping[str, Panel]]) -> dict[str, Items]:
        """Suffix ('' or `.formal`) -> the panels of its items, for PCQ; a style with those of its base."""
        found = {"": Items.of({place: own[""] for place, own in enumerate(panels) if own})}
        pairs = [(branch, "", suffix_of(branch)) for branch in self._branches]
        pairs += [(one, other, f"@{one}-{other}") for one, other in pairs_of(self._variants)]
        for one, other, suffix in pairs:
            asked = {place: own for place, own in enumerate(panels) if one in own and other in own}
            found[suffix] = Items.of(
                {place: own[one] for place, own in asked.items()},
                base={place: own[other] for place, own in asked.items()},
                shift_only=other != "",
            )
        return {suffix: items for suffix, items in found.items() if items.panels}

    def _counts(self, summary: Mapping[str, Any], panel: Panel | None) -> dict[str, int]:
        kind, cell = summary["kind"], summary["votes"].get("")
        votes = list(cell.values()) if isinstance(cell, Mapping) else []
        n_known = sum(vote is not None for vote in votes)
        missing, again = summary["lost"]
        return {
            "n": 1,
            "n_failed": int(summary["status"] != "finished"),
            **{f"n_{name}": int(kind == name) for name in ("flawed", "dual", "valid")},
            "n_undecided": int(panel is not None and panel.detected is None),
            "n_partial": int(0 < n_known < self._declared),
            "n_split": int(panel is not None and panel.strategy == "split"),
            "n_no_trace": int(kind == "flawed" and summary["traced"] is False),
            "n_no_answer": int(cell == "no_answer"),
            "n_judge_missing": missing,
            "n_judge_asked_again": again,
            "n_cut_replies": summary["cut"],
            "n_never_told": summary.get("never_told", 0),
        }


def _types_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({type_of(row["category"]) for row in rows if row["kind"] == "flawed"})


def _is_of(row: Mapping[str, Any], of_type: str) -> bool:
    return bool(row["kind"] == "flawed") and type_of(row["category"]) == of_type


def _is_of_a_type(name: str) -> bool:
    return not branch_of(name) and name.partition(".")[2] in TYPES


def _column(name: str, rows: Sequence[int], cases: Sequence[Case]) -> Column:
    kind = kind_of_metric(name)
    scores = kind.startswith("score")
    return Column(
        rows=rows,
        cases=cases,
        span=SPANS[kind],
        graded=scores or kind == "share_difference" or name in GRADED,
        points=TOP if scores else None,
    )


def _count(values: Sequence[int]) -> Estimate:
    return Estimate(value=float(sum(values)), n=len(values), count=sum(values), method="count")


def _cluster(row: Mapping[str, Any]) -> str:
    """The row's cluster; without one, its doc, because repeats of a doc are not independent."""
    return f"cluster {row['cluster']}" if row["cluster"] is not None else f"doc {row['doc_id']}"
