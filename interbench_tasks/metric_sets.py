"""What a metric set gives (typing.Protocol); `hookspecs` offers these names as its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from interbench_tasks.records import EpisodeRecord


class MetricSet(Protocol):
    """Metrics as pure functions of summaries.

    Attributes that are read where they are there: `bare`, the headline metrics that stand in the harness's table by
    their value alone, without rows for their interval, n and unscored count; `composed`, metric -> how it comes from
    the means of others (`metrics.composed`), so that a ranking does not take it for a mean over episodes.
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


@runtime_checkable
class WeightedMetrics(Protocol):
    """A metric set in which an episode weighs as much as what it counts: its questions, its pictures, its detections.

    A metric that `parts` tells of is sum(value) / sum(weight) over the episodes of a run, and a composite is the
    unweighted mean of such metrics. Runs are then compared, and resampled, by these sums, so that what is compared is
    what the runs report. Metrics that neither method names are means of `MetricSet.contributions`, as without it.
    """

    def parts(self, summary: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
        """Metric -> (sum of the values, weight > 0), for each metric that this episode is counted in; pure."""
        ...

    def composites(self) -> Mapping[str, Sequence[str]]:
        """Metric -> the metrics of `parts` whose unweighted mean it is; undefined where one of them is."""
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
