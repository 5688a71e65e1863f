"""Fakes that tests share: a role that answers from a script, ready-made episodes, a verifier that compares letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from interbench_tasks import (
    Episode,
    Extraction,
    Feedback,
    Judgement,
    Message,
    Parts,
    Provider,
    Reply,
    Turn,
    Usage,
)
from interbench_tasks.records import Purpose

OPTIONS = {"A": "cat", "B": "dog", "C": "owl", "D": "fox"}


def make_episode(target: str = "B", **changes: object) -> Episode:
    values: dict = {
        "id": "item-1",
        "doc_id": 0,
        "question": Message(role="user", content=("What animal?",)),
        "target": target,
        "options": OPTIONS,
        "raw_question": "What animal?",
    }
    return Episode(**{**values, **changes})


def ok(text: str) -> Reply:
    return Reply(text=text, usage=Usage(calls=1, input_tokens=10, output_tokens=5))


def error(text: str = "HTTP 500") -> Reply:
    return Reply(text="", status="error", error=text)


@dataclass
class Asked:
    messages: tuple[Message, ...]
    branch: str
    round: int
    purpose: Purpose


@dataclass
class ScriptedRole:
    """A RoleClient that answers by (branch, round, purpose), and remembers what it was asked."""

    script: Callable[[Asked], Reply | str]
    name: str = "scripted"
    asked: list[Asked] = field(default_factory=list)

    async def reply(
        self, messages: Sequence[Message], *, branch: str = "", round: int = 0, purpose: Purpose = "answer"
    ) -> Reply:
        self.asked.append(Asked(tuple(messages), branch, round, purpose))
        said = self.script(self.asked[-1])
        return ok(said) if isinstance(said, str) else said

    def prompts(self, branch: str) -> list[list[str]]:
        return [[message.text for message in asked.messages] for asked in self.asked if asked.branch == branch]


@dataclass
class FakeRoles:
    receiver: ScriptedRole
    provider: ScriptedRole | None = None
    several: Mapping[str, ScriptedRole] = field(default_factory=dict)
    """Label -> provider, instead of a single one."""
    judges: Mapping[str, ScriptedRole] = field(default_factory=dict)
    notetaker: ScriptedRole | None = None

    @property
    def providers(self) -> Mapping[str, ScriptedRole]:
        """Label -> provider: a single one has no label."""
        return self.several or ({} if self.provider is None else {"": self.provider})


class LetterVerifier:
    """The whole reply must be a letter; anything else is unreadable."""

    def judge(self, text: str, target: str, options: Mapping[str, str]) -> Judgement:
        answer = text.strip() if text.strip() in options else None
        extraction = Extraction(answer=answer, method="letter" if answer else "none")
        return Judgement(extraction=extraction, correct=answer == target)


class Hint:
    """Feedback that names its arm and round, without a model."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        return Feedback(text=f"{self.kind}: '{turn.reply.text}' is wrong", kind=self.kind, author="template")


class AskedHint:
    """Feedback that the provider's model writes; failed where the model failed."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    async def give(self, episode: Episode, turn: Turn, provider: Provider) -> Feedback:
        prompt = Message(role="user", content=("hint?",))
        reply = await provider.reply([prompt])
        return Feedback(
            text=reply.text,
            kind=self.kind,
            author=provider.name,
            status="given" if reply.usable else "failed",
            prompt=prompt,
            reply=reply,
        )


def parts(**feedback: object) -> Parts:
    return Parts(verifier=LetterVerifier(), feedback_providers=feedback or {"simple": Hint("simple")})
