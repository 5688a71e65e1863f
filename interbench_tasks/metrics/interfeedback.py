"""Metrics of the feedback loop: accuracy, correction rates per arm, how the arms differ, and controls.

Rates are in [0, 1]. N = all episodes, repeats counted singly. With several providers, whatever depends on a test set is
there once for each, its name ending in `@LABEL`. `feedback_shares` and `feedback_controls` have the tables that say who
is counted; in short: a failed call leaves the episode unscored, never wrong; an arm that was dropped on purpose (leaked
feedback, nobody to borrow from) is left out.

The paper's:

- `accuracy`: right at round 0 / (N - n_failed). An unparseable answer is wrong.
  Source: InterFeedback (arXiv 2502.15027) eq. 1, as its tables compute it: 1 - #Neg/N.
- `correction_rate.<arm>`: corrected within max_rounds / test set. Source: eq. 2 over #Test, as Tables 1-2 compute it.
- `correction_rate.<arm>.round<r>`: corrected in round r, not before / test set, for every r the same denominator, so
  the rounds add up to `correction_rate.<arm>`; only with max_rounds > 1. Source: as Table 4 computes it.
- `correction_rate.<arm>.within<r>`: corrected in round r or before, over the same episodes.
- `correction_rate_on_negatives.<arm>`: corrected within max_rounds / wrong at round 0, unparseable included. An arm
  that was left out corrected nothing. Source: eq. 2 over #Neg. Leaving out unscored episodes moves it as it does
  `accuracy_after`.
- `n`, `n_negative` (wrong at round 0, unparseable included: #Neg), `n_test` (#Test), `n_invalid` (unparseable at
  round 0), `n_failed` (round 0 failed, or the episode never ran).

With `test_on: all_wrong` (the paper's human part) the test set is all that is wrong at round 0, unparseable answers
included: `n_test` = `n_negative`; `correction_rate_on_negatives` and `provider_solve_rate_on_negatives` are not there.
A reply that a person marks as right is right, in its round and at round 0.

Ours:

- `n_solved.<arm>.round<r>` and `n_solved.<arm>.never`: test episodes by the round that was right; with max_rounds > 1.
- `n_marked_right`: episodes with a reply that a person marked as right though the verifier took it for wrong.
- `accuracy_after.<arm>`: (right at round 0 + corrected in the arm) / (N - unscored). An episode outside the test set,
  one of the flip set too, and one whose arm was left out keep their round-0 result. Comparable between receivers,
  because all share N. Every unscored episode that is not `n_failed` was wrong at round 0, so leaving it out favours the
  arm: with `unscored` > 0 read `bounds`.
- `provider_solve_rate_on_negatives`: solved by the provider's own try / wrong and parseable at round 0.
- `difference.<a>-<b>`: mean of (corrected in a) - (corrected in b), in [-1, 1], over the test episodes scored in both
  arms; so where a leak dropped an arm, both are compared on the same rest.
- `net_bit_effect` = `simple` - `reask` and `net_content_effect` = `detail` - `mismatched`: such differences, of an arm
  and its placebo: what it does to be told that the answer is wrong, and what the explanation does by its content.
- `leak_rate.<arm>`: the leak guard fired for the target / test episodes where it looked at the feedback of round 1.
  `leak_placebo_rate.<arm>`: it fired for a wrong answer / those of them that have one to try. Both of the text that was
  written first: with `leak_guard: observe` the receiver saw it, with `rewrite` a leaking one was written again, so that
  the rate says how often the provider leaks, and what the receiver saw is in `n_rewritten` and `n_leak_dropped`.
- `n_leak_dropped.<arm>` (test episodes whose arm was dropped, because its feedback leaked also when written again) and
  `n_rewritten.<arm>` (with any feedback that was written again, dropped ones included); only with `rewrite`.

Ours, where the task has controls (an arm `reask` or `mismatched`, a `flip_sample`, or several providers):

- `elimination_floor`: mean of min(1, max_rounds / (k - 1)) over the multiple-choice episodes of the test set, k options
  each: the correction rate of a receiver that knows nothing, and rules out its wrong answer every round.
- `repeat_rate.<arm>`: round 1 gives the answer of round 0 again / test set.
- `same_answer_rate.<a>-<b>`: both arms give the same readable answer in round 1 / test episodes answered in both.
  `same_answer_rate.<arm>@<p>-<arm>@<q>`: likewise one arm, written by two providers, over the episodes in both test
  sets. An unreadable answer equals nothing. Free-form answers are compared as texts: lower bounds there, except that
  all right ones are the same.
- `flip_rate.<arm>`: a right answer is not right any more after one round / flip set, i.e. sampled episodes right at
  round 0 that the provider solves too. An unreadable answer is a flip. `n_flip`: size of the flip set. With a
  `flip_sample` only, as is
- `discrimination.<arm>`: corrected in round 1 / test set - `flip_rate.<arm>`, in [-1, 1]: 0 where the receiver changes
  its answer alike whether it was right or wrong. The first part is `correction_rate.<arm>` (`.round1` where there are
  more). It is no mean over episodes, so no episode contributes to it.

Unscored, and counted in `Estimate.unscored`: episodes whose call failed where the metric needed its reply. An episode
that may or may not belong to the test set (`unknown`, `failed`) is unscored in all metrics over the test set. `bounds`
are the smallest and the largest value over everything these episodes could have been. They know what is half known (a
round without success before the failed one; the one arm of two that was scored); the value does not, so that all rounds
of an arm are over the same episodes; where that puts it outside, `bounds` are widened to hold it. An arm that was left
out on purpose is not unscored and widens nothing; `feedback_shares` says where a failed call hides whether it would be.
Intervals: `intervals`; rows of one doc (repeats), or of one `cluster`, are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from interbench_tasks.metrics.feedback_controls import control_shares
from interbench_tasks.metrics.feedback_names import FeedbackLoopOptions, Lineup
from interbench_tasks.metrics.feedback_shares import (
    Share,
    base_shares,
    cases_from_summary,
    count_shares,
    marked_share,
)
from interbench_tasks.metrics.feedback_summary import summary_from_record
from interbench_tasks.metrics.intervals import Estimate, Interval, Ratio, estimates_from_ratios
from interbench_tasks.records import EpisodeRecord


class FeedbackLoopMetrics:
    """The metric set of the protocol `feedback_loop`."""

    def __init__(self, options: FeedbackLoopOptions) -> None:
        self._lineup = Lineup.from_options(options)
        self._names = tuple(self._lineup.rate_names())
        self._contrasts = self._lineup.contrasts()
        self._rates = tuple(name for name in self._names if name not in self._contrasts)
        self._counts = tuple(self._lineup.count_names())
        self._headline = frozenset(self._lineup.headline())

    def summary(self, record: EpisodeRecord) -> dict[str, Any]:
        """What the metrics need of a record; JSON-able, under 4 KB."""
        return summary_from_record(record, self._lineup)

    def contributions(self, summary: Mapping[str, Any]) -> dict[str, float]:
        """Metric -> this episode's own value, for each rate and difference it is scored in, and for all counts."""
        rates, counts = self._shares(summary)
        own = {name: float(rates[name].low) for name in self._rates if name in rates and rates[name].scored}
        return own | {name: float(counts[name].low) for name in self._counts}

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
        """All metrics, in the order to show; undefined ones are absent, without episodes all are.

        The order of `summaries` does not matter.
        """
        # Ranks deliver rows interleaved. Integer sums forgive that; sums of fractions do not.
        rows = sorted(summaries, key=lambda row: (row["doc_id"], row["repeat"]))
        if not rows:
            return {}
        shares = [self._shares(row) for row in rows]
        columns = {name: [rates.get(name) for rates, _ in shares] for name in self._rates}
        ratios = {name: _ratio(column, name) for name, column in columns.items()}
        table = estimates_from_ratios(ratios, [_cluster(row) for row in rows], contrasts=self._contrasts)
        in_order = {name: table[name] for name in self._names if name in table}
        return in_order | {name: _count([counts[name] for _, counts in shares]) for name in self._counts}

    def by_category(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Estimate]]:
        """Category -> its own table, sorted by category; episodes without a category are in none."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for summary in summaries:
            if summary["category"] is not None:
                rows.setdefault(summary["category"], []).append(summary)
        return {category: self.table(rows[category]) for category in sorted(rows)}

    def headline(self, names: Sequence[str]) -> list[str]:
        """The names for the harness's table; `Lineup.headline` says which, and why."""
        return [name for name in names if name in self._headline]

    def of_second_pass(self) -> list[str]:
        """The metrics of flips, and those of an arm that borrows: both are played when all first answers are there."""
        return [name for name in (*self._names, *self._counts) if self._lineup.is_of_second_pass(name)]

    def _shares(self, summary: Mapping[str, Any]) -> tuple[dict[str, Share], dict[str, Share]]:
        """What the episode adds to the rates, and to the counts."""
        cases = cases_from_summary(summary, self._lineup)
        rates = base_shares(cases, self._lineup) | control_shares(summary, cases, self._lineup)
        counts = count_shares(cases, self._lineup)
        return rates, counts | ({"n_marked_right": marked_share(summary, cases)} if self._lineup.may_be_marked else {})


