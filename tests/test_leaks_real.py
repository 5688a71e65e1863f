"""Leak and placebo rates on real reference feedback (MMRefine): printed, and within what they were found to be."""

from __future__ import annotations

import sys

import pytest

from interbench_tasks.answers import ChoiceOrExactVerifier
from interbench_tasks.decoys import decoy_from
from interbench_tasks.leaks import leak_check
from interbench_tasks.metrics.intervals import wilson
from tests.test_real_input import mmrefine_rows


@pytest.fixture(scope="module")
def checks(request):
    folder = request.getfixturevalue("shared_data") / "mmrefine"
    rows = mmrefine_rows(folder)
    verifier = ChoiceOrExactVerifier()
    free = [row["answer"] for row in rows if not row["options"]]
    found = []
    for row in rows:
        options = {"ABCDEFGH"[i]: option for i, option in enumerate(row["options"] or [])}
        wrong = verifier.judge(row["initial_solution"], row["answer"], options).extraction.answer
        check = leak_check(
            row["reference_feedback"],
            row["answer"],
            options,
            decoy=decoy_from(row["row_id"], row["answer"], options, free),
            known=(row["question"], row["initial_solution"]),
            wrong=wrong,
        )
        found.append((bool(options), check))
    return found


@pytest.mark.parametrize(
    ("multiple_choice", "n", "at_least", "placebo_at_most"),
    [(True, 222, 0.65, 0.08), (False, 311, 0.8, 0.08)],
    ids=["multiple choice", "free-form"],
)
def test_reference_feedback_states_the_answer_far_more_often_than_a_wrong_one(
    checks, multiple_choice, n, at_least, placebo_at_most, capsys
):
    own = [check for has_options, check in checks if has_options is multiple_choice]
    hits = sum(check.found is not None for check in own)
    placebos = sum(check.placebo is not None for check in own)
    with capsys.disabled():
        for name, count in (("leak", hits), ("placebo", placebos)):
            low, high = wilson(count, len(own))
            sys.stdout.write(f"\n{name} rate {count / len(own):.1%} [{low:.1%}, {high:.1%}] of {len(own)}")
    assert len(own) == n
    assert hits / n >= at_least
    assert placebos / n <= placebo_at_most
