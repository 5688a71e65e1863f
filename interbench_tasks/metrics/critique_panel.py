"""What each judge of a critique said, as numbers: for agreement, and for rankings by smaller panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interbench_tasks.critique_votes import STRATEGIES, Vote, panel_of
from interbench_tasks.metrics.composed import composed_pcq
from interbench_tasks.metrics.panel_rankings import Make, Panel, majority_of_votes
from interbench_tasks.metrics.pcq import Combine

NOTHING = (0.0, 0.0, float(STRATEGIES.index("none")), 0.0)
"""The vote of a judge that detected nothing."""
DETECTED, DIAG, STRATEGY, SCORE = range(4)
"""Places in a vote. A strategy is its place in `STRATEGIES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteField:
    """One of the values that a judge gives."""

    name: str
    labels: Sequence[float]
    """All that it can be, where they have an order the lowest first."""
    ordinal: bool = False
    needs_detection: bool = False
    """Whether it is told only by judges that detected something."""


FIELDS = (
    VoteField(name="detected", labels=(0, 1)),
    VoteField(name="diag", labels=(0, 1, 2), ordinal=True, needs_detection=True),
    VoteField(name="strategy", labels=range(len(STRATEGIES)), needs_detection=True),
    VoteField(name="strategy_score", labels=(0, 1, 2), ordinal=True, needs_detection=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiquePanel:
    """The votes on items that one thing is wrong with, and the metrics that a panel makes of them."""

    combine: Combine = "arithmetic"

    def concerns(self, summary: Mapping[str, Any]) -> bool:
        """Whether one thing was wrong with the episode's item."""
        return bool(summary["kind"] == "flawed")

    def said_nothing(self, summary: Mapping[str, Any]) -> bool:
        """Whether the reply ended while thinking: it challenged nothing, and nobody was asked."""
        return bool(summary["votes"].get("") == "no_answer")

    def votes(self, summary: Mapping[str, Any]) -> Mapping[str, Sequence[float] | None]:
        """Judge -> its vote on the final answer, None where it gave none; {} where nobody was asked.

        Args: summary = an episode's, as `mmpcbench_summary` makes it.
        """
        cell = summary["votes"].get("")
        if not self.concerns(summary) or not isinstance(cell, Mapping):
            return {}
        return {judge: None if values is None else _vote(values) for judge, values in cell.items()}

    @property
    def metrics(self) -> Mapping[str, tuple[Panel, Make | None]]:
        """Metric -> what a panel makes of votes, [judges, models, items, 4]; NaN where undecided.

        Of `eda` [models, items]; of `pcq` its parts [3, models, items] (detected, dp, se), and what their means make.
        """
        return {"eda": (_detection, None), "pcq": (_parts, composed_pcq("", self.combine).make)}


def _vote(values: Sequence[Any]) -> tuple[float, ...]:
    detected, diag, strategy, score = values
    if not detected:
        return NOTHING
    score = 0.0 if strategy == "none" else float(score)
    return (1.0, float(diag), float(STRATEGIES.index(strategy)), score)


def _as_vote(vote: NDArray[np.float64]) -> Vote:
    if vote[DETECTED] == 0:
        return Vote(detected=False)
    return Vote(True, float(vote[DIAG]), STRATEGIES[int(vote[STRATEGY])], float(vote[SCORE]))


def _detection(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    return majority_of_votes(votes[..., DETECTED])


def _parts(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Detected, dp and se of each item, [3, models, items]; the last two NaN where nothing was, each where undecided.

    The items that all judges spoke of are done at once, the others one by one.
    """
    found = _parts_of_whole_panels(votes)
    for model, item in zip(*np.nonzero(np.isnan(votes[..., DETECTED]).any(axis=0)), strict=True):
        given = [None if np.isnan(vote[DETECTED]) else _as_vote(vote) for vote in votes[:, model, item]]
        panel = panel_of(given)
        told = (panel.detected, panel.dp, panel.se)
        found[:, model, item] = [np.nan if value is None else float(value) for value in told]
    return found


def _parts_of_whole_panels(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same by the rules of `critique_votes.outcome_of`; meaningless for an item that a judge is missing at."""
    saw = votes[..., DETECTED] == 1
    n_saw = saw.sum(axis=0)
    diagnosis = votes[..., DIAG].sum(axis=0) / len(votes)
    # Votes for each strategy, and the sum of their scores: [strategies, models, items].
    chose = np.stack([(saw & (votes[..., STRATEGY] == code)).sum(axis=0) for code in range(len(STRATEGIES))])
    scores = np.stack(
        [
            np.where(saw & (votes[..., STRATEGY] == code), votes[..., SCORE], 0.0).sum(axis=0)
            for code in range(len(STRATEGIES))
        ]
    )
    top = chose.argmax(axis=0)
    most = np.take_along_axis(chose, top[None], axis=0)[0]
    aligned = np.take_along_axis(scores, top[None], axis=0)[0] / np.maximum(most, 1)
    strategy = np.where(2 * most > n_saw, aligned, scores.sum(axis=0) / np.maximum(n_saw, 1))
    detected = 2 * n_saw > len(votes)
    parts = [detected.astype(np.float64), *(np.where(detected, one, np.nan) for one in (diagnosis, strategy))]
    return np.stack(parts)