def _cluster(row: Mapping[str, Any]) -> str:
    """The row's cluster; without one, its doc, because repeats of a doc are not independent."""
    return f"cluster {row['cluster']}" if row["cluster"] is not None else f"doc {row['doc_id']}"


def _ratio(shares: Sequence[Share | None], name: str) -> Ratio:
    """One metric's column. Args: shares[i] = None where row i is not counted."""
    graded = name.startswith("elimination_floor")
    counted = [share is not None and share.scored for share in shares]
    values = [share.low if share is not None and share.scored else 0 for share in shares]
    unscored = [share for share in shares if share is not None and not share.scored]
    return Ratio(
        values=np.array(values, dtype=np.float64 if graded else np.int64),
        counted=np.array(counted, dtype=np.bool_),
        paired=name.startswith(("difference.", "net_")),
        graded=graded,
        unscored=len(unscored),
        bounds=_bounds(math.fsum(values), sum(counted), unscored) if unscored else None,
    )


def _bounds(total: float, n: int, unscored: Sequence[Share]) -> Interval:
    """The ratio's range over all outcomes of the unscored rows, widened to hold its value, which leaves them out.

    Formula: over every set M of the rows that may be outside the denominator,
    min over M of (total + sum of low over the other unscored rows and M) / (n + their number), likewise the maximum of
    high. Of each number of rows the M of the least `low` (greatest `high`) is the extreme one, so M need only be the
    first of them, the first two, ..., all. A row that was left out on purpose is not among `unscored`.

    Args: total = sum of the scored values, n = how many.
    """
    lows = _means(total, n, [share.low for share in unscored if not share.may_be_out],
                  sorted(share.low for share in unscored if share.may_be_out))  # fmt: skip
    highs = _means(total, n, [share.high for share in unscored if not share.may_be_out],
                   sorted((share.high for share in unscored if share.may_be_out), reverse=True))  # fmt: skip
    value = [total / n] if n else []
    return Interval(min([*value, *lows]), max([*value, *highs]))


def _means(total: float, n: int, counted: Sequence[float], perhaps: Sequence[float]) -> list[float]:
    """The ratio with all of `counted` and none of `perhaps`, the first one, the first two, ..., all."""
    sums = accumulate(perhaps, initial=total + math.fsum(counted))
    sizes = range(n + len(counted), n + len(counted) + len(perhaps) + 1)
    return [found / size for found, size in zip(sums, sizes, strict=True) if size]


def _count(shares: Sequence[Share]) -> Estimate:
    total = int(sum(share.low for share in shares))
    unscored = sum(not share.scored for share in shares)
    return Estimate(
        value=float(total),
        n=len(shares) - unscored,
        unscored=unscored,
        count=total,
        bounds=Interval(float(total), float(total + unscored)) if unscored else None,
        method="count",
    )
