"""A simulated model with planted rates, to try out a task and to test everything that measures.

Every draw is a pure function of what is asked, so results depend neither on the order of calls nor on how many run
side by side. Whether an earlier answer was right is read from the last assistant message, so recorded first answers
and longer histories work as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from interbench_tasks.backends.simulated_conversation import ConversationSimulation
from interbench_tasks.backends.simulated_critique import CritiqueSimulation
from interbench_tasks.errors import BackendError, near_miss
from interbench_tasks.records import Reply, ReplyRun, Usage

if TYPE_CHECKING:
    from interbench_tasks.hookspecs import Call
    from interbench_tasks.records import Episode, GenerationSettings, Message

Outcome = Literal["right", "wrong", "invalid"]
_ARGUMENTS = (
    "accuracy",
    "alarm",
    "correction",
    "detect",
    "fail",
    "flip",
    "forget_after",
    "garble",
    "invalid",
    "latency_s",
    "miss",
    "refuse",
    "reply_chars",
    "seed",
    "sensitivity",
    "solve",
    "specificity",
    "think",
)
_ARM = "correction_"
_FLIP = "flip_"
_SEPARATOR = "\x1f"
# No word below is a letter that could name an option, and none is a number: nothing here can be read as an answer.
_THOUGHTS = (
    "Looking at the picture step by step, each part follows from its neighbours.",
    "The same rule holds along every row, which settles the missing part.",
    "Comparing the parts with each other leaves only one that fits.",
    "Going through the question once more, the relation becomes clear.",
)
_INVALID = (
    "The details cannot be made out, so this is not settled by the picture.",
    "There is not enough information here to decide between the possibilities.",
)
_HINTS = (
    "Compare the parts next to each other again, and check which rule they share.",
    "Your reasoning breaks off too early; follow the pattern once more from the beginning.",
    "Look closely at how each element relates to the one opposite.",
    "Reread the question and test your rule on every element.",
)
_NOTHING = "Hm."
_ANSWER = re.compile(r"\banswer\b(?:\s+is)?[\s:*\uff1a]*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_LETTER = re.compile(r"\(?([A-Za-z])(?:[).:]|$)")


class SimulatedBackend:
    """Answers with planted rates; `simulated` is in its name, so no number of it passes for a real one.

    A first answer is right with probability `accuracy`, unreadable with `invalid`, else wrong. An answer after a wrong
    one is right with the arm's correction rate, after a right one wrong with `flip`. All rates lie in [0, 1].

    Args:
        model: any name; models of different names draw independently.
        seed: draws of different seeds are independent.
        accuracy: share of right first answers.
        correction: chance that a wrong answer is corrected in a round, in arms that have none of their own.
        flip: chance that a right answer becomes a wrong one in a round, in arms that have none of their own.
        invalid: share of unreadable replies; default 0.05, or less where `accuracy` leaves less.
        latency_s: seconds a reply takes.
        solve: share of questions that it solves as a provider; default `accuracy`.
        reply_chars: replies are filled up to this many characters.
        fail: share of calls that fail.
        refuse: share of unanswerable questions about a conversation that it declines; default `accuracy`.
        forget_after: turns of a conversation that it remembers, counted from its end; default all that it is shown.
        miss: share of turns that its notes leave out.
        detect: share of flawed inputs that it challenges; default `accuracy`.
        think: share of flawed inputs whose defect it notices in its reasoning; default: it has no reasoning.
        alarm: share of valid inputs that it challenges.
        sensitivity, specificity: as a judge: share of challenges, and of other replies, that it sees right.
        garble: share of a judge's replies that cannot be read.
        arms: `correction_<arm>` and `flip_<arm>`, the rates of one arm; `correction_<arm>_<round>`, e.g.
            `correction_hierarchical_3=1`, of an answer that is still wrong in this round.

    Raises: BackendError where an argument is unknown or out of range.
    """

    simulated = True
    max_concurrency = 4096

    def __init__(
        self,
        model: str = "default",
        *,
        seed: int = 0,
        accuracy: float = 0.5,
        correction: float = 0.3,
        flip: float = 0.1,
        invalid: float | None = None,
        latency_s: float = 0.0,
        solve: float | None = None,
        reply_chars: int = 0,
        fail: float = 0.0,
        refuse: float | None = None,
        forget_after: int | None = None,
        miss: float = 0.0,
        detect: float | None = None,
        think: float | None = None,
        alarm: float = 0.0,
        sensitivity: float = 1.0,
        specificity: float = 1.0,
        garble: float = 0.0,
        **arms: object,
    ) -> None:
        _check_whole(seed=seed, reply_chars=reply_chars, forget_after=forget_after or 0)
        _check_arms(arms)
        solved = accuracy if solve is None else solve
        given = {"accuracy": accuracy, "correction": correction, "flip": flip, "fail": fail, "solve": solved, **arms}
        self._rates = _checked_rates(given)
        unreadable = min(0.05, 1.0 - self._rates["accuracy"]) if invalid is None else invalid
        self._rates |= _checked_rates({"invalid": unreadable})
        if isinstance(latency_s, bool) or not isinstance(latency_s, int | float) or not 0 <= latency_s < float("inf"):
            raise BackendError(f"simulated backend: latency_s = {latency_s!r} must be a number of seconds, not below 0")
        if self._rates["accuracy"] + self._rates["invalid"] > 1.0 + 1e-12:
            raise BackendError("simulated backend: accuracy and invalid together must not be above 1")
        of_conversations = _checked_rates({"refuse": accuracy if refuse is None else refuse, "miss": miss})
        of_critiques = {"detect": accuracy if detect is None else detect, "alarm": alarm, "garble": garble}
        of_critiques |= {"sensitivity": sensitivity, "specificity": specificity}
        of_critiques = _checked_rates({**of_critiques, **({} if think is None else {"think": think})})
        self.name = f"simulated:{model or 'default'}"
        told = {name: rate for name, rate in self._rates.items() if name != "fail"}  # failures are never stored
        told |= of_conversations if refuse is not None or miss else {}
        told |= {} if forget_after is None else {"forget_after": forget_after}
        plain_critic = {"detect": self._rates["accuracy"], "alarm": 0, "garble": 0, "sensitivity": 1, "specificity": 1}
        told |= of_critiques if of_critiques != plain_critic else {}
        self.fingerprint = f"{self.name} {json.dumps({**told, 'seed': seed, 'reply_chars': reply_chars})}"
        self._conversation = ConversationSimulation(
            draw=self._draw, accuracy=self._rates["accuracy"], forget_after=forget_after, **of_conversations
        )
        self._critique = CritiqueSimulation(draw=self._draw, accuracy=self._rates["accuracy"], **of_critiques)
        self._seed = seed
        self._latency_s = float(latency_s)
        self._reply_chars = reply_chars

    async def reply(self, call: Call) -> Reply:
        """The planted reply; a failing one has the status `error`, as that of a real model."""
        started_at, start = time.time(), time.perf_counter()
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        run = ReplyRun(latency_s=time.perf_counter() - start, started_at=started_at)
        if self._rates["fail"] and self._draw(call, "fail") < self._rates["fail"]:
            return self._error("simulated failure (fail=...)", run)
        text = self._text(call)
        if text is None:
            return self._error(
                f"{self.name} has no purpose '{call.purpose}' but for Interbench's own judge prompts", run
            )
        asked = sum(len(message.text) for message in call.messages)
        usage = Usage(calls=1, input_tokens=asked // 4, output_tokens=len(text) // 4, reasoning_tokens=0)
        return Reply(text=text, finish_reason="stop", usage=usage, model=self.name, run=run)

    def check_options(self, settings: GenerationSettings, changes: Mapping[str, object]) -> None:
        """Takes any: a simulation draws anew for each variant of a sweep, at the same rates."""

    def _text(self, call: Call) -> str | None:
        if self._critique.replies_to(call):
            return self._critique.text(call)
        if self._conversation.replies_to(call):
            return self._conversation.text(call)
        return self._unrevealing(call, _HINTS) if call.purpose == "feedback" else self._answer(call)

    async def close(self) -> None:
        """Nothing to close."""

    def _error(self, why: str, run: ReplyRun) -> Reply:
        return Reply(text="", status="error", error=why, usage=Usage(calls=1), model=self.name, run=run)

    def _outcome(self, call: Call) -> Outcome:
        """What the next answer is. Its draw is independent of all others."""
        draw = self._draw(call, "outcome")
        if call.purpose == "solve" or call.round == 0:
            right = self._rates["solve" if call.purpose == "solve" else "accuracy"]
        elif _last_was_right(call.messages, call.episode):
            return "wrong" if draw < self._of_arm(_FLIP, call, "flip") else "right"
        else:
            right = self._of_arm(_ARM, call, "correction")
        if draw < right:
            return "right"
        return "invalid" if draw < right + self._rates["invalid"] else "wrong"

    def _of_arm(self, kind: str, call: Call, otherwise: str) -> float:
        """The rate of the arm in this round, else of the arm, else of all; a branch is `arm` or `arm@provider`."""
        of_arm = f"{kind}{call.branch.partition('@')[0]}"
        return self._rates.get(f"{of_arm}_{call.round}", self._rates.get(of_arm, self._rates[otherwise]))

    def _answer(self, call: Call) -> str:
        outcome = self._outcome(call)
        thoughts = self._unrevealing(call, _INVALID if outcome == "invalid" else _THOUGHTS)
        last = ""
        if outcome != "invalid":
            answer = call.episode.target if outcome == "right" else self._wrong(call)
            last = f"\nAnswer: {' '.join(answer.split())}"
        missing = self._reply_chars - len(thoughts) - len(last)
        if missing > 0:
            filler = f"{thoughts} "
            thoughts += (" " + filler * (missing // len(filler) + 1))[:missing]
        return thoughts + last

    def _wrong(self, call: Call) -> str:
        """Another option; without options a number that is not the target."""
        episode = call.episode
        others = [letter for letter in episode.options if letter != episode.target]
        if others:
            return others[int(self._draw(call, "wrong") * len(others))]
        shift = 1 + int(self._draw(call, "wrong") * 97)
        try:
            return str(round(float(episode.target)) + shift)
        except (ValueError, OverflowError):
            return str(7919 + shift)

    def _unrevealing(self, call: Call, texts: tuple[str, ...]) -> str:
        """One of the texts that names neither the target nor an option."""
        episode = call.episode
        named = {_words(text) for text in (episode.target, *episode.options.values())} - {_words("")}
        silent = [text for text in texts for words in [_words(text)] if not any(name in words for name in named)]
        return silent[int(self._draw(call, "text") * len(silent))] if silent else _NOTHING

    def _draw(self, call: Call, question: str) -> float:
        """Uniform in [0, 1): a hash of who asks what, where; independent for each question."""
        episode = call.episode
        # A provider's own try is the same whether it is alone or one of several.
        branch = call.branch.partition("@")[0] if call.purpose == "solve" else call.branch
        place = (call.role, call.purpose, branch, call.round, question)
        key = _SEPARATOR.join(map(str, (self._seed, self.name, episode.id, episode.repeat, *place)))
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / (1 << 53)  # 53 bits: all that a float holds


def _last_was_right(messages: tuple[Message, ...], episode: Episode) -> bool:
    """Whether the last assistant message gives the target; an unreadable one does not."""
    text = next((message.text for message in reversed(messages) if message.role == "assistant"), "")
    given = _ANSWER.findall(text) or _BOXED.findall(text) or text.strip().splitlines()[-1:]
    if not given:
        return False
    answer = _plain(given[-1])
    if not episode.options:
        return answer == _plain(episode.target)
    letter = _LETTER.match(given[-1].strip(" *"))
    if letter and letter.group(1).upper() in episode.options:
        return letter.group(1).upper() == episode.target
    return answer == _plain(episode.options.get(episode.target, ""))


def _words(text: str) -> str:
    """The words of a text between single spaces, to find whole words in."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .*$").casefold()


def _check_arms(arms: Mapping[str, object]) -> None:
    for name in arms:
        if not name.startswith((_ARM, _FLIP)) or name in (_ARM, _FLIP):
            allowed = sorted((*_ARGUMENTS, f"{_ARM}<arm>", f"{_ARM}<arm>_<round>", f"{_FLIP}<arm>"))
            raise BackendError(
                f"the simulated backend has no option '{name}'{near_miss(name, allowed)}\n"
                f"  allowed: {', '.join(allowed)}"
            )


def _checked_rates(rates: Mapping[str, object]) -> dict[str, float]:
    checked: dict[str, float] = {}
    for name, rate in rates.items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise BackendError(f"simulated backend: {name} = {rate!r} must be a rate between 0 and 1")
        checked[name] = float(rate)
    return checked


def _check_whole(**numbers: object) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or (number < 0 and name != "seed"):
            raise BackendError(f"simulated backend: {name} = {number!r} must be a whole number")
