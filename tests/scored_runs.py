"""Runs made by hand, as they are read back from a folder: a metric set whose summaries hold their own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interbench_tasks.metrics.intervals import Estimate, Ratio, estimates_from_ratios
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.score import ScoredRun


class OwnValues:
    """A protocol that is none of ours: a summary's `own` are the episode's values."""

    def __init__(self, *, counts: Sequence[str] = (), contrasts: Sequence[str] = ()) -> None:
        self._counts, self._contrasts = counts, contrasts

    def summary(self, record: EpisodeRecord) -> Mapping[str, Any]:
        raise AssertionError("these runs are not read from records")

    def contributions(self, summary: Mapping[str, Any]) -> Mapping[str, float]:
        own: Mapping[str, float] = summary["own"]
        return own

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
        names = list(dict.fromkeys(name for summary in summaries for name in summary["own"]))
        ratios = {}
        for name in names:
            values = [summary["own"].get(name) for summary in summaries]
            ratios[name] = Ratio(
                values=np.array([value or 0.0 for value in values]),
                counted=np.array([value is not None for value in values]),
                graded=True,
            )
        table = estimates_from_ratios(ratios, [str(row) for row in range(len(summaries))])
        for name in self._counts:
            total = sum(summary["own"].get(name, 0) for summary in summaries)
            table[name] = Estimate(value=total, n=len(summaries), method="count")
        return table | {name: Estimate(value=0.5, n=len(summaries), method="newcombe") for name in self._contrasts}

    def headline(self, names: Sequence[str]) -> Sequence[str]:
        return list(names)[:1]


MANIFEST: Mapping[str, Any] = {
    "task": "t",
    "task_version": "1.0",
    "protocol": "feedback_loop",
    "metrics": "feedback_loop",
    "protocol_options": {"arms": ["detail", "simple"], "max_rounds": 1, "providers": []},
    "options": {"verifier": "choice", "cluster": None, "prompts": {"question": "?"}, "engine": {"max_wait_s": 0.5}},
    "prompt_digests": {"question": "aa"},
    "generation": {"receiver": {"temperature": 0.0}, "provider": {"temperature": 0.0}},
    "models": {"receiver": {"name": "m"}, "provider": {"name": "openai:gpt-4o"}},
    "simulated": [],
    "data": {"source": "rows.jsonl"},
}


def changed(content: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A manifest with other values; `a__b=1` changes the key b of the mapping a."""
    made = dict(content)
    for path, value in changes.items():
        key, _, rest = path.partition("__")
        made[key] = changed(made.get(key, {}), **{rest: value}) if rest else value
    return made


def episode(
    number: int, repeat: int = 0, *, cluster: str | None = None, target: str = "B", **own: float | None
) -> dict[str, Any]:
    """A summary; a metric that is None is not scored."""
    return {
        "id": f"q{number}",
        "doc_id": number,
        "repeat": repeat,
        "cluster": cluster,
        "category": None,
        "status": "finished",
        "target": target,
        "own": {name: value for name, value in own.items() if value is not None},
    }


def run_of(
    name: str,
    summaries: Sequence[Mapping[str, Any]],
    *,
    metric_set: Any = None,
    units: Sequence[Mapping[str, Any]] = (),
    **changes: Any,
) -> ScoredRun:
    """A run of the receiver `name`, finished unless the changes say otherwise."""
    manifest = changed(MANIFEST, run_id=f"run-{name}", models__receiver__name=name, data__n_episodes=len(summaries))
    return ScoredRun(
        folder=Path("/nowhere") / name,
        manifest=changed(manifest, **changes),
        metric_set=metric_set or OwnValues(),
        summaries=summaries,
        units=units,
    )
