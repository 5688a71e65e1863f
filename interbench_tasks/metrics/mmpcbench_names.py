"""Names of the metrics of critiques, in the order to show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from interbench_tasks.critique_votes import SPLIT, STRATEGIES
from interbench_tasks.flaws import TYPES
from interbench_tasks.metrics.pcq import Combine
from interbench_tasks.sweeps import pairs_of

MAIN = ("eda", "dp", "se", "pcq")
SCORES = ("dp", "se")
"""Means in [0, 2]; `dqd` is a difference of such means."""
SHARES = tuple(f"strategy.{strategy}" for strategy in (*STRATEGIES, SPLIT))
CONSISTENCY = ("eda_r", "eda_f", "ddr", "dqd")
DUAL = ("meda", "type_coverage", "all_detected", "type_coverage_pooled", "all_detected_pooled")
VALID = ("urr_v", "far_v", "precision", "recall", "f1")
COUNTS = (
    "n",
    "n_failed",
    "n_flawed",
    "n_dual",
    "n_valid",
    "n_undecided",
    "n_partial",
    "n_split",
    "n_no_trace",
    "n_no_answer",
    "n_judge_missing",
    "n_judge_asked_again",
    "n_cut_replies",
    "n_never_told",
)
HEADLINE = (*MAIN, "n", "n_failed")
"""For the harness's table, which has room for 25 rows: a rate has five (itself, its interval, n, unscored)."""


class CritiqueOptions(Protocol):
    """What the metrics need to know of the protocol's options."""

    @property
    def judges(self) -> Sequence[str]:
        """Labels of several judges; empty where there is one."""
        ...

    @property
    def more_styles(self) -> Sequence[str]:
        """Further styles in which a subset is asked."""
        ...

    @property
    def variants(self) -> Mapping[str, object]:
        """Label of each variant of a sweep -> what it changes."""
        ...

    @property
    def quorum(self) -> int | None:
        """Judges that must have given a verdict."""
        ...

    @property
    def pcq_combine(self) -> Combine:
        """How PCQ combines diagnosis and strategy."""
        ...

    @property
    def judge_reasoning(self) -> bool:
        """Whether reasoning is judged."""
        ...


STYLES = ("original", "formal", "concise")
SHIFTED = ("eda", "eda_r", "pcq")
"""Metrics whose difference between variants is a metric too; of styles without `eda_r`."""


def suffix_of(branch: str) -> str:
    """What the names of a branch's metrics end in: `.formal` of a style, `@effort=low` of a variant, '' of the item."""
    return f".{branch}" if branch in STYLES else f"@{branch}" if branch else ""


def branch_of(name: str) -> str:
    """The variant that a metric is about, with the one it is compared with, if any; '' where it is about none.

    >>> branch_of("shift_eda@effort=high-effort=low"), branch_of("dp.EE")
    ('effort=high-effort=low', '')
    """
    return name.partition("@")[2]


def rate_names(styles: Sequence[str], variants: Iterable[str] = ()) -> list[str]:
    """All metrics but the counts."""
    labels = list(variants)
    names = [*MAIN, *SHARES]
    names += [f"{name}.{of_type}" for of_type in TYPES for name in MAIN]
    names += [*CONSISTENCY, *DUAL, *VALID, "solved_after_clarification"]
    for style in styles:
        names += [*(f"{name}.{style}" for name in MAIN), f"shift_eda.{style}", f"shift_pcq.{style}"]
    for label in labels:
        names += [f"{name}@{label}" for name in (*MAIN, *CONSISTENCY)] + [f"shift_{name}@{label}" for name in SHIFTED]
    return names + [f"shift_{name}@{one}-{other}" for one, other in pairs_of(labels) for name in SHIFTED]


def kind_of_metric(name: str) -> Literal["share", "score", "score_difference", "share_difference"]:
    """What its values are: shares in [0, 1], scores in [0, 2], or differences of them.

    >>> kind_of_metric("dp.EE"), kind_of_metric("dp@effort=0.5"), kind_of_metric("shift_eda.formal")
    ('score', 'score', 'share_difference')
    """
    base = re.split("[.@]", name, maxsplit=1)[0]
    if base in SCORES:
        return "score"
    if base == "dqd":
        return "score_difference"
    return "share_difference" if base.startswith("shift_") else "share"
