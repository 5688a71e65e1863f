"""Frozen records: what goes through Interbench, and what is kept of an episode.

A record stores each message once; a history is the chain of parents. Everything that may differ between two runs of
the same episode (latency, retries, time stamps) lies under one key `run`, so two runs compare equal without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

RoleName = Literal["receiver", "provider", "judge", "notetaker"]
Purpose = Literal["answer", "solve", "feedback", "judge", "notes"]
ReplyStatus = Literal["ok", "empty", "error", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRef:
    """A picture by its content, without the bytes; `images.Picture` adds them."""

    digest: str
    """First 32 hex digits of the SHA-256 of what the picture was made from."""
    width: int
    """Pixels, as a viewer shows it (EXIF rotation applied)."""
    height: int
    """Pixels."""
    mime: str
    """MIME type of the bytes that are sent, e.g. image/png."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation; texts and pictures stay in the order in which they were given."""

    role: Literal["system", "user", "assistant"]
    content: tuple[str | PictureRef, ...]

    @property
    def text(self) -> str:
        """All texts of the message, joined."""
        return "".join(part for part in self.content if isinstance(part, str))

    @property
    def pictures(self) -> tuple[PictureRef, ...]:
        """The pictures of the message, in order."""
        return tuple(part for part in self.content if isinstance(part, PictureRef))


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How a reply is generated; part of the ledger key."""

    max_new_tokens: int
    temperature: float
    top_p: float | None = None
    until: tuple[str, ...] = ()
    """Texts at which the reply is cut."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Further options, passed to the backend as they are (e.g. `seed`, `reasoning_effort`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one or several calls cost. None means unknown, never zero."""

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    """Includes reasoning tokens, where a backend counts them."""
    reasoning_tokens: int | None = 0

    def plus(self, other: Usage) -> Usage:
        """The sum; unknown plus anything is unknown."""
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


