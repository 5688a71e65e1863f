"""The replies of a stored run that people can label, with what judges and panel said of each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.critique_votes import Panel, Vote, panel_of
from interbench_tasks.errors import RunFolderError
from interbench_tasks.flaws import MEANINGS, kind_of
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.labels.scales import FLAWED, Asked, Opinion, asked_from
from interbench_tasks.metrics.mmpcbench_summary import summary_from_record, votes_in
from interbench_tasks.metrics.mmrc_answers import Answer, answers_from_record, history_of
from interbench_tasks.metrics.mmrc_names import Lineup
from interbench_tasks.protocols.conversation import ConversationOptions
from interbench_tasks.protocols.critique import CritiqueOptions
from interbench_tasks.reasoning import parted, said_in_the_end
from interbench_tasks.records import EpisodeRecord, PictureRef, Turn, Verdict
from interbench_tasks.runs.folder import MANIFEST, read_json, read_records

EXCERPT_CHARS = 6000
"""Longest excerpt of a conversation that is shown."""
SILENT = "(The reply ends while the model is still thinking: it says nothing.)"
_REFERENCE = re.compile(r"\[begin reference (\w+)\]\n(.*?)\n\[end reference \1\]", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgeable:
    """One reply: what a person is shown of it, where it belongs, and what others said of it (which nobody is shown)."""

    id: str
    """Digest of the task, the place of the reply and the reply itself: the same in a run that judges it again."""
    episode_id: str
    repeat: int
    branch: str
    kind: str
    """What is asked of it: `flawed`, or an ability."""
    arm: str = ""
    """Of a conversation: the memory arm."""
    category: str
    """'' where the data set has none."""
    cluster: str
    """What replies share that are not independent."""
    question: str
    reference: str
    """What is wrong with the input, or what a right answer says."""
    reply: str
    """What the model said in the end, its thinking taken out, as judges see it."""
    excerpt: str = ""
    """Of the conversation before the question."""
    pictures: tuple[PictureRef, ...] = ()
    answered: bool = True
    """False where the call failed, so that there is nothing to label."""
    panel: Opinion | None
    """None where it is unscored."""
    judges: Mapping[str, Opinion | None] = field(default_factory=dict)
    """Judge -> what it said, None where it failed; empty where nobody was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRun:
    """A stored run as people label it."""

    folder: Path
    manifest: Mapping[str, Any]
    asked: Mapping[str, Asked]
    """Kind -> what is asked."""
    items: tuple[Judgeable, ...]
    """All replies that a judge's metric is about, also those that were not given or not judged; sorted."""

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.manifest["task"])

    @property
    def judges(self) -> tuple[str, ...]:
        """All judges, in the order of the YAML."""
        return tuple(dict.fromkeys(judge for item in self.items for judge in item.judges))

    def by_id(self) -> dict[str, Judgeable]:
        """Id -> reply."""
        return {item.id: item for item in self.items}


def label_run(folder: Path) -> LabelRun:
    """The replies of a run folder.

    Raises: RunFolderError where the folder is damaged, or its task has no judges whose metrics people can correct.
    """
    manifest = read_json(folder / MANIFEST)
    protocol, where = manifest.get("protocol"), folder / MANIFEST
    try:
        if protocol == "critique":
            critique = CritiqueOptions.model_validate(manifest["protocol_options"])
            asked = asked_from(rubrics(critique.rubric), (FLAWED,))
            items = [item for record in read_records(folder) for item in _of_critique(record, critique)]
        elif protocol == "conversation":
            talk = ConversationOptions.model_validate(manifest["protocol_options"])
            if talk.rubric is None:
                raise RunFolderError(f"{where}: nobody judged this run (rubric: null), so there is nothing to correct")
            asked = asked_from(rubrics(talk.rubric), tuple(ABILITIES))
            lineup = Lineup.from_options(talk)
            items = [item for record in read_records(folder) for item in _of_conversation(record, lineup)]
        else:
            raise RunFolderError(
                f"{where}: the protocol {protocol!r} has no judges; people label critique, conversation"
            )
    except (KeyError, ValidationError) as error:
        raise RunFolderError(f"{where}: cannot be read; was it written by another version? ({error})") from error
    items.sort(key=lambda item: (item.episode_id, item.repeat, item.branch))
    return LabelRun(folder=folder, manifest=manifest, asked=asked, items=tuple(items))


def _id(record: EpisodeRecord, branch: str, reply: str) -> str:
    parts = [record.task, record.episode_id, str(record.repeat), branch, reply]
    sealed = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(sealed).hexdigest()[:16]


def _cluster(record: EpisodeRecord) -> str:
    return f"cluster {record.cluster}" if record.cluster is not None else f"doc {record.doc_id}"


# --- critiques --------------------------------------------------------------------------------------------------------


