"""Rankings by other panels: without one judge, and without the judges of a model's own family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Panel = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""What judges say of the same replies -> one value each: [judges, models, items] -> [models, items], NaN: none. A panel
that needs more of each vote than a number takes further axes; one whose metric is composed of several means gives
[parts, models, items], of which an item is decided where the first part is 0, or all are known."""
Make = Callable[..., NDArray[np.float64]]
"""The means of such parts, [models] each -> the metric of each model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRanking:
    """The ranking by a smaller panel, beside that of the whole one."""

    without: str
    """The judge that was left out; `own family` where each model's own judges were."""
    values: Mapping[str, float]
    """Model -> mean over the items that the smaller panel decides."""
    ranks: Mapping[str, int]
    """1 is the largest value; equal values share the smaller number."""
    moved: tuple[str, ...]
    """Models whose rank is another one than with the whole panel."""
    spearman: float | None
    kendall: float | None
    """tau-b. Of the two rankings, in [-1, 1]; None for less than two models, and where one has all models equal."""
    undecided: int
    """Replies that the whole panel decides and the smaller one does not."""


def mean_of_votes(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the judges that gave a value; NaN where none did.

    The share of judges that say yes, where votes are 0 and 1. Of two judges, where a majority takes both, it uses each.
    """
    given = ~np.isnan(votes)
    n = given.sum(axis=0)
    found: NDArray[np.float64] = np.divide(
        np.where(given, votes, 0.0).sum(axis=0), n, out=np.full(n.shape, np.nan), where=n > 0
    )
    return found


def majority_of_votes(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where more than half of all judges say so, 0 where the missing ones could not make it more, NaN between.

    Two judges that differ have no majority that says yes, so it is 0, as `critique_votes` has it.
    Source: MMPCBench (arXiv 2608.29286), majority of three; even panels and failed judges are ours.
    Args: votes = 0, 1 or NaN.
    """
    yes, missing = (votes == 1).sum(axis=0), np.isnan(votes).sum(axis=0)
    could = np.where(2 * (yes + missing) <= len(votes), 0.0, np.nan)
    return np.where(2 * yes > len(votes), 1.0, could)


def leave_one_judge_out(
    votes: NDArray[np.float64],
    judges: Sequence[str],
    models: Sequence[str],
    panel: Panel = mean_of_votes,
    make: Make | None = None,
) -> tuple[PanelRanking, ...]:
    """The ranking without each judge in turn.

    Source: ours, after MMPCBench (arXiv 2608.29286), which leaves out the judge of a model's family.
    Args: votes = [judges, models, items, ...], NaN where a judge gave none; make = of a panel that gives parts.
    Raises: ValueError for less than two judges, or shapes that do not fit.
    """
    _check(votes, judges, models)
    whole = panel(votes)
    return tuple(
        _ranking(judge, models, whole, panel(np.delete(votes, number, axis=0)), make)
        for number, judge in enumerate(judges)
    )


def leave_own_family_out(
    votes: NDArray[np.float64],
    judges: Mapping[str, str | None],
    models: Mapping[str, str | None],
    panel: Panel = mean_of_votes,
    make: Make | None = None,
) -> PanelRanking | None:
    """The ranking where each model is judged by judges of other families only.

    Source: MMPCBench (arXiv 2608.29286), there Spearman 0.969 and Kendall 0.912 for 14 models.
    Args: votes = [judges, models, items, ...]; judges, models = name -> family, None: of no known one.
    Returns: None where no model has a judge of its own family, so that nothing would change.
    Raises: ValueError for less than two judges, or shapes that do not fit.
    """
    _check(votes, list(judges), list(models))
    whole = panel(votes)
    rows = []
    for number, family in enumerate(models.values()):
        kept = [index for index, own in enumerate(judges.values()) if own is None or own != family]
        if len(kept) == len(judges):
            rows.append(whole[..., number, :])
        elif kept:
            rows.append(panel(votes[kept][:, [number]])[..., 0, :])
        else:  # nobody else is left to judge it
            rows.append(np.full(whole[..., number, :].shape, np.nan))
    families = {family for family in judges.values() if family is not None}
    if not families & set(models.values()):
        return None
    return _ranking("own family", list(models), whole, np.stack(rows, axis=-2), make)


def _check(votes: NDArray[np.float64], judges: Sequence[str], models: Sequence[str]) -> None:
    if len(judges) < 2:
        raise ValueError("need two judges at least: without the only one nobody judges")
    if votes.ndim < 3 or votes.shape[:2] != (len(judges), len(models)):
        raise ValueError(f"votes must be [{len(judges)} judges, {len(models)} models, items], got {votes.shape}")


def _ranking(
    without: str,
    models: Sequence[str],
    whole: NDArray[np.float64],
    smaller: NDArray[np.float64],
    make: Make | None,
) -> PanelRanking:
    before, after = _values(whole, make), _values(smaller, make)
    both = ~np.isnan(before) & ~np.isnan(after)
    old, new = _ranks(before[both]), _ranks(after[both])
    names = [model for model, known in zip(models, both, strict=True) if known]
    spearman, kendall = rank_correlations(before[both], after[both])
    return PanelRanking(
        without=without,
        values=dict(zip(names, map(float, after[both]), strict=True)),
        ranks=dict(zip(names, new, strict=True)),
        moved=tuple(name for name, one, other in zip(names, old, new, strict=True) if one != other),
        spearman=spearman,
        kendall=kendall,
        undecided=int((_decided(whole) & ~_decided(smaller)).sum()),
    )


def _values(items: NDArray[np.float64], make: Make | None) -> NDArray[np.float64]:
    """The metric of each model."""
    return _means(items) if make is None else make(*(_means(part) for part in items))


def _decided(items: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[models, items]: whether the panel came to a value."""
    if items.ndim == 2:
        return ~np.isnan(items)
    found: NDArray[np.bool_] = (items[0] == 0) | ~np.isnan(items).any(axis=0)
    return found


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    n = (~np.isnan(values)).sum(axis=1)
    found: NDArray[np.float64] = np.divide(np.nansum(values, axis=1), n, out=np.full(len(n), np.nan), where=n > 0)
    return found


def _ranks(values: NDArray[np.float64]) -> list[int]:
    """Rounded before they are compared, so that sums in another order make no rank."""
    rounded = np.round(values, 12)
    return [1 + int((rounded > own).sum()) for own in rounded]


def rank_correlations(first: NDArray[Any], second: NDArray[Any]) -> tuple[float | None, float | None]:
    """Spearman's rho and Kendall's tau-b of two rankings; None where one has all equal, or less than two models.

    Source: as scipy has them.
    Args: first, second = value of each model, [models].
    """
    first, second = np.round(first, 12), np.round(second, 12)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None, None
    from scipy.stats import kendalltau, spearmanr  # type: ignore[import-untyped]  # has no stubs; slow to import

    return float(spearmanr(first, second).statistic), float(kendalltau(first, second).statistic)
