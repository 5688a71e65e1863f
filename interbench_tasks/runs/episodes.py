"""The episodes of a run, made one by one: each of the first pass, then those that are played on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from interbench_tasks.conversations import Reader, reader_from
from interbench_tasks.engine import Engine
from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import EpisodeProtocol, Roles, TwoPassProtocol
from interbench_tasks.records import BranchEnd, Episode, EpisodeRecord
from interbench_tasks.redaction import redact
from interbench_tasks.runs.keeper import Keeper
from interbench_tasks.runs.plan import Key, RunPlan

LOOK_AGAIN_S = 0.2
"""How often the second pass looks whether the run was stopped, while it waits for the first to end."""
SECOND_PASS = "second pass"


class Episodes:
    """The wanted episodes; a row that cannot become one is a failed record."""

    def __init__(self, plan: RunPlan, protocol: EpisodeProtocol, engine: Engine, keeper: Keeper) -> None:
        self._plan = plan
        self._protocol = protocol
        self._engine = engine
        self._keeper = keeper
        self._planned: Mapping[Key, Mapping[str, Any]] = {}
        self._first: dict[Key, EpisodeRecord] = {}
        self.n_second_pass: int | None = None
        """Episodes of all ranks that are played on; None until that is known."""

    def __len__(self) -> int:
        return len(self._plan.wanted)

    def __iter__(self) -> Iterator[Episode | EpisodeRecord]:
        plan = self._plan
        reader = reader_from(plan.data, plan.options)
        for doc_id, repeat in plan.wanted:
            stopped = plan.stop_reason()
            if stopped is not None:  # no picture is read for an episode that will not start
                yield self._unplayed(doc_id, repeat, stopped, "skipped", reader.identity(doc_id))
                continue
            try:
                yield reader.episode(doc_id, repeat)
            except Exception as error:  # noqa: BLE001 - whatever an odd row does, it must not end the run for the others
                told = str(error) if isinstance(error, InterbenchError) else f"row {doc_id}: {error!r}"
                yield self._unplayed(doc_id, repeat, redact(told), "failed", reader.identity(doc_id))
        if isinstance(self._protocol, TwoPassProtocol) and self._protocol.two_passes:
            yield from self._second_pass(self._protocol, reader)

    def _second_pass(self, protocol: TwoPassProtocol, reader: Reader) -> Iterator[Episode | EpisodeRecord]:
        while self._plan.wanted and not self._keeper.all_played.wait(LOOK_AGAIN_S):
            if self._engine.stopping:
                return
        gathered = self._engine.on_calling_thread(lambda: self._plan.from_all_ranks(self._keeper.facts()))
        if gathered is None:
            return
        self._planned = protocol.plan(gathered)
        self.n_second_pass = len(self._planned)
        for key in [key for key in self._plan.wanted if key in self._planned]:
            first = self._first[key] = self._keeper.folder.read(key)
            try:
                yield reader.episode(*key)
            except Exception as error:  # noqa: BLE001 - e.g. a picture that was removed meanwhile
                yield self._not_played_on(key, first, redact(repr(error)), passes=2)

    async def play(self, episode: Episode, roles: Roles) -> EpisodeRecord:
        """Play an episode, or play it on."""
        key = (episode.doc_id, episode.repeat)
        first = self._first.get(key)
        if first is None:
            return await self._protocol.play(episode, roles)
        assert isinstance(self._protocol, TwoPassProtocol)
        try:
            record = await self._protocol.play_on(episode, first, self._planned[key], roles)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the first pass is paid for and stays
            record = self._not_played_on(key, first, redact(repr(error))[:500], passes=2)
        del self._first[key]  # not before: of an episode that is cancelled, `failed` keeps the first pass
        return record

    def failed(self, episode: Episode, why: str, status: Literal["failed", "skipped"]) -> EpisodeRecord:
        """The record of an episode that raised or was not started; what it had in the first pass stays."""
        key = (episode.doc_id, episode.repeat)
        first = self._first.pop(key, None)
        if first is not None:
            return self._not_played_on(key, first, why, passes=1 if status == "skipped" else 2)
        return self._unplayed(
            episode.doc_id, episode.repeat, why, status, (episode.id, episode.category, episode.cluster)
        )

    def _not_played_on(self, key: Key, first: EpisodeRecord, why: str, *, passes: int) -> EpisodeRecord:
        """The record of the first pass, what it was drawn for, and why there is no more."""
        assert isinstance(self._protocol, TwoPassProtocol)
        record = self._protocol.drawn(first, self._planned[key])
        end = BranchEnd(branch=SECOND_PASS, reason="failed", error=why)
        return replace(record, passes=passes, ends=(*record.ends, end))

    def _unplayed(
        self,
        doc_id: int,
        repeat: int,
        why: str,
        status: Literal["failed", "skipped"],
        identity: tuple[str, str | None, str | None],
    ) -> EpisodeRecord:
        """The record of an episode that was not played, or whose script raised; identity = id, category, cluster."""
        episode_id, category, cluster = identity
        return EpisodeRecord(
            task=self._plan.task,
            protocol=self._plan.options.common.protocol,
            episode_id=episode_id,
            doc_id=doc_id,
            repeat=repeat,
            category=category,
            cluster=cluster,
            target="",
            options={},
            status=status,
            stop_reason="not_started" if status == "skipped" else "episode_failed",
            error=why,
        )