CONTEXT_OVERFLOW = "context_overflow"
"""`finish_reason` of a failed reply, and end of its branch, where the conversation does not fit the model."""
RECORDED = "recorded"
"""Model name, and in conversations `finish_reason`, of a reply that came with the data set."""
MARKED_RIGHT = "marked_right"
"""`finish_reason` of a provider's empty reply where a person marks the receiver's reply as right instead of writing
feedback, and the end of its branch."""
PERSON = "person"
"""`Extraction.method` of an answer that a person marked as right."""
HUMAN = "human"
"""The backend behind which people answer; a person's model name is `human:<annotator>`."""
UNKNOWN_USAGE = Usage(calls=1, input_tokens=None, output_tokens=None, reasoning_tokens=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRun:
    """What differs between two runs of the same call; kept apart from the reply itself."""

    latency_s: float = 0.0
    """Seconds from sending to the whole reply."""
    waited_s: float = 0.0
    """Seconds in our own queue before sending."""
    retries: int = 0
    """Failed attempts before this reply."""
    cached_input_tokens: int | None = None
    """Of the input tokens, those that the server read from its own cache, which cost less; None where nobody tells."""
    from_ledger: bool = False
    started_at: float = 0.0
    """Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a backend said, or why it did not. `text` is never changed by us."""

    text: str
    status: ReplyStatus = "ok"
    """`ok`: the model's own words, also cut ones (see finish_reason). `empty`: nothing came, and nobody knows why.
    `error`: the call failed. `skipped`: never asked (a budget was used up)."""
    finish_reason: str | None = None
    """As the API gives it, e.g. `stop`, `length`; None where the backend does not tell. `context_overflow` where the
    status is `error` because the conversation does not fit the model; `recorded` where a data set brought the reply."""
    reasoning: str | None = None
    """Reasoning that the API returned apart from the text."""
    usage: Usage = UNKNOWN_USAGE
    error: str | None = None
    """Why it failed, redacted; None where the status is ok."""
    model: str | None = None
    """The model as the backend names it; None where it does not tell."""
    run: ReplyRun = ReplyRun()

    @property
    def usable(self) -> bool:
        """True where the text is what the model said."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The answer read out of a reply. Never a guess."""

    answer: str | None
    """Option letter, or the answer's text; None where the reply does not give exactly one."""
    method: str
    """How it was found, e.g. `declared`, `boxed`, `letter`, `option_text`, `none`; `person`: one marked it right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verifier's reading of a reply: the extraction, and whether it equals the target."""

    extraction: Extraction
    correct: bool
    """False where nothing could be extracted: unparsable is wrong, and counted apart."""
    overruled: Extraction | None = field(default=None, metadata={"left_out": True})
    """What the verifier read, and took for wrong, where a person says that the answer is right; None elsewhere."""

    def by_person(self) -> Judgement:
        """Right, because a person says so; what was read stays the answer."""
        read = Extraction(answer=self.extraction.answer, method=PERSON)
        return Judgement(extraction=read, correct=True, overruled=self.extraction)


LeakKind = Literal["stated", "ruled_out"]
"""`stated`: an answer is given away as the answer; `ruled_out`: every other option is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCheck:
    """Whether feedback gives the target away, and whether the same detector fires for a wrong answer."""

    found: LeakKind | None
    """None: no leak."""
    decoy: str | None
    """The wrong answer that the placebo was tried with; None where there was none to try."""
    placebo: LeakKind | None
    """What the detector says of the decoy: a rate of leaks means nothing without the rate of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Model-written feedback that leaked and was written again; the receiver never saw it."""

    text: str
    prompt: Message | None
    reply: Reply
    leak: LeakCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What the receiver is told about its reply."""

    text: str
    kind: str
    """The arm's name, e.g. `simple`, `detail`."""
    author: str
    """Model name of the provider, or `template` where no model wrote it."""
    status: Literal["given", "failed"] = "given"
    prompt: Message | None = None
    """What the provider was asked; None where no model wrote the feedback."""
    reply: Reply | None = None
    """The provider's whole reply; None where no model wrote the feedback."""
    source: str | None = None
    """Id of the episode that it was written for, where that is another one."""
    leak: LeakCheck | None = None
    """What the leak guard says; None where it did not look (no model wrote the feedback, or the guard is off)."""
    draft: Draft | None = None
    """What was written first, where the leak guard had it written again."""

    def paid_for(self) -> tuple[Reply, ...]:
        """The provider's replies that this episode caused; what was written for another one is counted there."""
        if self.source is not None:
            return ()
        drafts = (self.draft.reply,) if self.draft is not None else ()
        return (*drafts, *((self.reply,) if self.reply is not None else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What a memory carries from turn to turn."""

    text: str
    status: Literal["updated", "kept"] = "updated"
    """`kept`: the new notes were unreadable, the old ones stay."""
    cut: bool = field(default=False, metadata={"left_out": True})
    """Whether something was left out so that they keep to their limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What of the past the receiver was shown with its last message, where a memory or a limit decides that."""

    first_turn: int
    """0-based number of the first user turn that was shown; the number of turns where none was."""
    cut_turns: int
    """Turns of the history that were not shown, each with its reply."""
    cut_pictures: int
    """Pictures in those turns."""
    notes_chars: int = 0
    """Characters of the notes that were shown."""
    notes_cut: bool = False
    """Whether something of these notes was left out so that they keep to their limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one judge said of one reply."""

    judge: str
    status: Literal["scored", "unparsed", "error", "undecided"]
    """`undecided`: a panel without a verdict, because judges failed or too few agree."""
    score: float | None
    """On the rubric's scale; None unless scored, and where the rubric has labels only."""
    label: str | None = None
    reason: str = ""
    """Why, in the judge's words."""
    prompt: Message | None = None
    """What the judge was asked; None for a panel's verdict, or where no model judged."""
    reply: Reply | None = None
    """The judge's whole reply; None for a panel's verdict, or where no model judged."""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False, metadata={"left_out": True})
    """What it says where the rubric asks for several values, by their names: labels (several joined by `+`), numbers
    as they are written, `true` or `false`; empty unless scored."""
    first_reply: Reply | None = None
    """The judge's first reply, where it could not be read and the judge was asked again."""


QuestionFormat = Literal["open", "mc", "tf"]
"""`open`: judged; `mc`, `tf`: multiple choice and true or false, scored exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One of several questions of an episode, e.g. about the conversation that was played before it."""

    id: str
    """Unique in its episode."""
    ability: str
    """What it tests, e.g. `IE`."""
    format: QuestionFormat = "open"
    message: Message
    """As asked, prompt included."""
    text: str
    """The question alone, for judges and reports."""
    target: str
    """Option letter where there are options, else the reference answer."""
    options: Mapping[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    """What a complete answer names, one entry each."""
    pictures: tuple[int, ...] = ()
    """The pictures that a right answer names: 1-based, by their order in the conversation."""
    should_refuse: bool = False
    """True where nothing in the conversation holds the answer."""
    evidence: tuple[int, ...] = ()
    """0-based numbers of the user turns that hold the answer; empty where the data set does not say."""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One turn of a conversation as the data set has it."""

    user: Message
    reply: str | None = None
    """The recorded reply; None where there is none."""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One doc, ready to be played."""

    id: str
    """Unique in its data set; a column of it, else the row number."""
    doc_id: int
    """0-based row number in the split."""
    repeat: int = 0
    """0-based; above 0 only with the harness's --repeats."""
    question: Message
    """The first user message, prompt included."""
    system: str | None = None
    target: str
    """Option letter where there are options, else the right answer's text."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Letter -> text; empty for a free-form question."""
    raw_question: str = ""
    """The question without prompt, for feedback prompts."""
    category: str | None = None
    cluster: str | None = None
    """Rows of one cluster are not independent; None where all rows are."""
    first_answer: str | None = None
    """A recorded first answer that stands for round 0; None where the receiver answers itself."""
    decoy: str | None = None
    """A wrong answer of the same kind as the target (another option's letter, else another row's answer), drawn by
    seed: what the leak guard's placebo is tried with; None where the data set has none."""
    levels: tuple[str, ...] = ()
    """Feedback that the data set brings, one text a level; empty where the YAML names no `columns.levels`."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further columns that the task YAML names under `columns.extra`."""
    script: tuple[ScriptedTurn, ...] = ()
    """The user turns that are replayed before the questions; empty where the protocol replays none."""
    questions: tuple[Question, ...] = ()
    """Asked after the script; empty where `question` is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One user message and the model's reply to it."""

    index: int
    """0-based position in the episode; unique, also across branches and roles."""
    parent: int | None
    """The turn that this one continues; None at a root."""
    branch: str = ""
    """'' for the common history, else the arm or the question's id."""
    round: int = 0
    """0 is the first answer."""
    role: RoleName = "receiver"
    user: Message
    reply: Reply
    judgement: Judgement | None = None
    """None where the reply is not usable or there is nothing to verify."""
    feedback: Feedback | None = None
    """The feedback that this turn's user message carries; None in round 0."""
    question: str | None = field(default=None, metadata={"left_out": True})
    """Id of the question that it answers, where the episode has several."""
    notes: Notes | None = field(default=None, metadata={"left_out": True})
    """A notetaker's turn: the notes after it."""
    verdicts: tuple[Verdict, ...] = field(default=(), metadata={"left_out": True})
    """What each declared judge said of the reply, in the order of the YAML."""
    verdict: Verdict | None = field(default=None, metadata={"left_out": True})
    """What the panel says; None where nobody judged."""
    seen: Seen | None = field(default=None, metadata={"left_out": True})
    """What of the past was shown; None where all of it was."""
    reasoning_verdicts: tuple[Verdict, ...] = field(default=(), metadata={"left_out": True})
    """What each declared judge said of the reasoning before the reply; empty where nobody judged it, or none came."""
    reasoning_verdict: Verdict | None = field(default=None, metadata={"left_out": True})
    """What the panel says of that reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchEnd:
    """How one branch of an episode ended."""

    branch: str
    reason: str
    """E.g. `solved`, `rounds_used`, `reply_failed`, `feedback_failed`, `judge_failed`; `marked_right` (a person says
    that the last reply is right); of a right first answer `kept`, `flipped`; `leak_dropped` (leaked feedback, also when
    written again), `no_partner` (no other episode's feedback); `context_overflow` (the server says that the
    conversation does not fit), `notes_failed` (the notetaker failed); `never_told` (only judges that were asked
    later say that the model asked back, so nobody told it)."""
    feedback: Feedback | None = None
    """The feedback that failed, where one did; of `marked_right` the person's mark, without a text."""
    error: str | None = None
    """Why a reply could not be judged, redacted; None where it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """A finished episode with everything that happened."""

    task: str
    protocol: str
    episode_id: str
    doc_id: int
    repeat: int
    category: str | None
    cluster: str | None
    target: str
    options: Mapping[str, str]
    questions: tuple[Question, ...] = field(default=(), metadata={"left_out": True})
    """Those of the episode, where it has several."""
    system: str | None = None
    turns: tuple[Turn, ...] = ()
    ends: tuple[BranchEnd, ...] = ()
    passes: int = field(default=1, metadata={"left_out": True})
    """2 where the branches that need other episodes (mismatched feedback, a sample of right answers) had their turn."""
    status: Literal["finished", "failed", "skipped"] = "finished"
    """`failed`: nothing can be scored (round 0 failed, or the episode raised). `skipped`: never started."""
    stop_reason: str = ""
    """E.g. `right`, `invalid`, `played`; `marked_right`, a first answer of which a person says that it is right;
    `flip_played`, `flip_drawn`: a right answer that was drawn for the flip sample, and was tried, or could not be."""
    error: str | None = None
    """Why it failed, redacted."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Role -> model name; a simulated one says so in its name."""
    run: Mapping[str, object] = field(default_factory=dict)
    """Latencies, retries, ledger hits and time stamps; two runs compare equal without it."""

    def usage(self) -> dict[str, Usage]:
        """Role -> what its calls cost, feedback included."""
        total: dict[str, Usage] = {}
        for turn in self.turns:
            _add(total, turn.role, turn.reply)
            for verdict in (*turn.verdicts, *turn.reasoning_verdicts):
                for reply in (verdict.first_reply, verdict.reply):
                    if reply is not None:
                        _add(total, "judge", reply)
        given = [turn.feedback for turn in self.turns] + [end.feedback for end in self.ends]
        for feedback in given:
            for reply in feedback.paid_for() if feedback is not None else ():
                _add(total, "provider", reply)
        return total


def _add(total: dict[str, Usage], role: str, reply: Reply) -> None:
    total[role] = total.get(role, Usage()).plus(reply.usage)


def history(turns: Sequence[Turn], index: int | None, system: str | None = None) -> tuple[Message, ...]:
    """The messages that lead to and include turn `index`: system, then user and assistant alternating.

    Args: index = a turn's `index`, or None for the empty history.
    Raises: KeyError where a parent is missing.
    """
    by_index = {turn.index: turn for turn in turns}
    chain: list[Turn] = []
    while index is not None:
        chain.append(by_index[index])
        index = chain[-1].parent
    messages = [Message(role="system", content=(system,))] if system else []
    for turn in reversed(chain):
        messages += [turn.user, Message(role="assistant", content=(turn.reply.text,))]
    return tuple(messages)


def without_run(record: EpisodeRecord) -> EpisodeRecord:
    """The record without what differs between two runs of it."""
    return replace(record, run={})
