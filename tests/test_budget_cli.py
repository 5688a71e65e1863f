"""Usage, budgets and estimates through the real command lines, against a server that counts what it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import interbench, lmms_eval, metrics, records
from tests.harness_fakes import question_rows, write_task
from tests.servers.openai_server import OpenAIServer, PlantedReply, refusal

pytestmark = pytest.mark.integration
N = 40
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 60},
}
PRICES = '"student@127.0.0.1": {input: 100, cached_input: 10, output: 1000}\n"simulated:*": {input: 0, output: 0}\n'
ONE = (600 * 100 + 400 * 10 + 100 * 1000) / 1e6
"""USD of one reply."""


def wrong(request) -> PlantedReply:
    """Always the same wrong answer: 40 questions make 40 + 40 calls for the receiver with one arm and round."""
    return PlantedReply(text="Answer: A", usage=USAGE)


def command(tmp_path: Path, server: OpenAIServer, out: str = "out") -> tuple[str | Path, ...]:
    if not (tmp_path / "paid_task.yaml").exists():
        path = write_task(tmp_path, question_rows(N), name="paid_task")
        path.write_text(path.read_text().replace("[detail, simple]", "[simple]"))
        (tmp_path / "prices.yaml").write_text(PRICES)
    return (
        *("--model", "interbench_api", "--model_args", f"model=openai:student@{server.url},max_concurrency=4"),
        *("--tasks", "paid_task", "--include_path", tmp_path, "--output_path", tmp_path / out),
    )


def usage(folder: Path) -> dict:
    (path,) = folder.rglob("usage.json")
    return json.loads(path.read_text())


def test_a_budget_stops_a_run_and_the_same_command_goes_on_from_the_ledger(tmp_path):
    variables = {"INTERBENCH_PRICES": str(tmp_path / "prices.yaml")}
    with OpenAIServer(wrong) as server:
        done = lmms_eval(*command(tmp_path, server), **variables, INTERBENCH_MAX_COST=str(30 * ONE)).check()
        first = server.requests
        assert 30 <= first <= 34
        used = usage(tmp_path / "out")
        receiver = used["roles"]["receiver"]
        assert receiver["calls"] == first
        assert receiver["cost_usd"] == pytest.approx(first * ONE)
        assert (receiver["cached_input_tokens"], receiver["reasoning_tokens"]) == (first * 400, first * 60)
        assert used["roles"]["provider"]["cost_usd"] == 0
        assert "no new episode starts and those that run are finished" in done.output
        assert f"receiver openai:student: {first} calls" in done.output
        assert "4.92 USD (INTERBENCH_MAX_COST)" in done.output
        assert "episodes were not started, so the results are partial" in done.output
        assert "have no score" not in done.output  # not started is not failed
        assert {found["status"] for found in records(tmp_path / "out")} == {"finished", "skipped"}
        scored = interbench("score", tmp_path / "out").check().output
        assert "STOPPED: the budget is used up: max_cost = 4.92 USD" in scored
        assert "UNFINISHED" in scored
        assert f"used: receiver openai:student: {first} calls" in scored

        lmms_eval(*command(tmp_path, server, "again"), **variables, INTERBENCH_MAX_COST="1000").check()
        assert server.requests == 2 * N  # nothing was paid for twice
        again = usage(tmp_path / "again")["roles"]["receiver"]
        assert (again["calls"], again["from_ledger"]["replies"]) == (2 * N - first, first)
        assert again["from_ledger"]["cost_usd"] == pytest.approx(first * (1000 * 100 + 100 * 1000) / 1e6)
        assert metrics(tmp_path / "again")["accuracy"]["n"] == N


def test_a_model_without_a_price_is_refused_before_anything_is_paid(tmp_path):
    with OpenAIServer(wrong) as server:
        done = lmms_eval(*command(tmp_path, server), INTERBENCH_MAX_COST="5")
        assert server.requests == 0
        host = server.url.removeprefix("http://").removesuffix("/v1")
    assert f"no price known for receiver openai:student@{host}" in done.output
    assert f'"openai:student@{host}": {{input: USD, output: USD}}' in done.output


def test_failed_attempts_are_counted_and_cost_nothing(tmp_path):
    seen: set[str] = set()

    def often_down(request):
        if request.body_digest in seen:
            return wrong(request)
        seen.add(request.body_digest)
        return refusal(429, "slow down")

    with OpenAIServer(often_down) as server:
        lmms_eval(*command(tmp_path, server), "--limit", "4", INTERBENCH_PRICES=str(tmp_path / "prices.yaml")).check()
        receiver = usage(tmp_path / "out")["roles"]["receiver"]
        assert receiver["failed_attempts"] > 0
        assert receiver["calls"] + receiver["failed_attempts"] == server.requests
        assert receiver["cost_usd"] == pytest.approx(receiver["calls"] * ONE)


def test_the_environments_limit_is_the_whole_commands(tmp_path):
    for name in ("task_one", "task_two"):
        write_task(tmp_path, question_rows(N), name=name)
    done = lmms_eval(
        *("--model", "interbench_simulated", "--model_args", "accuracy=0.3,invalid=0"),
        *("--tasks", "task_one,task_two", "--include_path", tmp_path, "--output_path", tmp_path / "out"),
        INTERBENCH_MAX_CALLS="170",
    ).check()
    files = {path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "out").rglob("usage.json")}
    calls = {name: sum(role["calls"] for role in used["roles"].values()) for name, used in files.items()}
    assert 170 <= sum(calls.values()) < 185
    first, second = sorted(files.values(), key=lambda used: used["stopped"] or "")
    assert first["stopped"] is None
    assert "max_calls = 170 requests (INTERBENCH_MAX_CALLS)" in second["stopped"]
    assert "episodes were not started" in done.output


def test_a_wrong_limit_is_one_clear_error(tmp_path):
    done = lmms_eval(
        *("--model", "interbench_simulated", "--tasks", "interfeedback_demo", "--output_path", tmp_path),
        INTERBENCH_MAX_COST="-5",
    )
    assert "INTERBENCH_MAX_COST = '-5': must be a number above 0 (off: no limit)" in done.output
    assert not list(tmp_path.rglob("episodes.jsonl"))


def test_an_estimate_before_a_run_holds_what_the_run_takes(tmp_path):
    """The probe's replies are the run's: what it paid for is not paid for again."""
    with OpenAIServer(wrong) as server:
        run = command(tmp_path, server)
        words = ("--receiver", f"openai:student@{server.url}", "--prices", tmp_path / "prices.yaml")
        task = tmp_path / "paid_task.yaml"
        before = interbench("estimate", task, *words).check().output
        assert server.requests == 0
        assert "paid_task: 40 episodes; arms simple (shared); 1 feedback round" in before
        assert "no price known" not in before
        assert "--probe" in before
        probed = interbench("estimate", task, *words, "--probe", "15").check().output
        assert server.requests == 30
        assert "right first answers: 0 of 15 seen" in probed
        assert "counted in, and played already: 15 episodes, 45 calls" in probed
        lmms_eval(*run, INTERBENCH_PRICES=str(tmp_path / "prices.yaml")).check()
        assert server.requests == 2 * N
    (line,) = [line for line in probed.splitlines() if line.startswith("receiver")]
    low, high = (int(word.replace(",", "")) for word in line.split()[2:5:2])
    assert low <= 2 * N <= high
    assert (high - low) / (2 * N) <= 0.25


@pytest.mark.slow
def test_an_estimate_from_an_earlier_run(tmp_path):
    arguments = ("--model", "interbench_simulated", "--tasks", "interfeedback_demo", "--output_path", tmp_path)
    lmms_eval(*arguments, "--limit", "20").check()
    words = ("interfeedback_demo", "--receiver", "simulated:default", "--from", tmp_path, "--probe", "0")
    output = interbench("estimate", *words).check().output
    assert "played already: 20 episodes" in output
    assert "learned from the first 20 rows" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("interfeedback_dmo",), "no such task (did you mean 'interfeedback_demo'?)"),
        (("interfeedback_demo", "--accuracy", "2"), "--accuracy 2: must be a share from 0 to 1"),
        (("interfeedback_demo", "--prices", "none.yaml"), "none.yaml: prices: cannot be read: No such file"),
        (("interfeedback_demo", "--receiver", "openai:m", "--from", "."), "no run folder here"),
    ],
)
def test_wrong_words_are_one_clear_error(tmp_path, words, message):
    done = interbench("estimate", *words, cwd=tmp_path)
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output
