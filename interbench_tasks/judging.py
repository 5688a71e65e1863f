"""Judges: what they are asked, how their replies are read, and what a panel makes of them.

A judge reads text that the model under test wrote, and that model gains from a good verdict. So the text is fenced as
data, and a verdict counts only if it carries a word, the nonce, that stands in the prompt outside the data. It is
derived from a seed, the judge and all that is judged: the same call has the same nonce in every run, so that the ledger
finds it again, and who writes the text cannot know it, because it depends on the text. What is not a clear verdict of
the judge is none: it is recorded, never guessed, and leaves the answer unscored.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interbench_tasks.errors import InterbenchError
from interbench_tasks.hookspecs import PanelRule, RoleClient
from interbench_tasks.judging_json import FoundObject, objects_in, values_of
from interbench_tasks.judging_parse import label_from, plain
from interbench_tasks.judging_parse import said as said_by
from interbench_tasks.judging_rubrics import TRUTHS, JudgeField, Rubric, Scale, rubrics, shipped_rubrics
from interbench_tasks.prompts import render
from interbench_tasks.reasoning import said_in_the_end
from interbench_tasks.records import Message, PictureRef, Reply, Verdict

__all__ = [
    "Judged",
    "JudgingError",
    "Rubric",
    "Scale",
    "Subject",
    "judge_prompt",
    "judge_reply",
    "rubrics",
    "shipped_rubrics",
    "verdict_from",
]

_LETTERS = "bcdfghjkmnpqrstv"
"""Sixteen letters for the hex digits: a word of them is never a number, and hardly ever one of a language."""
_NONCE_LENGTH = 12
"""48 bits."""


class JudgingError(InterbenchError):
    """A judge cannot be asked safely: its prompt would hold a verdict, or there is no judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is judged."""

    question: str
    reference: str
    """What a right answer says."""
    response: str
    """The reply under test as it came; its thinking is taken out before a judge sees it."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further texts for the judge by name, e.g. `evidence`; fenced like the others."""
    pictures: tuple[PictureRef, ...] = ()
    """Pictures that the judge is shown before the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the judges said of one reply."""

    verdicts: tuple[Verdict, ...]
    """One a declared judge, in their order."""
    verdict: Verdict
    """The panel's; its status is `scored` only where the rule could decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt:
    """What one judge is asked, and the word that its verdict must carry."""

    text: str
    nonce: str


async def judge_reply(
    *,
    rubric: Rubric,
    subject: Subject,
    judges: Mapping[str, RoleClient],
    rule: PanelRule,
    branch: str,
    round: int,
    seed: str,
    ask_again: bool = False,
) -> Judged:
    """What all judges say of one reply; they are asked side by side.

    Args: judges = label -> judge, one at least; branch, round = where the judged turn stands; seed = what the nonces
        are derived from, beside the texts: the same for the same episode in every run; ask_again = a judge whose reply
        cannot be read is asked once more, with another nonce.
    Raises: JudgingError where there is no judge. A judge that fails is a verdict that is not `scored`, no error.
    """
    if not judges:
        raise JudgingError("nobody to judge: name at least one judge under metadata.interbench.roles.judge")
    seeds = (seed, f"{seed}/again") if ask_again else (seed,)
    asked = [_ask(judge, label, rubric, subject, seeds, branch, round) for label, judge in judges.items()]
    verdicts = tuple(await asyncio.gather(*asked))
    return Judged(verdicts=verdicts, verdict=rule.combine(verdicts, len(judges)))


async def _ask(
    judge: RoleClient, label: str, rubric: Rubric, subject: Subject, seeds: Sequence[str], branch: str, round: int
) -> Verdict:
    """The judge's verdict; while its reply cannot be read it is asked once more for each further seed."""
    found: Verdict | None = None
    for seed in seeds:
        prompt = judge_prompt(rubric, subject, judge=label or judge.name, seed=seed)
        message = Message(role="user", content=(*subject.pictures, prompt.text))
        reply = await judge.reply([message], branch=branch, round=round, purpose="judge")
        first = found.reply if found is not None else None
        found = verdict_from(reply, rubric, judge=label or judge.name, prompt=message, nonce=prompt.nonce)
        found = replace(found, first_reply=first)
        if found.status != "unparsed":
            break
    assert found is not None
    return found


# --- the prompt -----------------------------------------------------------------------------------------------------


