"""How long it takes to score 3,940 free-form answers with `choice_or_math`, as many as MathVerse's testmini has rows.

Answers and targets are made from a fixed list: a third right and spelt as the target is, a third right in another
notation, a third wrong. Prints the time beside its target; exit code 1 where it is missed. Run: python
scripts/bench_answers.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also from a checkout that is not installed

from interbench_tasks.answers import ChoiceOrMathVerifier
from interbench_tasks.records import Judgement

N = 3940
TARGET_S = 60.0
AT_ONCE = 100
SHAPES = (
    ("{a}", "{a}.0"),
    ("{a}.{b}", r"{a}.{b} \mathrm{{~cm}}"),
    (r"\frac{{{a}}}{{{b}}}", "{a}/{b}"),
    (r"{a}\sqrt{{{b}}}", r"\sqrt{{{b}}} \cdot {a}"),
    (r"\frac{{{a} \pi}}{{{b}}} \mathrm{{~cm}}^{{2}}", r"{a}\pi/{b}"),
    ("y=-{a} x+{b}", "{b}-{a}x"),
    ("(x-{a})^2+(y+{b})^2={a}", "(y+{b})^2+(x-{a})^2={a}"),
    (r"(-\infty, {a}]", r"x \leq {a}"),
    (r"[-{a},{b}) \cup ({b}, 99]", r"({b}, 99] \cup [-{a},{b})"),
    (r"{a} \cos (2 \pi x+4 \pi)-{b}", r"-{b}+{a}\cos(2\pi x)"),
    ("x^{{3}}+{a} x^{{2}}+{b} x", "x({b}+{a}x+x^2)"),
)


def pairs(n: int) -> list[tuple[str, str, bool]]:
    """(reply, target, whether it is right) for `n` answers, all different."""
    numbers = random.Random(20)
    found = []
    for index in range(n):
        target, other = SHAPES[index % len(SHAPES)]
        a, b = numbers.randrange(2, 60), numbers.randrange(2, 60)
        kind = index // len(SHAPES) % 3
        answer = (target, other, target)[kind].format(a=a + (kind == 2), b=b)
        found.append((f"We compute step by step.\nAnswer: ${answer}$", target.format(a=a, b=b), kind != 2))
    return found


async def scored(answers: list[tuple[str, str, bool]], verifier: ChoiceOrMathVerifier) -> list[Judgement]:
    """The judgements of all answers, as the engine would ask for them."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(reply: str, target: str) -> Judgement:
        async with slots:
            return await verifier.judge_later(reply, target, {})

    return await asyncio.gather(*[one(reply, target) for reply, target, _ in answers])


def main() -> int:
    """Measure and compare with the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the answers, with a tenth of the target")
    share = 10 if parser.parse_args().quick else 1
    answers = pairs(N // share)
    verifier = ChoiceOrMathVerifier()
    started = time.perf_counter()
    judgements = asyncio.run(scored(answers, verifier))
    seconds = time.perf_counter() - started
    verifier.close()
    wrong = [
        (pair, judgement) for pair, judgement in zip(answers, judgements, strict=True) if pair[2] != judgement.correct
    ]
    methods = Counter(judgement.extraction.method for judgement in judgements)
    target = TARGET_S / share
    sys.stdout.write(f"scoring {len(answers)} free-form answers: {seconds:.1f} s (target: under {target:g} s)\n")
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    sys.stdout.write(f"  of processor time, also that of the child processes: {used:.1f} s\n")
    sys.stdout.write(f"  misjudged: {len(wrong)} (target: 0); methods: {dict(methods)}\n")
    sys.stdout.writelines(f"  {pair} {judgement}\n" for pair, judgement in wrong[:5])
    return int(seconds > target or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