def _of_critique(record: EpisodeRecord, options: CritiqueOptions) -> Iterator[Judgeable]:
    """The reply to an item that one thing is wrong with."""
    if kind_of(record.category) != "flawed":
        return
    declared = max(1, len(options.judges))
    cell = summary_from_record(record, judge_reasoning=False)["votes"].get("")
    votes = votes_in(cell, declared)
    turn = next((turn for turn in record.turns if turn.branch == ""), None)
    given = turn is not None and turn.reply.usable
    answer = parted(turn.reply.text, turn.reply.reasoning).answer if turn is not None and given else ""
    names = list(cell) if isinstance(cell, Mapping) else []
    category = record.category or ""
    yield Judgeable(
        id=_id(record, "", answer),
        episode_id=record.episode_id,
        repeat=record.repeat,
        branch="",
        kind=FLAWED,
        category=category,
        cluster=_cluster(record),
        question=turn.user.text if turn is not None else "",
        reference=_reference_of(turn) or f"What is wrong: {MEANINGS.get(category, category)}.",
        reply=answer or (SILENT if given else ""),
        pictures=turn.user.pictures if turn is not None else (),
        answered=given,
        panel=_panel_opinion(panel_of(votes, options.quorum)),
        judges=dict(zip(names, map(_vote_opinion, votes), strict=False)),
    )


def _reference_of(turn: Turn | None) -> str:
    """What judges were told to be right, or wrong with the input; the record has it in what they were asked only."""
    for verdict in turn.verdicts if turn is not None else ():
        found = _REFERENCE.search(verdict.prompt.text) if verdict.prompt is not None else None
        if found is not None:
            return found[2]
    return ""


def _vote_opinion(vote: Vote | None) -> Opinion | None:
    if vote is None:
        return None
    if not vote.detected:
        return {"detected": 0.0}
    return {
        "detected": 1.0,
        "diag": float(vote.diag),
        "strategy": vote.strategy,
        "strategy_score": float(vote.score),
    }


def _panel_opinion(panel: Panel) -> Opinion | None:
    if panel.detected is None:
        return None
    found: dict[str, float | str] = {"detected": float(panel.detected)}
    numbers = {"diag": panel.dp, "strategy_score": panel.se}
    found |= {name: float(value) for name, value in numbers.items() if panel.detected and value is not None}
    return found | ({"strategy": panel.strategy} if panel.detected and panel.strategy is not None else {})


# --- conversations ----------------------------------------------------------------------------------------------------


def _of_conversation(record: EpisodeRecord, lineup: Lineup) -> Iterator[Judgeable]:
    """The answers to a conversation's open questions, in each arm."""
    for answer in answers_from_record(record, lineup.arms):
        if answer.is_open:
            yield _judged_answer(record, answer)


def _judged_answer(record: EpisodeRecord, answer: Answer) -> Judgeable:
    turn, question = answer.turn, answer.question
    branch = f"{answer.arm}/{question.id}"
    said = said_in_the_end(answer.text) if answer.text is not None else ""
    excerpt, pictures = _excerpt(history_of(record, answer.arm), question.evidence)
    return Judgeable(
        id=_id(record, branch, said),
        episode_id=record.episode_id,
        repeat=record.repeat,
        branch=branch,
        kind=question.ability,
        arm=answer.arm,
        category=record.category or "",
        cluster=_cluster(record),
        question=question.text,
        reference=question.target,
        reply=said or (SILENT if answer.text is not None else ""),
        excerpt=excerpt,
        pictures=pictures,
        answered=answer.text is not None,
        panel=None if answer.score is None else {"score": float(answer.score)},
        judges={verdict.judge: _score_opinion(verdict) for verdict in turn.verdicts} if turn is not None else {},
    )


def _score_opinion(verdict: Verdict) -> Opinion | None:
    return None if verdict.status != "scored" or verdict.score is None else {"score": float(verdict.score)}


def _excerpt(turns: Sequence[Turn], evidence: Sequence[int]) -> tuple[str, tuple[PictureRef, ...]]:
    """The turns that hold the answer, or all where nobody knows which those are; what is too long loses its middle."""
    shown = [(place, turn) for place, turn in enumerate(turns) if not evidence or place in evidence]
    pictures = tuple(picture for _, turn in shown for picture in turn.user.pictures)
    texts = [
        f"[turn {place + 1}{f', {len(turn.user.pictures)} picture(s)' if turn.user.pictures else ''}]\n"
        f"User: {turn.user.text}\nAssistant: {turn.reply.text if turn.reply.usable else '(no reply)'}"
        for place, turn in shown
    ]
    text = "\n\n".join(texts)
    if len(text) > EXCERPT_CHARS:
        half = EXCERPT_CHARS // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out ...]\n{text[-half:]}"
    return text, pictures


# --- pictures ---------------------------------------------------------------------------------------------------------


def picture_file(folder: Path, digest: str) -> Path | None:
    """Where the run folder keeps a picture; None where it does not."""
    if not re.fullmatch(r"[0-9a-f]{8,64}", digest):
        return None
    found = sorted((folder / "pictures").glob(f"{digest}.*"))
    return next((path for path in found if path.suffix in (".webp", ".jpg", ".jpeg", ".png", ".gif")), None)
