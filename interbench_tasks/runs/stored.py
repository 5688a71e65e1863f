"""Replies that were given before, by a run of ours or by anybody: they stand for a model that is not asked again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interbench_tasks.errors import DataError
from interbench_tasks.hookspecs import Call
from interbench_tasks.records import EpisodeRecord, Message, Reply, RoleName, Usage

SHOWN_PROBLEMS = 20
CLARIFICATION = "clarification"
"""The branch in which a model that asked back was told what was missing."""


class Place(NamedTuple):
    """Where in a data set replies belong."""

    episode_id: str
    repeat: int
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """A reply, and what it was the reply to."""

    reply: Reply
    round: int
    asked: Message | None = None
    """None where nobody tells: it then answers whatever is asked at its place."""


class StoredReplies:
    """Answers for a role with what was said before. A question that was never asked is a failed call, never a guess.

    A clarification that was never given is `skipped`: it is no failure, the other judges saw no reason for it.

    Args: name, fingerprint = of the model that said it; replies = by place, in the order in which they were given.
    """

    recorded = True
    """The engine neither counts such replies nor puts them into the ledger."""

    def __init__(self, name: str, fingerprint: str, replies: Mapping[Place, Sequence[StoredReply]]) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._replies = replies

    async def reply(self, call: Call) -> Reply:
        """The stored reply to this call's last message."""
        place = Place(call.episode.id, call.episode.repeat, call.branch)
        there = self._replies.get(place, ())
        fitting = [one for one in there if _answers(one, call.messages[-1])]
        exact = [one for one in fitting if one.round == call.round]
        if len(exact) == 1:
            return exact[0].reply
        # The turns of a replayed conversation are told apart by their order.
        if call.round < len(there) and there[call.round] in fitting and there[call.round].asked is not None:
            return there[call.round].reply
        never = place.branch == CLARIFICATION and not there  # only these judges say that the model asks back
        why = _why(place, call.round, there, fitting)
        return Reply(text="", status="skipped" if never else "error", error=why, usage=Usage())

    async def close(self) -> None:
        """Nothing is open."""


def _answers(stored: StoredReply, asked: Message) -> bool:
    return stored.asked is None or stored.asked.content == asked.content


def _why(place: Place, round: int, there: Sequence[StoredReply], fitting: Sequence[StoredReply]) -> str:
    where = f"episode {place.episode_id!r}" + (f", branch {place.branch!r}" if place.branch else "")
    where += f", round {round}" if round else ""
    if there and not fitting:
        return f"{where}: the stored reply answers another message; data, prompts or options differ from the run's"
    if place.branch == CLARIFICATION and not there:
        return f"{where}: there is no stored reply; it was never told, as only these judges say that it asks back"
    return f"{where}: there is no stored reply"


# --- from a run of ours -----------------------------------------------------------------------------------------------


def replies_from_records(records: Iterable[EpisodeRecord], role: RoleName) -> dict[Place, list[StoredReply]]:
    """What one role said in the records of a run."""
    found: dict[Place, list[StoredReply]] = {}
    for record in records:
        for turn in record.turns:
            if turn.role == role:
                # A record says of a notetaker's turn where it stands, not what was asked: that is long, and repeats.
                asked = turn.user if role == "receiver" else None
                place = Place(record.episode_id, record.repeat, turn.branch)
                found.setdefault(place, []).append(StoredReply(reply=turn.reply, round=turn.round, asked=asked))
    return found


# --- from a file ----------------------------------------------------------------------------------------------------


class ReplyRow(BaseModel):
    """One line of a file of replies; further keys are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    id: str
    """Of the item in the task's data set."""
    reply: str | None
    """null: the call failed. An empty text: nothing came, and nobody knows why."""
    reasoning: str | None = None
    """Thinking that was returned apart from the reply."""
    branch: str = ""
    """Which question or style of the item it answers, where there are several, e.g. `none/q1`."""
    round: int = Field(default=0, ge=0)
    repeat: int = Field(default=0, ge=0)
    finish_reason: str | None = None
    """E.g. `stop`, `length`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFile:
    """A checked file of replies."""

    replies: Mapping[Place, Sequence[StoredReply]]
    episodes: Sequence[tuple[str, int]]
    """(item's id, repeat) of each episode that a reply belongs to, in the order of the file."""
    digest: str
    """SHA-256 of the file."""


def replies_from_file(file: Path) -> ReplyFile:
    """The replies of a JSONL file.

    Raises: DataError with all problems of the file, by line: no JSON, no id or reply, one place twice, no line at all.
    """
    try:
        content = file.read_bytes()
        lines = content.decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    found: dict[Place, list[StoredReply]] = {}
    line_of: dict[tuple[Place, int], int] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _row_from(line)
        if isinstance(row, list):
            problems += [f"{file}, line {number}: {problem}" for problem in row]
            continue
        place = Place(row.id, row.repeat, row.branch)
        first = line_of.setdefault((place, row.round), number)
        if first != number:
            problems.append(f"{file}, line {number}: id {row.id!r} is also that of line {first}; name branch or repeat")
            continue
        found.setdefault(place, []).append(StoredReply(reply=_reply_from(row), round=row.round))
    if problems:
        more = f"\nand {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        raise DataError("\n".join(problems[:SHOWN_PROBLEMS]) + more)
    if not found:
        raise DataError(f"{file}: holds no replies")
    episodes = list(dict.fromkeys((place.episode_id, place.repeat) for place in found))
    return ReplyFile(replies=found, episodes=episodes, digest=hashlib.sha256(content).hexdigest())


def _row_from(line: str) -> ReplyRow | list[str]:
    """The row, or what is wrong with it."""
    try:
        raw: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return [f"no valid JSON: {error}"]
    if not isinstance(raw, dict):
        return [f"must be an object with `id` and `reply`, got {type(raw).__name__}"]
    try:
        return ReplyRow.model_validate(raw)
    except ValidationError as error:
        return list(_told(error, raw))


def _told(error: ValidationError, raw: Mapping[str, Any]) -> Iterator[str]:
    for each in error.errors():
        key = ".".join(map(str, each["loc"]))
        if each["type"] == "missing":
            yield f"lacks the key `{key}`; it has: {', '.join(raw) or 'none'}"
        else:
            yield f"`{key}`: {each['msg']}"


def _reply_from(row: ReplyRow) -> Reply:
    if row.reply is None:
        return Reply(text="", status="error", error="the file has no reply here (null)", usage=Usage())
    return Reply(
        text=row.reply,
        status="ok" if row.reply.strip() or row.reasoning else "empty",
        error=None if row.reply.strip() or row.reasoning else "the file's reply is empty, and nobody knows why",
        finish_reason=row.finish_reason,
        reasoning=row.reasoning,
        usage=Usage(),
    )
