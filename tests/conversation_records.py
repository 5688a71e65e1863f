"""Records of conversations made by hand: a history, questions, and what each memory arm answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interbench_tasks.records import (
    EpisodeRecord,
    Extraction,
    Judgement,
    Message,
    Notes,
    PictureRef,
    Question,
    Reply,
    Seen,
    Turn,
    Verdict,
)

MC = {"A": "yes", "B": "no"}
FAILED = Reply(text="", status="error", error="HTTP 500")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the metrics look at of a protocol's options."""

    memories: tuple[str | tuple[str, ...], ...] = ("none",)
    rubric: str | None = "mmrc"


def picture(number: int = 0) -> PictureRef:
    return PictureRef(digest=f"{number:032x}", width=4, height=3, mime="image/png")


def question(id: str, ability: str, **changes: object) -> Question:
    values: dict = {
        "id": id,
        "ability": ability,
        "message": Message(role="user", content=(f"{id}?",)),
        "text": f"{id}?",
        "target": "Up",
        "should_refuse": ability == "AR",
    }
    if changes.get("format", "open") != "open":
        values |= {"options": MC, "target": "A"}
    return Question(**{**values, **changes})


def judged(score: float | None, label: str | None = None) -> Verdict:
    """A panel's verdict; None: it is undecided."""
    status = "undecided" if score is None else "scored"
    return Verdict(judge="panel:mean_of_valid", status=status, score=score, label=label)


def answer(
    arm: str,
    asked: Question,
    text: str | Reply = "Up",
    *,
    score: float | None = None,
    correct: bool | None = None,
    label: str | None = None,
    seen: Seen | None = None,
) -> Turn:
    """A reply; an open question gets a verdict, another one a judgement unless `correct` is None."""
    reply = text if isinstance(text, Reply) else Reply(text=text, finish_reason="stop")
    judgement = None
    if asked.format != "open" and correct is not None:
        judgement = Judgement(extraction=Extraction(answer="A" if correct else "B", method="letter"), correct=correct)
    return Turn(
        index=0,
        parent=None,
        branch=f"{arm}/{asked.id}",
        user=asked.message,
        reply=reply,
        judgement=judgement,
        question=asked.id,
        verdict=judged(score, label) if asked.format == "open" and reply.usable else None,
        seen=seen,
    )


def history(n_turns: int, pictures: Mapping[int, int] | None = None, branch: str = "") -> list[Turn]:
    """The turns of a conversation. Args: pictures = turn -> how many pictures it has."""
    return [
        Turn(
            index=number,
            parent=number - 1 if number else None,
            branch=branch,
            user=Message(
                role="user", content=(*[picture(n) for n in range((pictures or {}).get(number, 0))], f"turn {number}")
            ),
            reply=Reply(text="I see.", finish_reason="stop"),
        )
        for number in range(n_turns)
    ]


def note_turn(memory: str, number: int, **changes: object) -> Turn:
    notes = Notes(**({"text": "{}"} | changes))
    message = Message(role="user", content=("notes?",))
    return Turn(
        index=0,
        parent=None,
        branch=memory,
        round=number,
        role="notetaker",
        user=message,
        reply=Reply(text="{}"),
        notes=notes,
    )


def conversation(
    doc_id: int,
    questions: Sequence[Question],
    answers: Sequence[Turn],
    *,
    n_turns: int = 4,
    pictures: Mapping[int, int] | None = None,
    **changes: object,
) -> EpisodeRecord:
    """A finished record."""
    turns = [*history(n_turns, pictures), *answers]
    values: dict = {
        "task": "t",
        "protocol": "conversation",
        "episode_id": f"talk-{doc_id}",
        "doc_id": doc_id,
        "repeat": 0,
        "category": None,
        "cluster": None,
        "target": "",
        "options": {},
        "questions": tuple(questions),
        "turns": tuple(turns),
        "stop_reason": "played",
    }
    return EpisodeRecord(**{**values, **changes})


def talk(doc_id: int, scores: Mapping[str, Mapping[str, float | None]], **changes: object) -> EpisodeRecord:
    """A conversation with one open question for each ability. Args: scores = arm -> ability -> score."""
    abilities = list(dict.fromkeys(ability for of_arm in scores.values() for ability in of_arm))
    questions = [question(f"q{ability}", ability) for ability in abilities]
    answers = [
        answer(arm, asked, score=of_arm[asked.ability])
        for arm, of_arm in scores.items()
        for asked in questions
        if asked.ability in of_arm
    ]
    return conversation(doc_id, questions, answers, **changes)
