"""LoCoMo's conversations -> the canonical form, for `history: recorded`.

Source: Maharana et al. (2024), Evaluating Very Long-Term Conversational Memory of LLM Agents. Two people talk over many
sessions; pictures are there by their captions only. Which ability a category tests is OURS: 1 (several hops), 2 (time)
and 3 (open domain) cross-turn reasoning, 4 (one hop) memory recall, 5 (adversarial) answer refusal.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interbench_tasks.errors import DataError

ABILITY_OF: Mapping[int, str] = {1: "CR", 2: "CR", 3: "CR", 4: "MR", 5: "AR"}
"""Category -> ability."""
UNANSWERABLE = "The conversation does not say; it would be wrong to answer: {wrong}"
NOTHING_SAID = "(no answer)"
"""Stands for the reply to a last message that nobody answered."""
_SESSION = re.compile(r"session_(\d+)$")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """What one speaker says until the other one does."""

    speaker: str
    text: str
    ids: tuple[tuple[int, int], ...]
    """(session, number) of the utterances in it."""


def locomo_rows(path: Path) -> list[dict[str, Any]]:
    """The canonical rows of a file (one conversation or a list of them), a folder of such files, or a zip of them.

    Raises: DataError where there is no LoCoMo conversation, naming the file and what it holds.
    """
    rows = [row for name, content in _files(path) for row in _rows_of(content, name, path)]
    if not rows:
        raise DataError(f"{path}: holds no .json file")
    return rows


def _files(path: Path) -> Iterator[tuple[str, Any]]:
    """(name, content) of each JSON file, in the order of their names."""
    try:
        if path.is_dir():
            for file in sorted(path.rglob("*.json")):
                yield file.stem, json.loads(file.read_text(encoding="utf-8"))
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(name for name in archive.namelist() if name.endswith(".json")):
                    yield Path(name).stem, json.loads(archive.read(name))
        else:
            yield path.stem, json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _rows_of(content: object, name: str, path: Path) -> Iterator[dict[str, Any]]:
    if isinstance(content, list):
        for index, one in enumerate(content):
            yield locomo_row(one, f"{name}_{index}", f"{path}, conversation {index}")
    else:
        yield locomo_row(content, name, f"{path}, {name}")


def locomo_row(raw: object, name: str, where: str) -> dict[str, Any]:
    """One conversation in canonical form.

    Args: raw = as LoCoMo has it, with its sessions under `conversation` or beside `qa`; name = its id, unless it has
        one; where = its place, for errors.
    Raises: DataError naming the key that is missing or odd.
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("qa"), list):
        keys = ", ".join(map(str, raw)) if isinstance(raw, Mapping) else type(raw).__name__
        raise DataError(f"{where}: is no LoCoMo conversation: no list 'qa'; it has: {keys:.300}")
    talk = raw.get("conversation", raw)
    messages = _merged(_utterances(talk, where))
    if not messages:
        raise DataError(f"{where}: has no session_1, session_2, ... with utterances")
    turns, turn_of = _paired(messages)
    questions = [
        _question(one, number, turn_of, f"{where}, qa[{number}]") for number, one in enumerate(raw["qa"], start=1)
    ]
    return {"id": str(raw.get("sample_id", name)), "turns": turns, "questions": questions}


def _utterances(talk: Mapping[str, Any], where: str) -> Iterator[_Message]:
    sessions = sorted(int(found.group(1)) for key in talk if (found := _SESSION.match(key)))
    for session in sessions:
        date = talk.get(f"session_{session}_date_time", "")
        for place, said in enumerate(talk[f"session_{session}"] or ()):
            try:
                text = f"{said['speaker']}: {said['text']}"
                found = _EVIDENCE.fullmatch(said["dia_id"])
            except (KeyError, TypeError) as error:
                raise DataError(f"{where}, session_{session}[{place}]: has no {error}") from error
            if said.get("blip_caption"):
                text += f" [shows a picture: {said['blip_caption']}]"
            head = f"[{date}]\n" if place == 0 and date else ""
            number = int(found.group(2)) if found else place + 1
            yield _Message(speaker=said["speaker"], text=head + text, ids=((session, number),))


def _merged(said: Iterator[_Message]) -> list[_Message]:
    """Consecutive utterances of one speaker as one message: the speakers then alternate."""
    merged: list[_Message] = []
    for one in said:
        if merged and merged[-1].speaker == one.speaker:
            last = merged.pop()
            one = _Message(speaker=one.speaker, text=f"{last.text}\n{one.text}", ids=(*last.ids, *one.ids))
        merged.append(one)
    return merged


def _paired(messages: Sequence[_Message]) -> tuple[list[dict[str, Any]], dict[tuple[int, int], int]]:
    """Turns, and the turn that each utterance is in. Whoever speaks first is the user."""
    turns: list[dict[str, Any]] = []
    turn_of: dict[tuple[int, int], int] = {}
    for first in range(0, len(messages), 2):
        reply = messages[first + 1].text if first + 1 < len(messages) else NOTHING_SAID
        turn_of |= {one: len(turns) for message in messages[first : first + 2] for one in message.ids}
        turns.append({"user_text": messages[first].text, "images": [], "ref_response": reply})
    return turns, turn_of


def _question(
    raw: Mapping[str, Any], number: int, turn_of: Mapping[tuple[int, int], int], where: str
) -> dict[str, Any]:
    category = raw.get("category")
    if not isinstance(category, int) or category not in ABILITY_OF:
        raise DataError(f"{where}: category = {category!r}; allowed: {', '.join(map(str, ABILITY_OF))}")
    wrong = raw.get("adversarial_answer")
    answer = UNANSWERABLE.format(wrong=wrong) if category == 5 else raw.get("answer")
    if answer is None or not raw.get("question"):
        raise DataError(f"{where}: has no {'question' if answer is not None else 'answer'}")
    question: dict[str, Any] = {
        "qid": f"q{number}",
        "ability": ABILITY_OF[category],
        "question": str(raw["question"]),
        "answer": str(answer),
        "extra": {"category": str(category)},
    }
    if category != 5:  # what stands there only looks like an answer
        named = [(int(s), int(n)) for text in raw.get("evidence") or () for s, n in _EVIDENCE.findall(str(text))]
        question["evidence_turns"] = sorted({turn_of[one] for one in named if one in turn_of})
    return question


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write canonical rows as JSON lines.

    Raises: DataError where the file exists already or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    except FileExistsError as error:
        raise DataError(f"{path}: already exists; choose another file, or remove it") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}") from error
