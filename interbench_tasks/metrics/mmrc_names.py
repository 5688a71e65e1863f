"""Which metrics a conversation has, by name and in order, and which of them a short table shows.

All of it follows from the task's options alone, so that the tables of two runs of a task have the same rows. The last
part of a name is the memory arm; differences are against the first arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.errors import ConfigError, Problem
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.metrics.closed_forms import Interval

ITEM_METRICS = ("ep", "ep_recall", "ep_f1")
PICTURE_METRICS = ("imp", "imp_micro", "imp_precision", "imp_precision_micro")
LOSSES = ("n_unanswered", "n_judge_failed", "n_cut_replies", "n_overflow")
"""Counts of an arm's questions: no reply; a reply and no verdict; a reply cut at the token limit; too long for the
model."""
NOTE_COUNTS = ("n_notes", "n_notes_unreadable", "n_notes_cut")
COUNTS = ("n", "n_failed", "n_questions", "n_judge_failed")
MAX_HEADLINE_ROWS = 25
"""Rows in the harness's table, siblings included."""
ROWS_OF_A_RATE = 5
"""The rate and its siblings .ci95_low, .ci95_high, .n, .unscored; a count has no siblings."""


class ConversationOptions(Protocol):
    """What the metrics need to know of the protocol's options."""

    @property
    def memories(self) -> Sequence[str | Sequence[str]]:
        """The arms: each a memory, or several that act together."""
        ...

    @property
    def rubric(self) -> str | None:
        """What open answers are judged by; None where nobody judges."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """What is measured, and what is compared with what."""

    arms: tuple[str, ...]
    """The first one is the base of all differences."""
    scale: Interval | None
    """Lowest and highest score of a judge; None where nobody judges."""

    @classmethod
    def from_options(cls, options: ConversationOptions) -> Lineup:
        """The lineup of a task.

        Raises: ConfigError where the rubrics have different scales, or one that starts elsewhere than at 0 cannot be
            shown in points; also what `rubrics` raises.
        """
        arms = tuple(arm if isinstance(arm, str) else "+".join(arm) for arm in options.memories)
        return cls(arms=arms, scale=_scale_of(options.rubric) if options.rubric is not None else None)

    @property
    def points(self) -> float | None:
        """The highest score."""
        return None if self.scale is None else self.scale.high

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Each further arm with the base."""
        return tuple((arm, self.arms[0]) for arm in self.arms[1:])

    @property
    def takes_notes(self) -> bool:
        """Whether any arm is more than no memory at all."""
        return any(arm != "none" for arm in self.arms)

    def rate_names(self) -> list[str]:
        """All metrics but the counts, in the order to show."""
        names: list[str] = []
        for arm in self.arms:
            names += [f"{name}.{arm}" for name in self._rates_of_an_arm()]
        if self.scale is not None:
            for arm, base in self.pairs:
                names += [f"difference.{what}.{arm}-{base}" for what in (*ABILITIES, "overall")]
        return names

    def _rates_of_an_arm(self) -> Iterator[str]:
        if self.scale is not None:
            yield "overall"
            yield from (f"score.{ability}" for ability in ABILITIES)
        yield from (*ITEM_METRICS, *PICTURE_METRICS, "rp", "accuracy")
        yield from (f"accuracy.{ability}" for ability in ABILITIES)

    def means(self) -> dict[str, tuple[str, ...]]:
        """Metric -> those whose unweighted mean it is."""
        if self.scale is None:
            return {}
        found = {f"overall.{arm}": tuple(f"score.{ability}.{arm}" for ability in ABILITIES) for arm in self.arms}
        for arm, base in self.pairs:
            parts = tuple(f"difference.{ability}.{arm}-{base}" for ability in ABILITIES)
            found[f"difference.overall.{arm}-{base}"] = parts
        return found

    def count_names(self) -> list[str]:
        """The counts, in the order to show."""
        names = [*COUNTS, *(f"{name}.{arm}" for arm in self.arms for name in LOSSES)]
        return names + (list(NOTE_COUNTS) if self.takes_notes else [])

    def headline(self) -> list[str]:
        """The metrics for the harness's table: what fits into MAX_HEADLINE_ROWS.

        `overall` of the first two arms with its interval, n and unscored count, each followed by the six scores by
        their values alone (`bare`): a row of the paper's Table 3. With one arm also EP, IMP, RP and accuracy; without a
        judge these alone. `n_judge_failed` stands there also where no overall is left to say how many are unscored. The
        rest is in `metrics.json` and in `interbench table --layout mmrc`.
        """
        counted = [f"{name}.{arm}" for arm in self.arms for name in ("accuracy", "ep", "imp", "rp")]
        if self.scale is None:
            return [*counted[: MAX_HEADLINE_ROWS - 2], "n", "n_failed"]
        names = []
        for arm in self.arms[:2]:
            names += [f"overall.{arm}", *(f"score.{ability}.{arm}" for ability in ABILITIES)]
        return [*names, *(counted if len(self.arms) == 1 else []), "n", "n_failed", "n_judge_failed"]

    def bare(self) -> frozenset[str]:
        """Those of the headline that stand there by their value alone."""
        return frozenset(name for name in self.headline() if not name.startswith(("overall", "n")))


def _scale_of(name: str) -> Interval:
    scales = {rubric.scale for rubric in rubrics(name).values()}
    if len(scales) != 1 or None in scales:
        raise ConfigError(name, [Problem(key="rubrics", message=": all need one scale, for their scores are averaged")])
    (scale,) = scales
    assert scale is not None
    return Interval(scale.low, scale.high)
