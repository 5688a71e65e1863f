"""A task's episodes played with stand-ins that say nothing but filler: which calls are made, and what is sent.

Filler is made of characters that stand in no text, one a kind of reply, so that of each prompt it is known how much the
task itself says and how many replies of which kind are quoted, whatever their length will be. Each reply also has a
number of its own: two requests are the same where a run's would be, and the same request is made once, for its reply
then comes from the ledger (arms that replay one conversation to the same point ask the same).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks import settings
from interbench_tasks.conversations import reader_from
from interbench_tasks.errors import DataError
from interbench_tasks.estimating.picture_tokens import picture_tokens
from interbench_tasks.estimating.prompts import CHARACTERS_PER_TOKEN, PicturedModel, sampled, text_tokens
from interbench_tasks.estimating.task import Task
from interbench_tasks.hookspecs import Call, RoleClient
from interbench_tasks.protocols.rehearsed import THOUGHTS, RehearsedCalls
from interbench_tasks.records import (
    Episode,
    Extraction,
    GenerationSettings,
    Judgement,
    Message,
    Purpose,
    Reply,
    RoleName,
    Usage,
)
from interbench_tasks.runs.play import parts_from

MOST_EPISODES = 500
"""Episodes that are rehearsed; a larger data set is judged by a sample of them."""
FIRST_FILLER = 0xF0000
FIRST_DIGIT = 0x100000
"""Private planes of Unicode: no text of a data set is written in them."""
_BASE = 0xFFFE
_FILLER = re.compile(r"[\U000F0000-\U000FFFFD]")
_NOT_OURS = re.compile(r"[\U000F0000-\U000FFFFD\U00100000-\U0010FFFD]")
_PIECE = 100
"""Characters of filler in one piece of notes: notes that get too long lose some, not all."""
Lengths = Callable[[str], float]
"""Kind of a reply -> its mean length in tokens."""


@dataclass(slots=True)
class Size:
    """What the calls of one kind, to one role, send."""

    calls: int = 0
    text: float = 0.0
    """Tokens of text that no model wrote, by the rule of thumb."""
    pictures: tuple[float, float] = (0.0, 0.0)
    """Fewest and most tokens."""
    quoted: Counter[str] = field(default_factory=Counter)
    """Kind of reply -> how many of mean length stand in the prompts; parts of one are fractions."""

    def add(self, other: Size) -> None:
        """Add the calls of another episode."""
        self.calls += other.calls
        self.text += other.text
        self.pictures = (self.pictures[0] + other.pictures[0], self.pictures[1] + other.pictures[1])
        self.quoted.update(other.quoted)

    def tokens(self, lengths: Mapping[str, float]) -> float:
        """Input tokens at these lengths of replies, by the rule of thumb, pictures by the middle of their range."""
        return self.text + sum(self.pictures) / 2 + sum(n * lengths[kind] for kind, n in self.quoted.items())


Key = tuple[str, str]
"""(role, kind) of calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What the episodes of a task will send."""

    episodes: Mapping[int, Mapping[Key, Size]]
    """doc_id -> sizes of its calls."""
    ids: Mapping[int, str]
    """doc_id -> id of the episode."""
    n_broken: int
    """Rows that cannot become an episode, of those that were read."""

    def over(self, docs: Sequence[int]) -> dict[Key, Size]:
        """The calls of some episodes together."""
        found: dict[Key, Size] = {}
        for doc in docs:
            for key, size in self.episodes[doc].items():
                found.setdefault(key, Size()).add(size)
        return found


def rehearsed(
    task: Task, calls: RehearsedCalls, models: Mapping[str, PicturedModel], lengths: Lengths, *, also: Sequence[int]
) -> Rehearsal:
    """The calls of a sample of the task's episodes, all where there are few.

    Args: models = role -> its model; lengths = mean lengths that filler has; also = rows that are in it in any case.
    Raises: DataError where none of the sampled rows can become an episode.
    """
    reader = reader_from(task.data, task.options)
    parts = replace(parts_from(task.options, task.offers), verifier=_Unread())
    protocol = task.offers.protocols[task.options.common.protocol](task.options.protocol_options, parts)
    shared = (
        frozenset()
        if settings.ledger_folder() is None
        else frozenset(key for key, role in task.roles.items() if role.words.backend != "simulated")
    )
    counting = _Counting(calls, models, lengths, shared)
    variants = tuple(getattr(task.options.protocol_options, "variants", ()))
    found: dict[int, Mapping[Key, Size]] = {}
    ids: dict[int, str] = {}
    broken: DataError | None = None
    n_broken = 0
    for doc_id in sorted({*sampled(task.rows, MOST_EPISODES), *also}):
        try:
            episode = reader.episode(doc_id, 0)
        except DataError as error:
            broken, n_broken = error, n_broken + 1
            continue
        stage = _Stage(counting, episode, variants)
        asyncio.run(protocol.play(episode, stage))
        counting.forget_texts()
        found[doc_id], ids[doc_id] = stage.sizes, episode.id
    if not found:
        raise broken or DataError(f"{task.data.source}: no rows to estimate")
    return Rehearsal(episodes=found, ids=ids, n_broken=n_broken)


class _Unread:
    """Stands for the verifier: filler holds no answer."""

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        return Judgement(extraction=Extraction(answer=None, method="none"), correct=False)


class _Counting:
    """Makes filler, and measures what is sent."""

    def __init__(
        self,
        calls: RehearsedCalls,
        models: Mapping[str, PicturedModel],
        lengths: Lengths,
        shared: Collection[str],
    ) -> None:
        self.calls = calls
        self.models = models
        self.lengths = lengths
        self._shared = shared
        self._marks: dict[str, str] = {}
        self._texts: dict[str, tuple[float, Counter[str]]] = {}
        self._numbers: dict[int, int] = {}
        self._n_calls = 0

    def number_of(self, key: str, variant: str, messages: Sequence[Message]) -> tuple[int, bool]:
        """The number of the reply to a request, and whether it is made: not where the same was asked before."""
        self._n_calls += 1
        if key not in self._shared:
            return self._n_calls, True
        parts = tuple(
            (message.role, *[part if isinstance(part, str) else part.digest for part in message.content])
            for message in messages
        )
        request = hash((key, variant, parts))  # 64 bits: no two of some millions are alike by chance
        known = self._numbers.setdefault(request, self._n_calls)
        return known, known == self._n_calls

    def filler(self, kind: str, number: int, share: float = 1.0) -> str:
        """A reply's worth. Args: number = of the reply; share = of the mean length, > 0."""
        mark = self._marks.setdefault(kind, chr(FIRST_FILLER + len(self._marks)))
        own = chr(FIRST_DIGIT + number // _BASE % _BASE) + chr(FIRST_DIGIT + number % _BASE)
        return own + mark * max(1, round(self.lengths(kind) * CHARACTERS_PER_TOKEN * share))

    def forget_texts(self) -> None:
        """An episode has ended: no other one says the same."""
        self._texts.clear()

    def measured(self, messages: Sequence[Message], model: PicturedModel | None) -> Size:
        """What one call sends."""
        size = Size(calls=1)
        low, high = 0.0, 0.0
        for message in messages:
            for part in message.content:
                if isinstance(part, str):
                    text, quoted = self._of_text(part)
                    size.text += text
                    size.quoted.update(quoted)
                elif model is not None:
                    fewest, most = picture_tokens(model.name, part.width, part.height, detail=model.detail)
                    low, high = low + fewest, high + most
        size.pictures = (low, high)
        return size

    def _of_text(self, text: str) -> tuple[float, Counter[str]]:
        """Tokens that no model wrote, and how many replies of each kind stand in it."""
        found = self._texts.get(text)
        if found is None:
            kinds = {mark: kind for kind, mark in self._marks.items()}
            marks = Counter(_FILLER.findall(text))
            own = text_tokens(_NOT_OURS.sub("", text)) if marks else text_tokens(text)
            quoted: Counter[str] = Counter()
            for mark, n in marks.items():
                if mark in kinds:
                    quoted[kinds[mark]] = n / (self.lengths(kinds[mark]) * CHARACTERS_PER_TOKEN)  # type: ignore[assignment]  # parts of a reply are fractions
            found = self._texts[text] = (own, quoted)
        return found


class _Stage:
    """The roles of one episode, all played by stand-ins."""

    def __init__(self, counting: _Counting, episode: Episode, variants: Sequence[str]) -> None:
        self.sizes: dict[Key, Size] = {}
        self._counting = counting
        self._variants = variants
        self._episode = episode
        self._clients = {key: self._stand_in(key) for key in counting.models}

    def _stand_in(self, key: str, variant: str = "") -> _StandIn:
        name = self._counting.models[key].name
        return _StandIn(
            name=name, key=key, counting=self._counting, episode=self._episode, sizes=self.sizes, variant=variant
        )

    @property
    def receiver(self) -> RoleClient:
        return self._clients["receiver"]

    @property
    def variants(self) -> Mapping[str, RoleClient]:
        return {label: self._stand_in("receiver", label) for label in self._variants}  # replies as long as the others

    @property
    def providers(self) -> Mapping[str, RoleClient]:
        return self._named("provider")

    @property
    def provider(self) -> RoleClient | None:
        return next(iter(self.providers.values()), None)

    @property
    def judges(self) -> Mapping[str, RoleClient]:
        return self._named("judge")

    @property
    def notetaker(self) -> RoleClient | None:
        return next(iter(self._named("notetaker").values()), None)

    def _named(self, name: str) -> dict[str, RoleClient]:
        parted = {key: key.partition("@") for key in self._clients}
        return {label: self._clients[key] for key, (role, _, label) in parted.items() if role == name}


@dataclass(slots=True, kw_only=True)
class _StandIn:
    """One role. Not frozen, because the protocol `RoleClient` declares a settable name."""

    name: str
    key: str
    counting: _Counting
    episode: Episode
    sizes: dict[Key, Size]
    variant: str = ""
    """Of a sweep: with other options the same messages are another request."""

    async def reply(
        self, messages: Sequence[Message], *, branch: str = "", round: int = 0, purpose: Purpose = "answer"
    ) -> Reply:
        role: RoleName = self.key.partition("@")[0]  # type: ignore[assignment]  # keys begin with the role's name
        counting = self.counting
        kind = counting.calls.kind_of(role, purpose, branch, round)
        number, made = counting.number_of(self.key, self.variant, messages)
        if made:
            size = counting.measured(messages, counting.models[self.key])
            self.sizes.setdefault((self.key, kind), Size()).add(size)
        call = Call(
            messages=tuple(messages),
            settings=GenerationSettings(max_new_tokens=1, temperature=0),
            role=role,
            purpose=purpose,
            episode=self.episode,
            branch=branch,
            round=round,
        )
        thoughts = counting.filler(THOUGHTS, number) if counting.calls.thinks and purpose == "answer" else None
        text = counting.calls.says(call)
        if text is None:
            text = self._notes(kind, round, number) if purpose == "notes" else counting.filler(kind, number)
        return Reply(text=text, finish_reason="stop", reasoning=thoughts, usage=Usage(), model=self.name)

    def _notes(self, kind: str, turn: int, number: int) -> str:
        """Notes that grow as long as the conversation does, readable for every memory: as JSON, and as a text."""
        n_turns = max(len(self.episode.script), 1)
        filler = self.counting.filler(kind, number, 2 * (turn + 1) / (n_turns + 1))
        own, filler = filler[:2], filler[2:]
        pieces = [own + filler[start : start + _PIECE] for start in range(0, len(filler), _PIECE)]
        return json.dumps({"facts": pieces}, ensure_ascii=False)
