"""A comparison that hangs stops nobody: the real engine and feedback loop, a hundred other episodes, a clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from interbench_tasks.answers import ChoiceOrMathVerifier
from interbench_tasks.answers.choice_or_math import STOPPED
from interbench_tasks.engine import Engine
from interbench_tasks.errors import VerifierError
from interbench_tasks.expressions import ExpressionPool, Limits
from interbench_tasks.hookspecs import Backend, Call, Parts, RoleClient
from interbench_tasks.protocols.feedback_loop import FeedbackLoop, FeedbackLoopOptions
from interbench_tasks.records import Episode, EpisodeRecord, Message, Reply
from tests.engine_fakes import GREEDY, failed, within
from tests.testing import Hint

ENDLESS = "Answer: $9^{9^{9}}$"
LIMIT_S = 3.0


class Speaker:
    """A model that says what its script has for the episode."""

    def __init__(self, name: str, script) -> None:
        self.name = self.fingerprint = name
        self.script = script

    async def reply(self, call: Call) -> Reply:
        return Reply(text=self.script(call.episode.doc_id))

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Roles:
    receiver: RoleClient
    provider: RoleClient
    notetaker: RoleClient | None = None

    @property
    def providers(self) -> dict[str, RoleClient]:
        return {"": self.provider}


def expression(index: int) -> tuple[str, str]:
    """(target, the same in another notation); every second one needs math-verify."""
    n = index + 2
    return (f"{n}x+{n}", f"{n}(x+1)") if index % 2 else (f"{n}", f"{n}.0")


def episode(index: int, target: str) -> Episode:
    question = Message(role="user", content=(f"question {index}",))
    return Episode(id=str(index), doc_id=index, question=question, target=target, options={})


def play_with_clock(verifier, receiver: Backend, provider: Backend, episodes):
    """The records by doc id, and when each ended, in seconds since the start."""
    engine = Engine(max_live=200, progress=False)
    protocol = FeedbackLoop(
        FeedbackLoopOptions(arms=("simple",)), Parts(verifier=verifier, feedback_providers={"simple": Hint("simple")})
    )
    records: dict[int, EpisodeRecord] = {}
    ended: dict[int, float] = {}
    started = time.monotonic()

    async def play(played: Episode) -> EpisodeRecord:
        clients = [
            engine.client(backend, role, GREEDY, played)
            for backend, role in ((receiver, "receiver"), (provider, "provider"))
        ]
        return await protocol.play(played, Roles(*clients))

    def keep(record: EpisodeRecord) -> None:
        records[record.doc_id] = record
        ended[record.doc_id] = time.monotonic() - started

    engine.run(episodes, play, on_record=keep, failed=failed)
    return records, ended


def test_a_comparison_without_end_is_stopped_while_a_hundred_other_episodes_go_on():
    pool = ExpressionPool(limits=Limits(seconds=LIMIT_S))
    pool.compare("x", "2x")
    verifier = ChoiceOrMathVerifier(pool)
    endless = 0
    receiver = Speaker("receiver", lambda i: ENDLESS if i == endless else f"Answer: {expression(i)[1]}")
    provider = Speaker("provider", lambda i: f"Answer: {expression(i)[0]}")
    episodes = [episode(index, expression(index)[0]) for index in range(101)]
    run = []
    within(60, lambda: run.append(play_with_clock(verifier, receiver, provider, episodes)) or run)
    verifier.close()
    records, ended = run[0]
    others = [index for index in range(101) if index != endless]
    assert [index for index in others if records[index].stop_reason != "right"] == []
    cheap = [ended[index] for index in others if index % 2 == 0]
    assert max(cheap) < LIMIT_S, "what needs no child process waits for none"
    assert ended[endless] >= LIMIT_S
    before = [index for index in others if ended[index] < ended[endless]]
    assert len(before) >= 60, "the second process compares while the first one hangs"
    stopped = records[endless].turns[0].judgement
    assert not stopped.correct
    assert stopped.extraction.method == f"declared, {STOPPED}"
    assert records[endless].stop_reason == "played", "a wrong answer: the provider solves, and feedback is given"


def test_an_episode_whose_answer_cannot_be_compared_at_all_fails_and_is_not_wrong(tmp_path):
    verifier = ChoiceOrMathVerifier(ExpressionPool(command=(str(tmp_path / "nowhere"),)))
    speaker = Speaker("both", lambda i: f"Answer: {expression(i)[1]}")
    records, _ = play_with_clock(verifier, speaker, speaker, [episode(i, expression(i)[0]) for i in range(4)])
    verifier.close()
    assert {i: record.status for i, record in records.items()} == {
        0: "finished",
        1: "failed",
        2: "finished",
        3: "failed",
    }
    assert "math-verify does not start" in records[1].error
    assert records[0].stop_reason == "right"


def test_a_verifier_that_only_judges_at_once_is_still_fine():
    class AtOnce:
        def judge(self, text, target, options):
            return ChoiceOrMathVerifier().judge(text, target, options)

    speaker = Speaker("both", lambda i: "Answer: 5")
    records, _ = play_with_clock(AtOnce(), speaker, speaker, [episode(0, "5")])
    assert records[0].stop_reason == "right"


def test_a_closed_verifier_says_so():
    verifier = ChoiceOrMathVerifier()
    verifier.close()
    with pytest.raises(VerifierError, match="closed"):
        verifier.judge("Answer: 2x", "3x", {})
    assert verifier.judge("Answer: 5", "5.0", {}).correct