def judge_prompt(rubric: Rubric, subject: Subject, *, judge: str, seed: str) -> JudgePrompt:
    """What a judge is asked: the rubric, the form of the reply with the nonce, then the fenced texts.

    The same for the same arguments, in any run.
    Raises: JudgingError where the prompt itself reads as a verdict (a template that shows one).
    """
    taken = {"question", "reference", "response"} & subject.extra.keys()
    if taken:
        raise JudgingError(f"rubric {rubric.name}: a further text cannot be called {', '.join(sorted(taken))}")
    response = said_in_the_end(subject.response)
    texts = {"question": subject.question, "reference": subject.reference, **subject.extra, "response": response}
    identity = [seed, judge, rubric.name, rubric.template, *(part for pair in texts.items() for part in pair)]
    nonce, mark = (_word(identity, kind, texts) for kind in ("nonce", "fence"))
    fenced = {name: _fenced(name, text, mark) for name, text in texts.items()}
    text = render(
        rubric.template,
        rubric.name,
        task=rubric.task,
        bands=rubric.bands,
        labels=rubric.labels,
        fields=rubric.fields,
        reply_format=reply_format(rubric, nonce),
        question=fenced["question"],
        reference=fenced["reference"],
        response=fenced["response"],
        extra={name: fenced[name] for name in subject.extra},
    ).strip()
    # A judge that only repeats what it was sent, once or twice, has not judged.
    if any(not isinstance(_read(echo, rubric, nonce), str) for echo in (text, text + text)):
        raise JudgingError(f"rubric {rubric.name}: the prompt reads as a verdict; take the example out of its template")
    return JudgePrompt(text=text, nonce=nonce)


def reply_format(rubric: Rubric, nonce: str) -> str:
    """How a judge has to reply, in words: an example would be a verdict that an echo gives."""
    keys = ["nonce", *_value_keys(rubric), "reason"]
    lines = [
        f"Reply with one JSON object and nothing else. Its keys, in exactly this order: {', '.join(keys)}.",
        f"- nonce is the word {nonce} as a string; it shows that the verdict is yours.",
    ]
    if rubric.scale is not None:
        kind = "a whole number" if rubric.scale.integer else "a number"
        lines.append(f"- score is {kind} from {rubric.scale.low:g} to {rubric.scale.high:g}.")
    if rubric.labels:
        which = "a list of all that fit of" if rubric.several else "one of"
        lines.append(f"- label is {which} {', '.join(rubric.labels)}.")
    lines += [f"- {name} is {each.form}." for name, each in rubric.fields.items()]
    return "\n".join([*lines, "- reason says why in one sentence, without quoting."])


def _value_keys(rubric: Rubric) -> list[str]:
    score, label = ["score"] if rubric.scale is not None else [], ["label"] if rubric.labels else []
    return [*score, *label, *rubric.fields]


def _word(identity: list[str], kind: str, texts: Mapping[str, str]) -> str:
    """A word that stands in none of the texts, derived from all of them."""
    for attempt in range(100):
        parts = [kind, str(attempt), *identity]
        sealed = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        word = "".join(_LETTERS[int(digit, 16)] for digit in hashlib.sha256(sealed).hexdigest()[:_NONCE_LENGTH])
        if not any(word in text.casefold() for text in texts.values()):
            return word
    raise JudgingError("no word could be found that is not in the texts to judge")


def _fenced(name: str, text: str, mark: str) -> str:
    return f"[begin {name} {mark}]\n{text}\n[end {name} {mark}]"


# --- the reply ------------------------------------------------------------------------------------------------------


