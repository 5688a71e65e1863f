"""Where a memory fails: scores of conversations by turns, evidence, updates, pictures, topic and modality.

`analysed` gives all of them, in the order of their bins. Only judged answers count (`mmrc_answers`). Questions of one
conversation or cluster are resampled together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import DRAWS, Estimate
from interbench_tasks.metrics.mmrc_answers import Answer, answers_from_record, history_of, pictures_in
from interbench_tasks.metrics.sums import Sums, estimates_from_sums, mean_of_scored
from interbench_tasks.records import EpisodeRecord, Question, Seen, Verdict

TURN_BINS = ((4, 6), (6, 10), (10, 14), (14, 17), (17, 20), (20, 23))
"""Numbers of turns, [low, high). Source: MMRC, Fig 7, whose last bin is [20, 22]."""
OPEN_END = 1_000_000
DISTANCE_BINS = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 25), (25, 100), (100, OPEN_END))
"""Turns between the evidence and the questions, [low, high). Ours."""
PICTURE_BINS = ((0, 1), (1, 3), (3, 6), (6, 11), (11, OPEN_END))
"""Pictures of a conversation, [low, high). Ours."""
DAILY = ("Travel", "Music", "Film", "Sport", "Game", "House", "Food", "Shopping")
PROFESSIONAL = ("History", "Economy", "Biology", "Computer", "Society", "Job Career")
"""Source: MMRC, Fig 5."""
Key = int | str | None
Place = Literal["in_view", "in_notes", "cut"]
ZERO_TO_FIVE = Interval(0.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One judged answer with what the analyses look at."""

    question: Question
    arm: str
    score: float | None
    """None where it is unscored."""
    cluster: str
    conversation: str
    topic: str | None
    n_turns: int
    """User turns of the conversation before the questions."""
    n_pictures: int
    seen: Seen | None
    """What of the past was shown; None where all of it was, or it was never asked."""

    @property
    def distance(self) -> int | None:
        """Turns between the newest evidence and the question, 0 where it stands in the last turn; None without any."""
        evidence = self.question.evidence
        return self.n_turns - 1 - max(evidence) if evidence and max(evidence) < self.n_turns else None

    @property
    def position(self) -> float | None:
        """Where the newest evidence stands, from 0 (first turn) to 1 (last turn); None without any."""
        if self.distance is None:
            return None
        return 1 - self.distance / (self.n_turns - 1) if self.n_turns > 1 else 1.0

    @property
    def n_updates(self) -> int | None:
        """How often what is asked for was changed, from the question's `extra.updates`; None where that is missing."""
        text = self.question.extra.get("updates", "")
        return int(text) if text.strip().isdigit() else None

    @property
    def place(self) -> Place | None:
        """Where the evidence stood when the question came; None where the data does not name any.

        `in_view`: all of it in the turns that were shown. `in_notes`: some was cut, and notes were shown, which may
        hold it. `cut`: some was cut, and there were no notes.
        """
        if not self.question.evidence:
            return None
        if self.seen is None or min(self.question.evidence) >= self.seen.first_turn:
            return "in_view"
        return "in_notes" if self.seen.notes_chars else "cut"


def rows_from(records: Iterable[EpisodeRecord], arms: Sequence[str]) -> list[Row]:
    """Every judged question of every conversation in every arm, unscored ones included."""
    found: list[Row] = []
    for record in records:
        n_pictures = pictures_in(record)
        n_turns = {arm: len(history_of(record, arm)) for arm in arms}
        for answer in answers_from_record(record, arms):
            if answer.is_open:
                found.append(_row(record, answer, n_turns[answer.arm], n_pictures))
    return found


def _row(record: EpisodeRecord, answer: Answer, n_turns: int, n_pictures: int) -> Row:
    doc = f"doc {record.doc_id}"
    return Row(
        question=answer.question,
        arm=answer.arm,
        score=answer.score,
        cluster=doc if record.cluster is None else f"cluster {record.cluster}",
        conversation=f"{record.episode_id} {record.repeat}",
        topic=record.category,
        n_turns=n_turns,
        n_pictures=n_pictures,
        seen=answer.turn.seen if answer.turn is not None else None,
    )


# --- by one property ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A way to put answers into bins."""

    bin_of: Callable[[Row], Key]
    """The bin of a row; None where it is in none."""
    bins: Callable[[Sequence[Row]], Mapping[Key, str]]
    """Bin -> its name, in the order to show."""


def analysed(
    rows: Sequence[Row], names: Sequence[str] | None = None, *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS
) -> dict[str, dict[str, Estimate]]:
    """Analysis -> bin -> mean score, all from one set of resamples; a bin without a scored answer is absent.

    Args: rows = of one arm, and of one ability or several; names = of ANALYSES, None: all; span = lowest and highest
        score.
    """
    scores = np.array([row.score if row.score is not None else 0.0 for row in rows], dtype=np.float64)
    scored = np.array([row.score is not None for row in rows], dtype=np.bool_)
    columns: dict[str, Sums] = {}
    places: dict[str, tuple[str, str]] = {}
    for name in ANALYSES if names is None else names:
        analysis = ANALYSES[name]
        found = [analysis.bin_of(row) for row in rows]
        for key, told in analysis.bins(rows).items():
            within = np.array([place == key for place in found], dtype=np.bool_)
            columns[f"{name} {told}"] = _column(scores, scored, within, span)
            places[f"{name} {told}"] = (name, told)
    estimates = estimates_from_sums(columns, [row.cluster for row in rows], draws=draws)
    tables: dict[str, dict[str, Estimate]] = {name: {} for name in (ANALYSES if names is None else names)}
    for column, (name, told) in places.items():
        if column in estimates:
            tables[name][told] = estimates[column]
    return tables


