"""What became of an episode, as the report's filters ask for it; from the JSON of its record.

From the JSON, not from the record: an episode that a newer version wrote is shown too, as far as it can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Obj = Mapping[str, Any]
"""A JSON object of a record."""
SNIPPET = 110
"""Characters of its first message that stand in the list of episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeFacts:
    """What the list of episodes shows of one, and what it is found by."""

    id: str
    doc_id: int
    repeat: int
    category: str | None
    outcomes: tuple[str, ...]
    """What became of it; several where it has several branches or questions."""
    solved_round: int | None
    """The first round with a right answer; None where there was none."""
    verified: bool
    """Whether answers were compared with a target at all, and no failed call hides in which round one was right: else
    rounds say nothing."""
    disagreement: bool
    """Whether two judges of one reply say different things."""
    leak: bool
    """Whether feedback gives the answer away, as far as the leak guard tells."""
    error: bool
    """Whether a call failed, a reply was empty, or a verdict could not be read."""
    snippet: str
    picture: str | None
    """Digest of its first picture."""


def facts_from(obj: Obj) -> EpisodeFacts:
    """The facts of one episode. Args: obj = a record's JSON, of any version."""
    turns = [turn for turn in obj.get("turns") or () if isinstance(turn, Mapping)]
    ends = [end for end in obj.get("ends") or () if isinstance(end, Mapping)]
    main = [turn for turn in turns if turn.get("role", "receiver") == "receiver"]
    tried = [turn for turn in main if turn.get("question") is None]  # answers to several questions have no rounds
    right = [int(turn.get("round") or 0) for turn in tried if _correct(turn) is True]
    category = obj.get("category")
    return EpisodeFacts(
        id=str(obj.get("episode_id", "?")),
        doc_id=int(obj.get("doc_id", -1)),
        repeat=int(obj.get("repeat", 0)),
        category=None if category is None else str(category),
        outcomes=tuple(dict.fromkeys(_outcomes(obj, main, ends))),
        solved_round=min(right, default=None),
        verified=any(_correct(turn) is not None for turn in tried) and bool(right or not _is_open(obj, ends)),
        disagreement=any(disagree(verdicts) for turn in turns for verdicts in _panels(turn)),
        leak=any(_leaks(holder.get("feedback")) for holder in (*turns, *ends)),
        error=_failed(obj, turns, ends),
        snippet=_snippet(main),
        picture=next((part["digest"] for turn in main for part in _content(turn) if _is_picture(part)), None),
    )


def disagree(verdicts: Iterable[Obj]) -> bool:
    """Whether two verdicts that were given differ in what they are about: detection, else label, score and fields."""
    said = [_said(verdict) for verdict in verdicts if verdict.get("status") == "scored"]
    return any(one != said[0] for one in said[1:])


def _said(verdict: Obj) -> object:
    fields = verdict.get("fields") or {}
    for name in ("detected", "false_alarm"):
        if name in fields:
            return fields[name]
    return (verdict.get("label"), verdict.get("score"), sorted(map(str, fields.items())))


def _panels(turn: Obj) -> Iterator[list[Obj]]:
    for key in ("verdicts", "reasoning_verdicts"):
        yield [verdict for verdict in turn.get(key) or () if isinstance(verdict, Mapping)]


def _correct(turn: Obj) -> bool | None:
    judgement = turn.get("judgement")
    return judgement.get("correct") if isinstance(judgement, Mapping) else None


def _outcomes(obj: Obj, main: list[Obj], ends: list[Obj]) -> Iterator[str]:
    status = obj.get("status", "finished")
    if status != "finished":
        yield "not played" if status == "skipped" else "failed"
        return
    protocol = obj.get("protocol")
    if protocol == "feedback_loop":
        yield from _feedback_outcomes(obj, main, ends)
    elif protocol == "critique":
        yield from _critique_outcomes(main)
    elif protocol == "conversation":
        yield from _answer_outcomes(main)
    else:
        yield str(obj.get("stop_reason") or "finished")


