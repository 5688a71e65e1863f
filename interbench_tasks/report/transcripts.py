"""What was said, packed for the report's browser: blocks of episodes, each compressed and unpacked when it is needed.

A block is a JSON list of episodes, gzip, base64. A page of 5,000 episodes stays one file that opens at once: the
browser unpacks a block when an episode of it is opened, and all of them for the first search.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from interbench_tasks.report.outcomes import EpisodeFacts, Obj, facts_from

BLOCK_BYTES = 400_000
"""Of JSON in a block, before it is compressed; a longer episode has a block of its own."""
_LEFT_OUT = frozenset({"prompt", "run", "first_reply"})
"""Keys of a record or a verdict that a reader of a transcript does not need; it is all in episodes.jsonl."""
_UNWRITABLE = re.compile("[\ud800-\udfff]")
"""Lone surrogates, which UTF-8 cannot hold."""


class Transcripts:
    """Takes episodes one by one; gives their blocks, their index, and the pictures that they show."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """Each gzip and base64; all are there once it is closed."""
        self.pictures: dict[str, int] = {}
        """Digest -> run (by number) in whose folder it is to be looked for first."""
        self._facts: list[tuple[int, int, int, EpisodeFacts]] = []
        self._texts: list[str] = []
        self._bytes = 0
        self._pool = ThreadPoolExecutor(1)  # compressing lets go of the interpreter's lock
        self._packing: list[Future[str]] = []

    def __len__(self) -> int:
        return len(self._facts)

    def add(self, run: int, obj: Obj) -> None:
        """Take one episode. Args: run = number of its run in the report; obj = its record's JSON, of any version.

        Raises: AttributeError, KeyError, TypeError or ValueError where `obj` is no record of any version.
        """
        facts = facts_from(obj)
        shown = without_prompts(obj)
        text, digests = _dumped(shown), list(_digests(shown))
        if self._texts and self._bytes + len(text) > BLOCK_BYTES:
            self._close_block()
        self._facts.append((run, len(self._packing), len(self._texts), facts))
        self._texts.append(text)
        self._bytes += len(text)
        for digest in digests:
            self.pictures.setdefault(digest, run)

    def close(self) -> None:
        """End the last block; nothing is added after that."""
        if self._texts:
            self._close_block()
        self.blocks = [packing.result() for packing in self._packing]
        self._pool.shutdown()

    def _close_block(self) -> None:
        self._packing.append(self._pool.submit(packed, "[" + ",".join(self._texts) + "]"))
        self._texts, self._bytes = [], 0

    def index(self) -> str:
        """The list of episodes, column by column, packed as a block is."""
        outcomes = list(dict.fromkeys(name for *_, facts in self._facts for name in facts.outcomes))
        categories = list(dict.fromkeys(facts.category for *_, facts in self._facts))
        outcome_of = {name: number for number, name in enumerate(outcomes)}
        category_of = {name: number for number, name in enumerate(categories)}
        rows = [
            [
                run,
                block,
                at,
                facts.id,
                facts.repeat,
                category_of[facts.category],
                [outcome_of[name] for name in facts.outcomes],
                facts.solved_round if facts.verified else -1,
                facts.disagreement + 2 * facts.leak + 4 * facts.error,
                facts.snippet,
                facts.picture,
            ]
            for run, block, at, facts in self._facts
        ]
        return packed(_dumped({"outcomes": outcomes, "categories": categories, "rows": rows}))

    @property
    def n_bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(map(len, self.blocks))

    def facts(self) -> list[dict[str, Any]]:
        """The facts of all episodes, each with the number of its run."""
        return [{"run": run, **asdict(facts)} for run, _, _, facts in self._facts]


def without_prompts(obj: Obj) -> dict[str, Any]:
    """The JSON of a record without what a reader does not need: prompts of judges and providers, usage, time stamps.

    A judge's reply stays where it says more than the verdict's reason; a notetaker's where it is not the notes. What
    a newer version adds stays.
    """
    kept = {key: value for key, value in obj.items() if key not in _LEFT_OUT}
    kept["turns"] = [_turn(turn) if isinstance(turn, Mapping) else turn for turn in obj.get("turns") or ()]
    if kept.get("ends"):
        kept["ends"] = [_holder(end) if isinstance(end, Mapping) else end for end in kept["ends"]]
    return kept


def _turn(turn: Obj) -> dict[str, Any]:
    kept = _holder(turn)
    if isinstance(turn.get("reply"), Mapping):
        kept["reply"] = _reply(turn["reply"])
    notes = turn.get("notes")
    if isinstance(notes, Mapping) and "reply" in kept and kept["reply"].get("text") == notes.get("text"):
        kept["reply"]["text"] = ""
    for key in ("verdicts", "reasoning_verdicts"):
        if key in turn:
            kept[key] = [_verdict(one) if isinstance(one, Mapping) else one for one in turn[key]]
    return kept


def _holder(holder: Obj) -> dict[str, Any]:
    """A turn or a branch's end, its feedback made smaller."""
    kept = dict(holder)
    feedback = kept.get("feedback")
    if isinstance(feedback, Mapping):
        own = {key: value for key, value in feedback.items() if key not in ("prompt", "reply")}
        reply, draft = feedback.get("reply"), feedback.get("draft")
        if isinstance(reply, Mapping) and (reply.get("status") != "ok" or reply.get("error")):
            own["reply"] = _reply(reply)
        if isinstance(draft, Mapping):
            own["draft"] = {key: value for key, value in draft.items() if key in ("text", "leak")}
        kept["feedback"] = own
    return kept


def _verdict(verdict: Obj) -> dict[str, Any]:
    kept = {key: value for key, value in verdict.items() if key not in _LEFT_OUT and key != "reply"}
    if verdict.get("status") != "scored" and isinstance(verdict.get("reply"), Mapping):
        kept["reply"] = _reply(verdict["reply"])
    return kept


def _reply(reply: Obj) -> dict[str, Any]:
    return {key: value for key, value in reply.items() if key != "usage"}


def packed(text: str) -> str:
    """A text, compressed and in base64; the same text gives the same result."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")


def unpacked(block: str) -> Any:  # noqa: ANN401 - JSON
    """What `packed` made of JSON."""
    return json.loads(gzip.decompress(base64.b64decode(block)))


def _dumped(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else _UNWRITABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _digests(obj: Obj) -> Iterator[str]:
    """Digests of all pictures of an episode's messages, in order."""
    for turn in obj.get("turns") or ():
        user = turn.get("user") if isinstance(turn, Mapping) else None
        for part in (user.get("content") or ()) if isinstance(user, Mapping) else ():
            if isinstance(part, Mapping) and isinstance(part.get("digest"), str):
                yield part["digest"]
