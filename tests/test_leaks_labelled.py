"""Precision and recall of the leak detector on real feedback that a reader labelled (MMRefine), where it is present.

`leak_labels.json` holds ids, labels and digests, and no text: section of a reference feedback -> `leaks` (it gives the
answer away, as one reader saw it) and `others`, each id with the first 12 hex digits of the section's SHA-256. The
labels were made for another detector, before and apart from this one. Rules of this one were added after reading what
it missed, but nothing of the questions in `held_out`: those measure it, the others guard it against getting worse.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interbench_tasks.answers import ChoiceOrExactVerifier
from interbench_tasks.leaks import leak_check
from interbench_tasks.metrics.intervals import wilson
from tests.test_real_input import mmrefine_rows

LABELS = Path(__file__).parent / "data" / "leak_labels.json"
HEADING = re.compile(r"^\W*(?:## )?\**(Analysis of Initial Solution|Feedback|Corrected Solution)\**\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Read:
    """One labelled text, and what the detector says of it."""

    question: str
    leaks: bool
    fired: bool


@dataclass(frozen=True, kw_only=True)
class Score:
    right: int
    fired: int
    leaks: int
    n: int

    @classmethod
    def of(cls, texts: list[Read]) -> Score:
        return cls(
            right=sum(text.leaks and text.fired for text in texts),
            fired=sum(text.fired for text in texts),
            leaks=sum(text.leaks for text in texts),
            n=len(texts),
        )

    def lines(self, name: str) -> Iterator[str]:
        for told, of_all in (("precision", self.fired), ("recall", self.leaks)):
            low, high = wilson(self.right, of_all)
            share = self.right / of_all
            yield f"{name} ({self.n} texts): {told} {share:.1%} [{low:.1%}, {high:.1%}], {self.right} of {of_all}"


def sections_of(feedback: str) -> dict[str, str]:
    pieces = HEADING.split(feedback)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def labelled() -> Iterator[tuple[str, str, str, bool]]:
    """(section, id, digest, whether it leaks)."""
    content = json.loads(LABELS.read_text(encoding="utf-8"))
    for section, kinds in content.items():
        if section != "held_out":
            for kind, ids in kinds.items():
                yield from ((section, name, digest, kind == "leaks") for name, digest in ids.items())


@pytest.fixture(scope="module")
def texts(request) -> list[Read]:
    rows = {row["row_id"]: row for row in mmrefine_rows(request.getfixturevalue("shared_data") / "mmrefine")}
    verifier = ChoiceOrExactVerifier()
    found = []
    for section, name, digest, leaks in labelled():
        row = rows[name]
        text = sections_of(row["reference_feedback"])[section]
        assert hashlib.sha256(text.encode()).hexdigest()[:12] == digest, f"{name}: another text than was labelled"
        options = {"ABCDEFGH"[i]: option for i, option in enumerate(row["options"] or [])}
        solution = row["initial_solution"]
        wrong = verifier.judge(solution, row["answer"], options).extraction.answer
        check = leak_check(text, row["answer"], options, decoy=None, known=(row["question"], solution), wrong=wrong)
        found.append(Read(question=row["id"], leaks=leaks, fired=check.found is not None))
    return found


def test_the_labels_name_each_text_once_and_hold_no_text():
    names = [(section, name) for section, name, _, _ in labelled()]
    assert (len(names), len(set(names)), sum(leaks for *_, leaks in labelled())) == (452, 452, 105)
    assert all(re.fullmatch(r"[0-9a-f]{12}", digest) for _, _, digest, _ in labelled())


def test_precision_and_recall_are_what_the_readme_says(texts, capsys):
    held_out = set(json.loads(LABELS.read_text(encoding="utf-8"))["held_out"])
    every = Score.of(texts)
    fresh = Score.of([text for text in texts if text.question in held_out])
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join([*every.lines("all"), *fresh.lines("held out")]) + "\n")
    assert (every.n, every.leaks, fresh.n, fresh.leaks) == (452, 105, 94, 23)
    assert every.right / every.fired >= 0.88
    assert every.right / every.leaks >= 0.61
    assert fresh.right / fresh.fired >= 0.8
    assert fresh.right / fresh.leaks >= 0.56