def _feedback_outcomes(obj: Obj, main: list[Obj], ends: list[Obj]) -> Iterator[str]:
    first = next((turn for turn in main if not turn.get("branch") and not turn.get("round")), None)
    if first is None or _correct(first) is None:
        yield "no first answer"
        return
    by_reason: dict[str, list[str]] = {}
    for end in ends:
        by_reason.setdefault(str(end.get("reason")), []).append(str(end.get("branch")))
    corrected_by = [*by_reason.get("solved", ()), *by_reason.get("marked_right", ())]
    if "marked_right" in by_reason:
        yield "marked right by a person"
    if _correct(first):
        yield "right at once"
        if "flipped" in by_reason:
            yield "right, then flipped"
    elif corrected_by:
        yield "corrected"
        yield from (f"corrected by {branch}" for branch in corrected_by)
    elif "rounds_used" in by_reason:
        yield "not corrected"
    elif _is_open(obj, ends):
        yield "wrong, then a call failed"
    elif by_reason:
        yield "wrong, feedback left out"
    else:
        yield "wrong, outside the test set"


def _is_open(obj: Obj, ends: list[Obj]) -> bool:
    """Whether a failed call hides what a wrong first answer came to, so that the metrics have it as unscored."""
    reasons = [str(end.get("reason")) for end in ends]
    hidden = any(reason.endswith("_failed") or reason == "context_overflow" for reason in reasons)
    return hidden or obj.get("stop_reason") == "provider_failed"


def _critique_outcomes(main: list[Obj]) -> Iterator[str]:
    for turn in main:
        branch = str(turn.get("branch") or "")
        panel = turn.get("verdict")
        if branch == "clarification" or not isinstance(panel, Mapping):
            continue
        style = f" ({branch})" if branch else ""
        fields = panel.get("fields") or {}
        if panel.get("status") != "scored":
            yield f"no verdict{style}"
        elif "false_alarm" in fields:
            yield ("false alarm" if fields["false_alarm"] == "true" else "valid item, no alarm") + style
        elif "detected" in fields:
            yield ("flaw detected" if fields["detected"] == "true" else "flaw missed") + style


def _answer_outcomes(main: list[Obj]) -> Iterator[str]:
    found: set[str] = set()
    for turn in main:
        if turn.get("question") is None:
            continue
        panel = turn.get("verdict")
        if _correct(turn) is not None:
            found.add("a choice right" if _correct(turn) else "a choice wrong")
        elif isinstance(panel, Mapping) and panel.get("score") is not None:
            found.add(f"an answer with score {float(panel['score']):.0f}")
        elif isinstance(panel, Mapping) and panel.get("label") is not None:
            found.add(f"an answer {panel['label']}")
        else:
            found.add("an answer without score")
    yield from sorted(found)


def _leaks(feedback: object) -> bool:
    if not isinstance(feedback, Mapping):
        return False
    checks = [feedback.get("leak"), (feedback.get("draft") or {}).get("leak")]
    return any(isinstance(check, Mapping) and check.get("found") for check in checks)


def _failed(obj: Obj, turns: list[Obj], ends: list[Obj]) -> bool:
    if obj.get("status", "finished") != "finished" or obj.get("error"):
        return True
    if any(end.get("error") or "failed" in str(end.get("reason")) for end in ends):
        return True
    if any((turn.get("reply") or {}).get("status", "ok") != "ok" for turn in turns):
        return True
    verdicts = [verdict for turn in turns for panel in _panels(turn) for verdict in panel]
    return any(verdict.get("status") in ("error", "unparsed") for verdict in verdicts)


def _content(turn: Obj) -> list[Any]:
    user = turn.get("user")
    return list(user.get("content") or ()) if isinstance(user, Mapping) else []


def _is_picture(part: object) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("digest"), str)


def _snippet(main: list[Obj]) -> str:
    texts = [part for turn in main[:1] for part in _content(turn) if isinstance(part, str)]
    text = " ".join(" ".join(texts).split())
    return text if len(text) <= SNIPPET else f"{text[: SNIPPET - 1]}…"
