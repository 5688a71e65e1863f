"""Metrics of conversations with memory: what judges give per ability, and what can be counted without them.

Scores are in points (0 to 5 with the rubrics that ship), everything else is in [0, 1]. Each metric is there once for
each memory arm, its name ending in the arm. `mmrc_answers` has the table that says which answer is counted; in short:
a call or a judge that failed leaves the answer unscored, never 0. n = questions.

The paper's (MMRC, arXiv 2502.11903):

- `score.<ability>.<arm>`: mean score of the open questions of an ability (IE, CR, IU, IM, MR, AR).
- `overall.<arm>`: unweighted mean of the six. Absent where one is missing. Source: derived from Table 3,
  where it gives 17 of 21 rows exactly, and 4 with a difference of 0.01.
- `ep.<arm>`: mean over IE questions of |items named and right| / |items named|; 0 where none is named. A precision.
- `imp.<arm>`: mean over IM questions of |pictures named and right| / |right pictures|. The paper calls it precision; it
  is a recall. Macro: per question; ours, the paper does not say.
- `rp.<arm>`: replies that decline / all AR questions. A reply declines by its words (`answers/refusals.py`), else by
  the judges' label; unscored where both fail. Over the same questions as `score.AR`.
- `difference.<ability>.<arm>-<base>`: mean of score - base's score over the questions scored in both arms; Table 4's
  deltas. The base is the first arm of the YAML. `difference.overall...`: unweighted mean of the six.

Ours:

- `ep_recall`, `ep_f1`: of the same items. `imp_micro`: over all pictures together. `imp_precision` (per question; 0
  where none is named), `imp_precision_micro`: |pictures named and right| / |pictures named|.
- `accuracy.<arm>`, `accuracy.<ability>.<arm>`: right options / multiple-choice and true-or-false questions, without a
  judge. They are not part of the scores: the paper does not say how the two combine, so they do not.
- Counts: `n` conversations, `n_failed` of which no question has an answer, `n_questions`; `n_judge_failed` of all arms
  together; of an arm's questions `n_unanswered`, `n_judge_failed` (answered, without a verdict or a judgement),
  `n_cut_replies` (at the token limit; they count as answers), `n_overflow` (did not fit the model); `n_notes` taken, of
  which `n_notes_unreadable` kept the old ones, and `n_notes_cut` were cut: to `notes.max_chars`, or because the
  notetaker reached its token limit.

A conversation that was never started has no known questions: it is in `n_failed`, and in no `unscored`.
Intervals: `sums`; questions of one conversation, of its repeats and of conversations of one `cluster` are not
independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.hookspecs import Composed
from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.metrics.mmrc_names import ITEM_METRICS, LOSSES, NOTE_COUNTS, ConversationOptions, Lineup
from interbench_tasks.metrics.mmrc_summary import summary_from_record
from interbench_tasks.metrics.mmrc_units import units_from_record
from interbench_tasks.metrics.sums import ZERO_TO_ONE, Sums, estimates_from_sums
from interbench_tasks.records import EpisodeRecord

Cell = Sequence[float]
"""Sums of one row: scored, unscored, sum, sum of squares[, least and greatest sum of the unscored]. A summary leaves
out the squares where they are the sum itself."""
NO_QUESTION: Cell = (0, 0, 0, 0)


class ConversationMetrics:
    """The metric set of the protocol `conversation`."""

    def __init__(self, options: ConversationOptions) -> None:
        self.lineup = Lineup.from_options(options)
        self._names = tuple(self.lineup.rate_names())
        self._means = self.lineup.means()
        self._counts = tuple(self.lineup.count_names())
        self._headline = frozenset(self.lineup.headline())
        self.bare = self.lineup.bare()

    @property
    def scale(self) -> Interval | None:
        """Lowest and highest score of a judge; None where nobody judges."""
        return self.lineup.scale

    def summary(self, record: EpisodeRecord) -> dict[str, Any]:
        """What the metrics need of a record; JSON-able, under 4 KB for up to four arms, whatever the questions."""
        return summary_from_record(record, self.lineup)

    def contributions(self, summary: Mapping[str, Any]) -> dict[str, float]:
        """Metric -> this conversation's own mean, for each metric that it is scored in, and all counts."""
        cells = dict(_cells(summary))
        own = {name: cell[2] / cell[0] for name, cell in cells.items() if cell[0]}
        for name, parts in self._means.items():
            if all(part in own for part in parts):
                own[name] = sum(own[part] for part in parts) / len(parts)
        counts = _counts(summary)
        found = {name: float(own[name]) for name in self._names if name in own}
        return found | {name: float(counts.get(name, 0)) for name in self._counts}

    def parts(self, summary: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        """Metric -> (sum, questions or pictures), for each metric that this conversation is scored in."""
        return {name: (float(cell[2]), float(cell[0])) for name, cell in _cells(summary) if cell[0]}

    def units(self, record: EpisodeRecord) -> dict[str, dict[str, tuple[float, float]]]:
        """Metric -> question -> (value, weight), for each question that is scored; summed they are `parts`."""
        return units_from_record(record, self.lineup)

    def composites(self) -> dict[str, Composed]:
        """The overalls, and the differences of overalls, each the unweighted mean of the six."""
        return {name: Composed.mean(parts) for name, parts in self._means.items()}

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
        """All metrics, in the order to show; undefined ones are absent, without conversations all are.

        The order of `summaries` does not matter.
        """
        rows = sorted(summaries, key=lambda row: (row["doc_id"], row["repeat"]))
        if not rows:
            return {}
        cells = [dict(_cells(row)) for row in rows]
        single = [name for name in self._names if name not in self._means]
        columns = {name: self._column(name, [own.get(name) for own in cells]) for name in single}
        found = estimates_from_sums(columns, [_cluster(row) for row in rows], means=self._means)
        counts = [_counts(row) for row in rows]
        in_order = {name: found[name] for name in self._names if name in found}
        return in_order | {name: _count([own.get(name, 0) for own in counts]) for name in self._counts}

    def headline(self, names: Sequence[str]) -> list[str]:
        """The names for the harness's table; `Lineup.headline` says which, and why."""
        return [name for name in names if name in self._headline]

    def _column(self, name: str, cells: Sequence[Cell | None]) -> Sums:
        """One metric's sums over the rows. Args: cells[i] = None where row i has no question for it."""
        kind = name.split(".")[0]
        given = [cell if cell is not None else NO_QUESTION for cell in cells]
        span, graded, points = ZERO_TO_ONE, kind in (*ITEM_METRICS, "imp", "imp_precision"), None
        if kind in ("score", "difference") and self.lineup.scale is not None:
            low, high = self.lineup.scale
            span, graded, points = self.lineup.scale, True, high
            if kind == "difference":
                span = Interval(low - high, high - low)
        ends = [(cell[4], cell[5]) if len(cell) > 4 else (cell[1] * span.low, cell[1] * span.high) for cell in given]
        return Sums(
            totals=np.array([cell[2] for cell in given], dtype=np.float64),
            squares=np.array([cell[3] if len(cell) > 3 else cell[2] for cell in given], dtype=np.float64),
            counted=np.array([cell[0] for cell in given], dtype=np.int64),
            unscored=int(sum(cell[1] for cell in given)),
            lowest=float(sum(low for low, _ in ends)),
            highest=float(sum(high for _, high in ends)),
            span=span,
            graded=graded,
            points=points,
            open_ended=kind == "imp_precision_micro",
        )


def _cells(summary: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """Each metric that the row has questions for, with its sums."""
    for arm, own in summary["arms"].items():
        for ability, cell in own.get("score", {}).items():
            yield f"score.{ability}.{arm}", cell
        for name in (*ITEM_METRICS, "imp", "imp_precision", "rp"):
            if name in own:
                yield f"{name}.{arm}", own[name]
        if "pictures" in own:
            hits, wanted, named, lost = own["pictures"]
            yield f"imp_micro.{arm}", (wanted, lost, hits)
            yield f"imp_precision_micro.{arm}", (named, own["imp"][1], hits)
        chosen = own.get("accuracy", {})
        if chosen:
            yield f"accuracy.{arm}", [sum(cell[place] for cell in chosen.values()) for place in range(3)]
        for ability, cell in chosen.items():
            yield f"accuracy.{ability}.{arm}", cell
    base = next(iter(summary["arms"]), "")
    for arm, own in summary["differences"].items():
        for ability, cell in own.items():
            yield f"difference.{ability}.{arm}-{base}", cell


def _counts(summary: Mapping[str, Any]) -> dict[str, int]:
    found = {"n": 1, "n_failed": int(summary["status"] != "finished"), "n_questions": summary["n_questions"]}
    for arm, own in summary["arms"].items():
        found |= {f"{name}.{arm}": number for name, number in zip(LOSSES, own["lost"], strict=True)}
        found["n_judge_failed"] = found.get("n_judge_failed", 0) + own["lost"][LOSSES.index("n_judge_failed")]
    return found | dict(zip(NOTE_COUNTS, summary["notes"], strict=True))


def _count(values: Sequence[int]) -> Estimate:
    return Estimate(value=float(sum(values)), n=len(values), count=sum(values), method="count")


def _cluster(row: Mapping[str, Any]) -> str:
    """The row's cluster; without one, its doc, because repeats of a doc are not independent."""
    return f"cluster {row['cluster']}" if row["cluster"] is not None else f"doc {row['doc_id']}"


__all__ = ["ABILITIES", "ConversationMetrics"]
