"""Records of conversations without what no chart looks at: reading them whole takes most of a report's time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interbench_tasks.records import EpisodeRecord
from interbench_tasks.runs.folder import read_records

NOT_OF_TURNS = frozenset({"notes", "feedback", "reasoning_verdicts", "reasoning_verdict"})
NO_WORDS: Mapping[str, Any] = {"message": {"role": "user", "content": []}, "text": "", "target": "", "items": []}
NOT_OF_VERDICTS = frozenset({"prompt", "reply", "first_reply", "reason"})


def trimmed_records(folder: Path, *, judges: bool = False) -> Iterator[EpisodeRecord]:
    """The receiver's turns with the panel's verdicts; without notes, words of questions, and what passed with judges.

    Args: judges = also what each judge said.
    Raises: RunFolderError as `read_records` does.
    """
    dropped = NOT_OF_TURNS if judges else NOT_OF_TURNS | {"verdicts"}
    return read_records(folder, lambda obj: _trimmed(obj, dropped))


def _trimmed(obj: dict[str, Any], dropped: frozenset[str]) -> Mapping[str, Any]:
    """An episode's JSON; what has another shape than expected stays as it is, for the reader to complain about."""
    turns = obj.get("turns")
    if not isinstance(turns, list):
        return obj
    kept = [_turn(turn, dropped) for turn in turns if not (isinstance(turn, dict) and turn.get("role") == "notetaker")]
    whole = {key: value for key, value in obj.items() if key != "run"} | {"turns": kept}
    if isinstance(obj.get("questions"), list):  # they outlive their record
        whole["questions"] = [_question(one) for one in obj["questions"]]
    return whole


def _question(question: Any) -> Any:  # noqa: ANN401 - JSON
    """A question without its words."""
    if not isinstance(question, dict):
        return question
    return question | {key: bare for key, bare in NO_WORDS.items() if key in question}


def _turn(turn: Any, dropped: frozenset[str]) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(turn, dict):
        return turn
    kept = {key: value for key, value in turn.items() if key not in dropped}
    if isinstance(kept.get("verdict"), dict):
        kept["verdict"] = _verdict(kept["verdict"])
    if isinstance(kept.get("verdicts"), list):
        kept["verdicts"] = [_verdict(one) for one in kept["verdicts"]]
    return kept


def _verdict(verdict: Any) -> Any:  # noqa: ANN401 - JSON
    return {k: v for k, v in verdict.items() if k not in NOT_OF_VERDICTS} if isinstance(verdict, dict) else verdict
