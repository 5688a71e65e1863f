"""Where a memory fails: scores of conversations by turns, evidence, updates, pictures, topic and modality.

Each function takes rows and gives bin -> estimate, in the order of the bins; a bin without a scored answer is absent.
Only judged answers count (`mmrc_answers`). Questions of one conversation or cluster are resampled together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import DRAWS, Estimate
from interbench_tasks.metrics.mmrc_answers import Answer, answers_from_record, history_of, pictures_in
from interbench_tasks.metrics.sums import mean_of_scored
from interbench_tasks.records import EpisodeRecord, Question, Seen, Verdict

TURN_BINS = ((4, 6), (6, 10), (10, 14), (14, 17), (17, 20), (20, 23))
"""Numbers of turns, [low, high). Source: MMRC, Fig 7, whose last bin is [20, 22]."""
DISTANCE_BINS = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 25), (25, 100), (100, 1_000_000))
"""Turns between the evidence and the questions, [low, high). Ours."""
DAILY = ("Travel", "Music", "Film", "Sport", "Game", "House", "Food", "Shopping")
PROFESSIONAL = ("History", "Economy", "Biology", "Computer", "Society", "Job Career")
"""Source: MMRC, Fig 5."""
Key = TypeVar("Key")
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


def by_turns(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by the number of turns. Source: MMRC, Fig 7.

    Args: rows = of one arm, and of one ability or several; span = lowest and highest score.
    """
    return _binned(rows, lambda row: row.n_turns, TURN_BINS, span, draws)


def by_distance(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by the turns between the newest evidence and the questions; rows without evidence are left out."""
    return _binned(rows, lambda row: row.distance, DISTANCE_BINS, span, draws)


def by_exact_distance(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """As `by_distance`, each distance by itself: where a memory ends shows here."""
    distances = sorted({row.distance for row in rows if row.distance is not None})
    return _grouped(rows, lambda row: row.distance, {distance: str(distance) for distance in distances}, span, draws)


def by_position(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by the third of the conversation in which the newest evidence stands."""
    thirds = {0: "first third", 1: "middle third", 2: "last third"}
    return _grouped(
        rows, lambda row: None if row.position is None else min(int(row.position * 3), 2), thirds, span, draws
    )


def by_updates(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by how often what is asked for was changed. Source: MMRC, Fig 9 (of IU, 0 to 4 updates)."""
    numbers = sorted({row.n_updates for row in rows if row.n_updates is not None})
    return _grouped(rows, lambda row: row.n_updates, {number: str(number) for number in numbers}, span, draws)


def by_pictures(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by the number of pictures of the conversation: 0, 1-2, 3-5, 6-10, more."""
    return _binned(rows, lambda row: row.n_pictures, ((0, 1), (1, 3), (3, 6), (6, 11), (11, 1_000_000)), span, draws)


def by_topic(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by topic; rows without one are left out."""
    topics = sorted({row.topic for row in rows if row.topic is not None})
    return _grouped(rows, lambda row: row.topic, {topic: topic for topic in topics}, span, draws)


def by_domain(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score of daily and of professional topics; other topics are left out. Source: MMRC, "domain bias"."""
    return _grouped(rows, _domain, {"daily": "daily", "professional": "professional"}, span, draws)


def by_place(rows: Sequence[Row], *, span: Interval = ZERO_TO_FIVE, draws: int = DRAWS) -> dict[str, Estimate]:
    """Mean score by where the evidence stood when the question came; rows without evidence are left out."""
    places = {place: place for place in ("in_view", "in_notes", "cut")}
    return _grouped(rows, lambda row: row.place, places, span, draws)


def _domain(row: Row) -> str | None:
    topic = (row.topic or "").replace("_", " ").strip().casefold()
    for domain, topics in (("daily", DAILY), ("professional", PROFESSIONAL)):
        if topic in (name.casefold() for name in topics):
            return domain
    return None


def _binned(
    rows: Sequence[Row],
    value: Callable[[Row], int | None],
    bins: Sequence[tuple[int, int]],
    span: Interval,
    draws: int,
) -> dict[str, Estimate]:
    names = {number: _bin_name(low, high) for number, (low, high) in enumerate(bins)}

    def place(row: Row) -> int | None:
        found = value(row)
        if found is None:
            return None
        return next((number for number, (low, high) in enumerate(bins) if low <= found < high), None)

    return _grouped(rows, place, names, span, draws)


def _bin_name(low: int, high: int) -> str:
    if high >= 1_000_000:
        return f"{low}+"
    return str(low) if high == low + 1 else f"{low}-{high - 1}"


def _grouped(
    rows: Sequence[Row], key: Callable[[Row], Key | None], names: Mapping[Key, str], span: Interval, draws: int
) -> dict[str, Estimate]:
    groups: dict[Key, list[Row]] = {name: [] for name in names}
    for row in rows:
        place = key(row)
        if place in groups:
            groups[place].append(row)
    found = {}
    for place, own in groups.items():
        estimate = _mean([row.score for row in own], [row.cluster for row in own], span, draws)
        if estimate is not None:
            found[names[place]] = estimate
    return found


def _mean(
    values: Sequence[float | None], clusters: Sequence[str], span: Interval, draws: int = DRAWS
) -> Estimate | None:
    return mean_of_scored(values, clusters=clusters, span=span, points=span.high, draws=draws)


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