def _column(scores: NDArray[np.float64], scored: NDArray[np.bool_], within: NDArray[np.bool_], span: Interval) -> Sums:
    counted = scored & within
    unscored = int((within & ~scored).sum())
    totals = np.where(counted, scores, 0.0)
    return Sums(
        totals=totals,
        squares=totals**2,
        counted=counted.astype(np.int64),
        unscored=unscored,
        lowest=unscored * span.low,
        highest=unscored * span.high,
        span=span,
        graded=True,
        points=span.high,
    )


def _in(bins: Sequence[tuple[int, int]], value: Callable[[Row], int | None]) -> Analysis:
    """Bins [low, high) of a number."""
    names: dict[Key, str] = {number: _bin_name(low, high) for number, (low, high) in enumerate(bins)}

    def bin_of(row: Row) -> Key:
        found = value(row)
        if found is None:
            return None
        return next((number for number, (low, high) in enumerate(bins) if low <= found < high), None)

    return Analysis(bin_of=bin_of, bins=lambda rows: names)


def _each(value: Callable[[Row], Key]) -> Analysis:
    """A bin for each value, sorted."""

    def bins(rows: Sequence[Row]) -> dict[Key, str]:
        found = {value(row) for row in rows} - {None}
        return {key: str(key) for key in sorted(found, key=lambda key: (isinstance(key, str), key))}

    return Analysis(bin_of=value, bins=bins)


def _named(value: Callable[[Row], Key], *names: str) -> Analysis:
    """Bins that are known by name."""
    return Analysis(bin_of=value, bins=lambda rows: {name: name for name in names})


def _bin_name(low: int, high: int) -> str:
    if high >= OPEN_END:
        return f"{low}+"
    return str(low) if high == low + 1 else f"{low}-{high - 1}"


def _third(row: Row) -> str | None:
    if row.position is None:
        return None
    return ("first third", "middle third", "last third")[min(int(row.position * 3), 2)]


def _domain(row: Row) -> str | None:
    topic = (row.topic or "").replace("_", " ").strip().casefold()
    for domain, topics in (("daily", DAILY), ("professional", PROFESSIONAL)):
        if topic in (name.casefold() for name in topics):
            return domain
    return None


ANALYSES: Mapping[str, Analysis] = {
    "turns": _in(TURN_BINS, lambda row: row.n_turns),
    "distance": _in(DISTANCE_BINS, lambda row: row.distance),
    "exact_distance": _each(lambda row: row.distance),
    "position": _named(_third, "first third", "middle third", "last third"),
    "updates": _each(lambda row: row.n_updates),
    "pictures": _in(PICTURE_BINS, lambda row: row.n_pictures),
    "topic": _each(lambda row: row.topic),
    "domain": _named(_domain, "daily", "professional"),
    "place": _named(lambda row: row.place, "in_view", "in_notes", "cut"),
}
"""By name: number of turns (Source: MMRC, Fig 7); turns between the newest evidence and the questions, binned and each
by itself, which shows where a memory ends; the third of the conversation in which it stands; how often what is asked
for was changed (Fig 9, of IU); pictures of the conversation; topic; daily or professional topic; where the evidence
stood when the question came. A row without what an analysis looks at is in none of its bins."""


# --- modality twins -------------------------------------------------------------------------------------------------


def modality_difference(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> Estimate | None:
    """Mean of score of the text twin - score of the picture twin, over the questions of both; None where there is none.

    Twins are two conversations of one cluster with the same question ids, of which one holds more pictures: the same
    facts, told in text or shown in pictures. Source: MMRC's modality test, which replaces text by pictures.
    Args: rows = of one arm.
    """
    twins: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        twins.setdefault((row.cluster, row.question.id), []).append(row)
    values: list[float | None] = []
    clusters: list[str] = []
    for (cluster, _), pair in twins.items():
        text, *rest = sorted(pair, key=lambda row: row.n_pictures)
        if len(rest) != 1 or rest[0].n_pictures == text.n_pictures or rest[0].conversation == text.conversation:
            continue
        scores = (text.score, rest[0].score)
        values.append(None if None in scores else scores[0] - scores[1])  # type: ignore[operator]  # both are there
        clusters.append(cluster)
    width = span.high - span.low
    return mean_of_scored(values, clusters=clusters, span=Interval(-width, width), points=span.high, draws=draws)


# --- kinds of mistakes ----------------------------------------------------------------------------------------------


def error_shares(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Label -> its share of the labelled answers, in [0, 1], the most frequent first; empty where none is labelled.

    Several labels of one answer (`misunderstanding+memory_degradation`) are a kind of their own, as in the paper's Venn
    diagram. Source: MMRC, Figs 10 to 13. Args: verdicts = panels' verdicts by a rubric of `mmrc_errors`.
    """
    counted = Counter(verdict.label for verdict in verdicts if verdict.status == "scored" and verdict.label)
    total = sum(counted.values())
    return {label: n / total for label, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])) if label}
