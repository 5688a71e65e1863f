"""Metrics of the feedback loop: accuracy, correction rates per arm, and how the arms differ.

Rates are in [0, 1]. N = all episodes, repeats counted singly. Formulas (`feedback_shares` says who is counted):

- `accuracy`: right at round 0 / (N - n_failed). An unparseable answer is wrong.
  Source: InterFeedback (arXiv 2502.15027) eq. 1, as its tables compute it: 1 - #Neg/N.
- `accuracy_after.<arm>`: (right at round 0 + corrected in the arm) / (N - unscored). An episode outside the test set
  gets no feedback and keeps its round-0 result. Comparable between receivers, because all share N.
  Every unscored episode that is not `n_failed` was wrong at round 0, so leaving it out favours the arm: with
  `unscored` > 0 read `bounds`. Source: ours.
- `correction_rate.<arm>`: corrected within max_rounds / test set. Source: eq. 2 over #Test, as Tables 1-2 compute it.
- `correction_rate.<arm>.round<r>`: corrected in round r, not before / test set, for every r the same denominator, so
  the rounds add up to `correction_rate.<arm>`; only with max_rounds > 1. Source: as Table 4 computes it.
- `correction_rate_on_negatives.<arm>`: corrected within max_rounds / wrong at round 0, unparseable included.
  Source: eq. 2 over #Neg. Leaving out unscored episodes moves it as it does `accuracy_after`.
- `provider_solve_rate_on_negatives`: solved by the provider's own try / wrong and parseable at round 0. Source: ours.
- `difference.<a>-<b>`: mean of (corrected in a) - (corrected in b), in [-1, 1], over the test episodes scored in both
  arms. Source: ours.
- `n`, `n_negative` (wrong at round 0, unparseable included: #Neg), `n_test` (#Test), `n_invalid` (unparseable at
  round 0), `n_failed` (round 0 failed, or the episode never ran).

Unscored, and counted in `Estimate.unscored`: episodes whose call failed where the metric needed its reply. An episode
that may or may not belong to the test set (`unknown`, `failed`) is unscored in all metrics over the test set. `bounds`
are the smallest and the largest value over everything these episodes could have been. They know what is half known (a
round without success before the failed one; the one arm of two that was scored), the value does not: in the metrics by
round and in the differences the value may lie outside.
Intervals: `intervals`; rows of one doc (repeats), or of one `cluster`, are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from interbench_tasks.metrics.feedback_shares import COUNTS, Share, count_shares, rate_shares
from interbench_tasks.metrics.feedback_summary import summary_from_record
from interbench_tasks.metrics.intervals import Estimate, Interval, Ratio, estimates_from_ratios
from interbench_tasks.records import EpisodeRecord

MAX_HEADLINE_ROWS = 25
"""Rows in the harness's table, siblings included."""
ROWS_OF_A_RATE = 5
"""The rate and its siblings .ci95_low, .ci95_high, .n, .unscored; a count has no siblings."""


class FeedbackLoopOptions(Protocol):
    """What the metrics need to know of the protocol's options."""

    @property
    def arms(self) -> Sequence[str]:
        """Arms, in the order to show; no name twice."""
        ...

    @property
    def max_rounds(self) -> int:
        """Feedback rounds of an arm, at least 1."""
        ...


