"""What a metric set gives (typing.Protocol); `hookspecs` offers these names as its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from interbench_tasks.records import EpisodeRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Means = NDArray[np.float64]


class MetricSet(Protocol):
    """Metrics as pure functions of summaries.

    An attribute that is read where it is there: `bare`, the headline metrics that stand in the harness's table by their
    value alone, without rows for their interval, n and unscored count.
    """

    def summary(self, record: EpisodeRecord) -> Mapping[str, Any]:
        """JSON-able, under 4 KB, holds all that the metrics need."""
        ...

    def contributions(self, summary: Mapping[str, Any]) -> Mapping[str, float]:
        """Metric -> this episode's own value, for each metric that it is counted in; the harness logs it."""
        ...

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Name -> `metrics.intervals.Estimate`, in the order to show; an undefined metric is absent."""
        ...

    def headline(self, names: Sequence[str]) -> Sequence[str]:
        """Which of `names` go into the harness's table; the others go to metrics.json and the report."""
        ...


@runtime_checkable
class TwoPassMetrics(Protocol):
    """A metric set that tells which of its metrics a second pass gives: an unfinished run then says what it lacks."""

    def of_second_pass(self) -> Sequence[str]:
        """Metrics that are absent or over too few episodes before the second pass, in the order to show."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """How a metric comes from parts: means over episodes, or other ratios of sums."""

    parts: tuple[str, ...]
    make: Callable[..., Means]
    """The parts' values, arrays of one shape, NaN where no item counts -> the metric's; NaN: it has none."""
    by_first: bool = False
    """True: the metric counts where its first part does, each further part over those of these items that have it. So
    two runs are paired by their first parts. False: each part counts, and is paired, by itself."""

    @classmethod
    def of(cls, part: str) -> Composed:
        """A part as it is: a metric that is one ratio of sums."""
        return cls(parts=(part,), make=_mean)

    @classmethod
    def mean(cls, parts: tuple[str, ...]) -> Composed:
        """The unweighted mean of several parts; there is none where one of them is missing."""
        return cls(parts=parts, make=_mean)

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of its parts, so that a difference of two values is the mean of the parts'."""
        return self.make is _mean and not self.by_first

    @property
    def counting(self) -> tuple[str, ...]:
        """The parts that say where the metric counts."""
        return self.parts[:1] if self.by_first else self.parts


def _mean(*parts: Means) -> Means:
    return sum(parts[1:], start=parts[0]) / len(parts)


@runtime_checkable
class ComposedMetrics(Protocol):
    """A metric set with metrics that are no mean over episodes, but a function of other metrics.

    Runs are then compared, ranked and resampled by what such a metric's parts come to over the common episodes, so that
    what is compared is what the runs report. Metrics that are not named are means of `MetricSet.contributions`.
    """

    def composites(self) -> Mapping[str, Composed]:
        """Metric -> how it is made of parts: of means of contributions, or of what `WeightedMetrics.parts` tells."""
        ...


@runtime_checkable
class WeightedMetrics(ComposedMetrics, Protocol):
    """A metric set in which an episode weighs as much as what it counts: its questions, its pictures, its detections.

    Each metric that `parts` tells of is sum(value) / sum(weight) over the episodes of a run.
    """

    def parts(self, summary: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
        """Metric -> (sum of the values, weight > 0), for each metric that this episode is counted in; pure."""
        ...


@runtime_checkable
class UnitMetrics(Protocol):
    """A weighted metric set that tells what each unit of an episode, e.g. a question, adds to its parts.

    Two runs are then compared on the units that both have scored, not only on the episodes that both have: a question
    that a judge failed on in one run counts in neither.
    """

    def units(self, record: EpisodeRecord) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """Metric -> unit -> (value, weight), for each unit that is scored; summed they are `parts`; pure."""
        ...
