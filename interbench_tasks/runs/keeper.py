"""Keeps what comes of a run while it is played."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pluggy

from interbench_tasks.hookspecs import EpisodeProtocol, MetricSet, TwoPassProtocol
from interbench_tasks.records import EpisodeRecord, Verdict
from interbench_tasks.redaction import redact
from interbench_tasks.runs.folder import RunFolder
from interbench_tasks.runs.plan import Facts, Key


@dataclass(slots=True)
class Keeper:
    """Keeps records as they end; lives on the engine's loop thread."""

    folder: RunFolder
    metric_set: MetricSet
    protocol: EpisodeProtocol
    manager: pluggy.PluginManager
    n_wanted: int
    summaries: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[Key, set[str]] = field(default_factory=dict)
    unscored: set[Key] = field(default_factory=set)
    """Of those with failures, episodes in which something has no score for it."""
    watcher_errors: Counter[str] = field(default_factory=Counter)
    all_played: threading.Event = field(default_factory=threading.Event)
    """Set once every wanted episode has a record."""
    _facts: dict[Key, Mapping[str, Any]] = field(default_factory=dict)

    def keep(self, record: EpisodeRecord) -> None:
        """Write the record, and take out of it what is needed later. A second one of an episode replaces the first."""
        key = (record.doc_id, record.repeat)
        self.folder.append(record)
        self.summaries[key] = self.metric_set.summary(record)
        self.failures[key] = failures_of(record)
        self.unscored.discard(key)
        self.unscored |= {key} if has_unscored(record) else set()
        if record.passes == 1 and isinstance(self.protocol, TwoPassProtocol) and self.protocol.two_passes:
            self._facts[key] = self.protocol.facts(record)
        self._tell_watchers(record)
        if len(self.summaries) >= self.n_wanted:
            self.all_played.set()

    def facts(self) -> Facts:
        """What the second pass is planned from."""
        return list(self._facts.values())

    @property
    def n_failed(self) -> int:
        """Episodes in which something failed."""
        return sum(bool(found) for found in self.failures.values())

    @property
    def n_unscored(self) -> int:
        """Episodes in which something has no score because something failed."""
        return len(self.unscored)

    def errors(self) -> Counter[str]:
        """Error text -> number of episodes."""
        return Counter(text for found in self.failures.values() for text in found)

    def _tell_watchers(self, record: EpisodeRecord) -> None:
        for watcher in self.manager.hook.interbench_episode_finished.get_hookimpls():
            arguments = {"record": record} if "record" in watcher.argnames else {}
            try:
                watcher.function(**arguments)
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a watcher cannot move a score; it is reported at the end
                self.watcher_errors[redact(f"plugin '{watcher.plugin_name}': {error!r}")] += 1


def failures_of(record: EpisodeRecord) -> set[str]:
    """What failed in the episode: itself, one of its replies, feedback that could not be given, or a judge."""
    return _failures(record, decided=True)


def has_unscored(record: EpisodeRecord) -> bool:
    """Whether something has no score because something failed; not where the other judges decided without one."""
    return bool(_failures(record, decided=False))


def _failures(record: EpisodeRecord, *, decided: bool) -> set[str]:
    """Why something of the episode failed. Args: decided = also judges whose panel came to a verdict without them."""
    if record.status != "finished":
        return {record.error or record.stop_reason}
    failed = [turn.reply for turn in record.turns if not turn.reply.usable]
    broken = [end.feedback for end in record.ends if end.feedback is not None and end.reason == "feedback_failed"]
    failed += [feedback.reply for feedback in broken if feedback.reply is not None]
    unjudged = {end.error for end in record.ends if end.error is not None}
    for turn in record.turns:
        for verdicts, panel in ((turn.verdicts, turn.verdict), (turn.reasoning_verdicts, turn.reasoning_verdict)):
            if decided or panel is None or panel.status != "scored":
                unjudged |= _unjudged(verdicts, panel)
    return {reply.error or "the provider gave no feedback" for reply in failed} | unjudged


def _unjudged(verdicts: Sequence[Verdict], panel: Verdict | None) -> set[str]:
    """Judges whose calls failed, and where there is no panel's verdict, those whose replies say nothing clear."""
    found = {f"judge {each.judge} failed: {_why(each)}" for each in verdicts if each.status == "error"}
    if panel is None or panel.status == "scored":
        return found
    unclear = [each for each in verdicts if each.status == "unparsed"]
    return found | {f"judge {each.judge} gave no verdict: {each.reason}" for each in unclear}


def _why(verdict: Verdict) -> str:
    return (verdict.reply.error if verdict.reply is not None else None) or verdict.reason or "no reply"
