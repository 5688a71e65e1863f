"""What it takes to score 28,720 stored answers of 5,120 conversations, as MMRC has, from a run folder's transcripts.

Conversations are made up: 15 turns, up to six questions, a verdict with its prompt and reply for each open one, a
failing call or judge in fifty. Prints the processor time and the memory of reading, all metrics with their intervals,
and all analyses, beside their targets; exit code 1 where one is missed.
Run: python scripts/bench_scores.py [--quick]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from interbench_tasks.judging import Subject, judge_prompt, rubrics, verdict_from
from interbench_tasks.metrics import mmrc_analyses
from interbench_tasks.metrics.mmrc import ConversationMetrics
from interbench_tasks.record_json import line_from_record
from interbench_tasks.records import EpisodeRecord, Extraction, Judgement, Message, Question, Reply, Turn, Verdict
from interbench_tasks.runs.folder import EPISODES, read_records

N_CONVERSATIONS = 5120
N_ANSWERS = 28_720
N_TURNS = 15
TARGET_S = 10.0
TARGET_MB = 1000
SAID = "I remember that you told me about the trip, the hotel near the river and the flight at seven. " * 3
OPTIONS = {"A": "yes", "B": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One arm, judged."""

    memories: tuple[str, ...] = ("none",)
    rubric: str = "mmrc"


def records(n: int, n_answers: int) -> Iterator[EpisodeRecord]:
    """Conversations with `n_answers` questions in all."""
    rng = random.Random(0)
    abilities = list(rubrics("mmrc"))
    for doc_id in range(n):
        n_questions = n_answers * (doc_id + 1) // n - n_answers * doc_id // n
        asked = [_question(number, ability, rng) for number, ability in enumerate(rng.sample(abilities, n_questions))]
        turns = [_turn(number) for number in range(N_TURNS)]
        turns += [_answer(question, N_TURNS + number, rng) for number, question in enumerate(asked)]
        yield EpisodeRecord(
            task="mmrc",
            protocol="conversation",
            episode_id=f"talk-{doc_id}",
            doc_id=doc_id,
            repeat=0,
            category=rng.choice(mmrc_analyses.DAILY),
            cluster=None,
            target="",
            options={},
            questions=tuple(asked),
            turns=tuple(turns),
        )


def _question(number: int, ability: str, rng: random.Random) -> Question:
    open_question = rng.random() < 0.86
    return Question(
        id=f"q{number}",
        ability=ability,
        format="open" if open_question else "mc",
        message=Message(role="user", content=("What did I say about the hotel, and which picture shows it?",)),
        text="What did I say about the hotel, and which picture shows it?",
        target="the hotel near the river" if open_question else "A",
        options={} if open_question else OPTIONS,
        items=("the hotel near the river", "the flight at seven", "the museum"),
        pictures=(1, 3),
        evidence=(rng.randrange(N_TURNS),),
        extra={"updates": str(rng.randrange(3))},
    )


def _turn(number: int) -> Turn:
    return Turn(
        index=number,
        parent=number - 1 if number else None,
        user=Message(role="user", content=(SAID,)),
        reply=Reply(text=SAID, finish_reason="stop"),
    )


def _answer(question: Question, index: int, rng: random.Random) -> Turn:
    failed = rng.random() < 0.01
    text = rng.choice(["The hotel near the river, the flight at seven and the zoo; picture 1.", "You did not say."])
    reply = Reply(text="" if failed else text, status="error" if failed else "ok")
    verdict = None if failed or question.format != "open" else _verdict(question, reply.text, rng)
    chosen = Judgement(extraction=Extraction(answer="A", method="declared"), correct=rng.random() < 0.6)
    return Turn(
        index=index,
        parent=N_TURNS - 1,
        branch=f"none/{question.id}",
        user=question.message,
        reply=reply,
        judgement=None if failed or question.format == "open" else chosen,
        question=question.id,
        verdicts=() if verdict is None else (verdict,),
        verdict=verdict,
    )


def _verdict(question: Question, text: str, rng: random.Random) -> Verdict:
    """A judge's verdict, read from a reply as it would come."""
    rubric = rubrics("mmrc")[question.ability]
    subject = Subject(question=question.text, reference=question.target, response=text)
    asked = judge_prompt(rubric, subject, judge="judge", seed="0")
    said = f'{{"nonce": "{asked.nonce}", "score": {rng.randrange(6)}, "reason": "One piece is missing."}}'
    reply = Reply(text="I do not know." if rng.random() < 0.01 else said)
    prompt = Message(role="user", content=(asked.text,))
    return verdict_from(reply, rubric, judge="judge", nonce=asked.nonce, prompt=prompt)


def main() -> int:
    """Measure and compare with the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the conversations, with half of the time")
    quick = parser.parse_args().quick
    n, n_answers = (N_CONVERSATIONS // 10, N_ANSWERS // 10) if quick else (N_CONVERSATIONS, N_ANSWERS)
    target = TARGET_S / 2 if quick else TARGET_S
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        with (Path(folder) / EPISODES).open("w", encoding="utf-8") as file:
            file.writelines(line_from_record(record) + "\n" for record in records(n, n_answers))
        judged = time.process_time() - began
        seconds, n_metrics, n_bins = _scored(Path(folder))
        size = (Path(folder) / EPISODES).stat().st_size / 2**20
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = sum(seconds.values())
    sys.stdout.write(
        f"{n_answers} answers of {n} conversations ({size:.0f} MB): {total:.1f} s of processor time "
        f"(target: < {target:g} s), {memory:.0f} MB at most (target: < {TARGET_MB} MB)\n"
        + "".join(f"  {what}: {spent:.2f} s\n" for what, spent in seconds.items())
        + f"  {n_metrics} metrics, {n_bins} bins of analyses\n"
        f"  made up before that, judges' prompts and their reading included: {judged:.1f} s\n"
    )
    return int(total > target or memory > TARGET_MB)


def _scored(folder: Path) -> tuple[dict[str, float], int, int]:
    """Seconds by what they were spent on, the number of metrics, and that of bins."""
    metrics = ConversationMetrics(Options())
    marks = [time.process_time()]
    summaries, rows = [], []
    for record in read_records(folder):  # one at a time, as `interbench score` reads them
        summaries.append(metrics.summary(record))
        rows += mmrc_analyses.rows_from([record], ("none",))
    marks.append(time.process_time())
    table = metrics.table(summaries)
    marks.append(time.process_time())
    analyses = mmrc_analyses.analysed(rows)
    marks.append(time.process_time())
    names = ("reading, summaries and rows", "all metrics with intervals", "all analyses with intervals")
    seconds = dict(zip(names, (end - start for start, end in pairwise(marks)), strict=True))
    return seconds, len(table), sum(map(len, analyses.values()))


if __name__ == "__main__":
    sys.exit(main())
