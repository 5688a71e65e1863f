"""The numbers of a chart: each estimate with what it is of. The drawing, the table and the text all come from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks.metrics.closed_forms import Interval
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.report.cells import ABSENT, shown_value
from interbench_tasks.report_parts import ReportTable

Key = tuple[str, ...]
LONG_LIST = 4
"""Above this many numbers, a text names only the ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Estimates of one kind: all shares, all scores of one scale, or all differences of one of them."""

    what: str
    """What each of them is, e.g. `correction rate`."""
    dims: tuple[str, ...]
    """What a key's parts are, e.g. `run`, `arm`."""
    cells: Mapping[Key, Estimate]
    """In the order to show; one that is undefined is not there."""
    signed: bool = False
    """Whether they are differences, which have a sign and a 0 in the middle."""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Dimension -> all its values in the order to show; one that is not there is shown as its values come up."""

    def __bool__(self) -> bool:
        return bool(self.cells)

    @property
    def points(self) -> float | None:
        """The highest score; None for shares."""
        return next((estimate.points for estimate in self.cells.values()), None)

    def values(self, dim: str) -> list[str]:
        """What a dimension has, in the order to show."""
        at = self.dims.index(dim)
        there = dict.fromkeys(key[at] for key in self.cells)
        known = [value for value in self.orders.get(dim, ()) if value in there]
        return [*known, *(value for value in there if value not in known)]

    def where(self, dim: str, keep: Iterable[str]) -> Numbers:
        """Only those whose `dim` is one of `keep`."""
        at, kept = self.dims.index(dim), set(keep)
        return replace(self, cells={key: estimate for key, estimate in self.cells.items() if key[at] in kept})

    def shown(self, value: float) -> str:
        """A value as people read it."""
        return shown_value(value, self.points, signed=self.signed)

    @property
    def unit(self) -> str:
        """What `shown` is in."""
        if self.points is None:
            return "percentage points" if self.signed else "%"
        return "points" if self.points > 1 else "1 at most"


def numbers_from(
    what: str,
    dims: Sequence[str],
    cells: Iterable[tuple[Key, Estimate | None]],
    *,
    signed: bool = False,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Numbers:
    """Numbers of those estimates that are there.

    Args: cells = key -> estimate, None where it is undefined; orders = dimension -> its values in the order to show,
        default: as they come up in `cells`, undefined ones too.
    """
    given = list(cells)
    come_up = {dim: list(dict.fromkeys(key[at] for key, _ in given)) for at, dim in enumerate(dims)}
    all_orders = come_up | dict(orders or {})
    defined = {key: estimate for key, estimate in given if estimate is not None}
    places = [{value: place for place, value in enumerate(all_orders[dim])} for dim in dims]
    in_order = sorted(
        defined, key=lambda key: [place.get(part, len(place)) for place, part in zip(places, key, strict=True)]
    )
    ordered = {key: defined[key] for key in in_order}
    return Numbers(what=what, dims=tuple(dims), cells=ordered, signed=signed, orders=all_orders)


def table_of(numbers: Numbers, caption: str) -> ReportTable:
    """Every number, one a row, with its interval, n, unscored count and what the unscored could make of it."""
    bounded = any(estimate.bounds is not None for estimate in numbers.cells.values())
    rows = []
    for key, estimate in numbers.cells.items():
        row = [*key, numbers.shown(estimate.value), _ends(numbers, estimate.ci95)]
        rows.append((*row, str(estimate.n), str(estimate.unscored), *_bounds(numbers, estimate, shown=bounded)))
    columns = (*numbers.dims, f"{numbers.what} ({numbers.unit})", "95% interval", "n", "unscored")
    return ReportTable(caption=caption, columns=(*columns, *(("bounds",) if bounded else ())), rows=tuple(rows))


def _bounds(numbers: Numbers, estimate: Estimate, *, shown: bool) -> tuple[str, ...]:
    return (_ends(numbers, estimate.bounds),) if shown else ()


def _ends(numbers: Numbers, interval: Interval | None) -> str:
    return ABSENT if interval is None else f"{numbers.shown(interval.low)} to {numbers.shown(interval.high)}"


def told_in_words(numbers: Numbers, names: Callable[[Key], str] = ", ".join) -> str:
    """The main numbers in a sentence: all of a few, the least and the greatest of many.

    >>> one = Estimate(value=0.5, n=4, ci95=Interval(0.2, 0.8), method="wilson")
    >>> told_in_words(numbers_from("accuracy", ["run"], [(("gpt",), one)]))
    'Accuracy. gpt: 50.0% (20.0 to 80.0, n 4).'
    """
    cells = list(numbers.cells.items())
    what = numbers.what[:1].upper() + numbers.what[1:]
    if len(cells) <= LONG_LIST:
        return f"{what}. {'; '.join(_in_words(numbers, names(key), e) for key, e in cells)}."
    (least, low), (most, high) = (pick(cells, key=lambda cell: cell[1].value) for pick in (min, max))
    return (
        f"{what}, {len(cells)} numbers. Lowest: {_in_words(numbers, names(least), low)}. "
        f"Highest: {_in_words(numbers, names(most), high)}."
    )


def _in_words(numbers: Numbers, name: str, estimate: Estimate) -> str:
    ends = f"{_ends(numbers, estimate.ci95)}, " if estimate.ci95 is not None else ""
    unit = {"%": "%", "percentage points": " percentage points"}.get(numbers.unit, "")
    return f"{name}: {numbers.shown(estimate.value)}{unit} ({ends}n {estimate.n})"