class FeedbackLoopMetrics:
    """The metric set of the protocol `feedback_loop`."""

    def __init__(self, options: FeedbackLoopOptions) -> None:
        self._arms = tuple(options.arms)
        self._max_rounds = options.max_rounds
        self._rates = tuple(_rate_names(self._arms, self._max_rounds))

    def summary(self, record: EpisodeRecord) -> dict[str, Any]:
        """What the metrics need of a record; JSON-able, under 4 KB."""
        return summary_from_record(record, self._arms)

    def contributions(self, summary: Mapping[str, Any]) -> dict[str, float]:
        """Metric -> this episode's own value, for each rate and difference it is scored in, and for all counts."""
        rates = rate_shares(summary, self._arms, self._max_rounds)
        own = {name: float(rates[name].low) for name in self._rates if name in rates and rates[name].scored}
        return own | {name: float(share.low) for name, share in count_shares(summary).items()}

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
        """All metrics, in the order to show; undefined ones are absent, without episodes all are.

        The order of `summaries` does not matter.
        """
        # Ranks deliver rows interleaved. Integer sums forgive that; whatever is added later may not.
        rows = sorted(summaries, key=lambda row: (row["doc_id"], row["repeat"]))
        if not rows:
            return {}
        shares = [rate_shares(row, self._arms, self._max_rounds) for row in rows]
        ratios = {name: _ratio([share.get(name) for share in shares], name) for name in self._rates}
        counts = [count_shares(row) for row in rows]
        table = estimates_from_ratios(ratios, [_cluster(row) for row in rows])
        return table | {name: _count([share[name] for share in counts]) for name in COUNTS}

    def by_category(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Estimate]]:
        """Category -> its own table, sorted by category; episodes without a category are in none."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for summary in summaries:
            if summary["category"] is not None:
                rows.setdefault(summary["category"], []).append(summary)
        return {category: self.table(rows[category]) for category in sorted(rows)}

    def headline(self, names: Sequence[str]) -> list[str]:
        """The names for the harness's table: what fits into MAX_HEADLINE_ROWS, by what a reader needs first.

        1. `accuracy`, the counts and `correction_rate.<arm>`: a row of the paper's tables (accuracy, #Neg, #Test, one
           rate an arm), and how much of it is unparseable or failed.
        2. `difference` of the first two arms: whether detail beats simple cannot be read from two intervals.
        3. `accuracy_after.<arm>`, which has room with one arm only; its value follows from the rows of 1:
           accuracy + correction_rate * n_test / n, where nothing is unscored.
        With two arms, 1 and 2 are exactly 25 rows; with more, the correction rates of the first three have room. The
        choice depends on the options alone, so that the tables of two runs have the same rows. All else, rounds and all
        negatives too, is in metrics.json and the report.
        """
        rates = ["accuracy", *(f"correction_rate.{arm}" for arm in self._arms)]
        rates += [f"difference.{one}-{other}" for one, other in combinations(self._arms[:2], 2)]
        rates += [f"accuracy_after.{arm}" for arm in self._arms]
        chosen = {*COUNTS, *rates[: (MAX_HEADLINE_ROWS - len(COUNTS)) // ROWS_OF_A_RATE]}
        return [name for name in names if name in chosen]


def _rate_names(arms: Sequence[str], max_rounds: int) -> list[str]:
    names = ["accuracy", *(f"accuracy_after.{arm}" for arm in arms), *(f"correction_rate.{arm}" for arm in arms)]
    if max_rounds > 1:
        names += [f"correction_rate.{arm}.round{number}" for arm in arms for number in range(1, max_rounds + 1)]
    names += [f"correction_rate_on_negatives.{arm}" for arm in arms]
    names.append("provider_solve_rate_on_negatives")
    return names + [f"difference.{one}-{other}" for one, other in combinations(arms, 2)]


def _cluster(row: Mapping[str, Any]) -> str:
    """The row's cluster; without one, its doc, because repeats of a doc are not independent."""
    return f"cluster {row['cluster']}" if row["cluster"] is not None else f"doc {row['doc_id']}"


def _ratio(shares: Sequence[Share | None], name: str) -> Ratio:
    """One metric's column; `shares[i]` is None where row i is not counted."""
    counted = [share is not None and share.scored for share in shares]
    values = [share.low if share is not None and share.scored else 0 for share in shares]
    unscored = [share for share in shares if share is not None and not share.scored]
    return Ratio(
        values=np.array(values, dtype=np.int64),
        counted=np.array(counted, dtype=np.bool_),
        paired=name.startswith("difference."),
        unscored=len(unscored),
        bounds=_bounds(sum(values), sum(counted), unscored),
    )


def _bounds(total: int, n: int, unscored: Sequence[Share]) -> Interval | None:
    """The ratio's range over all outcomes of the unscored rows.

    A row that may be outside the denominator has the whole range of the metric as [low, high]; to count it with the
    end value moves the ratio as far as it can go, so counting all of them gives the extremes.
    """
    if not unscored:
        return None
    rows = n + len(unscored)
    return Interval(
        (total + sum(share.low for share in unscored)) / rows, (total + sum(share.high for share in unscored)) / rows
    )


def _count(shares: Sequence[Share]) -> Estimate:
    total = sum(share.low for share in shares)
    unscored = sum(not share.scored for share in shares)
    return Estimate(
        value=float(total),
        n=len(shares) - unscored,
        unscored=unscored,
        count=total,
        bounds=Interval(float(total), float(total + unscored)) if unscored else None,
        method="count",
    )