def verdict_from(reply: Reply, rubric: Rubric, *, judge: str, nonce: str, prompt: Message | None = None) -> Verdict:
    """What a judge's reply says; anything but one clear verdict with the nonce is `unparsed`, a failed call `error`."""
    if not reply.usable:
        why = reply.error or {"skipped": "not asked", "empty": "an empty reply"}.get(reply.status, reply.status)
        return Verdict(judge=judge, status="error", score=None, reason=why, prompt=prompt, reply=reply)
    read = _read(reply.text, rubric, nonce)
    if isinstance(read, str):
        return Verdict(judge=judge, status="unparsed", score=None, reason=read, prompt=prompt, reply=reply)
    return Verdict(
        judge=judge,
        status="scored",
        score=read.score,
        label=read.label,
        reason=read.reason,
        prompt=prompt,
        reply=reply,
        fields=read.fields,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What one object with the nonce says."""

    score: float | None = None
    label: str | None = None
    reason: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    clear: bool = True
    """False for a number off the scale, for a value that is there twice, and for one that comes after free text."""


def _read(text: str, rubric: Rubric, nonce: str) -> _Read | str:
    """The verdict in a reply, or why there is none."""
    kept = said_by(text)
    if not kept.strip():
        return "the reply ends while thinking" if text.strip() else "the reply is empty"
    sealed = [
        found for found in objects_in(kept, "nonce", "score", "label", *rubric.fields) if found.only("nonce") == nonce
    ]
    if not sealed:
        return "no JSON object with the nonce"
    verdicts = [verdict for found in sealed for verdict in _verdicts(found, rubric)]
    if not verdicts:
        return "no value of the rubric beside the nonce"
    last = verdicts[-1]
    if not all(verdict.clear for verdict in verdicts):
        return "a value that is not on the scale, is there twice, or stands after the reason"
    if any(_values(other) != _values(last) for other in verdicts):
        return "several verdicts that differ"
    if _said_otherwise(kept, sealed, rubric, last):
        return "another value stands beside the verdict"
    return last


def _verdicts(found: FoundObject, rubric: Rubric) -> Iterator[_Read]:
    """What an object with the nonce says; a placeholder for a value (`<0 to 5>`) says nothing."""
    if rubric.fields:
        yield from _field_verdicts(found, rubric)
        return
    score = found.number("score", rubric.scale.numbers) if rubric.scale is not None else None
    if rubric.scale is not None and score is None:
        if any(_is_number(value) for value in found.values.get("score", ())):
            yield _Read(clear=False)
        return
    label = _label(found.only("label"), rubric)
    if label is None and rubric.labels and rubric.label_needed:
        return
    if not _in_order(found, rubric):
        yield _Read(clear=False)
        return
    reason = found.only("reason")
    yield _Read(score=score, label=label, reason=str(reason) if reason is not None else "")


def _values(read: _Read) -> tuple[float | None, str | None, Mapping[str, str]]:
    return read.score, read.label, read.fields


def _field_verdicts(found: FoundObject, rubric: Rubric) -> Iterator[_Read]:
    """What an object with the nonce says where a rubric has several values: all of them, or nothing clear."""
    given = [name for name in rubric.fields if found.values.get(name)]
    if not given:
        return
    fields = {name: _field_value(found, name, each) for name, each in rubric.fields.items()}
    known = {name: value for name, value in fields.items() if value is not None}
    if len(known) < len(fields) or not _in_order(found, rubric):
        yield _Read(clear=False)
        return
    reason = found.only("reason")
    yield _Read(fields=known, reason=str(reason) if reason is not None else "")


def _field_value(found: FoundObject, name: str, spec: JudgeField) -> str | None:
    """The value of one field as `Verdict.fields` has it; None where it is missing, unclear or not allowed."""
    if spec.scale is not None:
        number = found.number(name, spec.scale.numbers)
        return None if number is None else f"{number:g}"
    value = found.only(name)
    return None if name in found.last_words else _word_of(value, spec)


def _word_of(value: object, spec: JudgeField) -> str | None:
    if not spec.labels:
        return label_from(str(value).lower() if isinstance(value, bool) else value, TRUTHS)
    if not spec.several:
        return label_from(value, tuple(spec.labels))
    if value == [] or (isinstance(value, str) and value.replace(" ", "") == "[]"):
        return ""
    return _several(value, tuple(spec.labels))


def _is_number(value: object) -> bool:
    try:
        float(plain(str(value)))
    except ValueError:
        return False
    return not isinstance(value, bool)


def _said_of(value: str, spec: JudgeField) -> str | None:
    """What a raw value in the text means for a field."""
    if spec.scale is None:
        return _word_of(value, spec)
    number = spec.scale.numbers.number(value)
    return None if number is None else f"{number:g}"


def _in_order(found: FoundObject, rubric: Rubric) -> bool:
    """False for a number off the scale, a value that is there twice, and one that comes after free text."""
    keys = list(found.values)
    named = [key for key in _value_keys(rubric) if key in keys]
    before = keys[: max((keys.index(key) for key in named), default=0)]
    return set(before) <= {"nonce", *named}


def _label(value: object, rubric: Rubric) -> str | None:
    """The label that a value names, several joined by `+`; None where any of it is none."""
    known = tuple(rubric.labels)
    if not rubric.several:
        return label_from(value, known)
    return _several(value, known)


def _several(value: object, known: tuple[str, ...]) -> str | None:
    """The labels that a list, or a text that holds one, names, joined by `+`; None where any of it is none."""
    given = value if isinstance(value, list) else re.findall(r"[^\[\],+\"']+", str(value or ""))
    named = [label_from(each, known) for each in given if not isinstance(each, str) or each.strip()]
    if not named or None in named:
        return None
    return "+".join(label for label in known if label in named)


def _said_otherwise(text: str, sealed: list[FoundObject], rubric: Rubric, verdict: _Read) -> bool:
    """Whether another value is given to a key after the verdict has begun, outside of it.

    That is what a judge's own value looks like where a quotation in its reason ended the object early.
    """
    for key in _value_keys(rubric):
        for place, value in values_of(text, key):
            if place < sealed[0].start or any(found.start <= place < found.end for found in sealed):
                continue
            if key == "score" and rubric.scale is not None and rubric.scale.numbers.number(value) != verdict.score:
                return True
            if key == "label" and _label(value, rubric) != verdict.label:
                return True
            if key in rubric.fields and _said_of(value, rubric.fields[key]) != verdict.fields[key]:
                return True
    return False
