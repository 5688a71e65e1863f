"""Traps of the harness, each run into once: our tasks through its real evaluator, with awkward models."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sqlite3
import threading
from contextlib import closing

import pytest
from loguru import logger
from PIL import Image

from interbench_tasks.errors import HarnessError
from tests.harness_fakes import ChatModel, SimpleModel, cli_args, evaluate, question_rows, records_of, write_task

pytestmark = pytest.mark.integration
COLOURS = ["red", "green", "blue", "gold", "pink", "gray", "navy", "teal"]


def results_of(results: dict) -> dict:
    return {name.removesuffix(",none"): value for name, value in results["results"]["bridge_task"].items()}


def always(text):
    return lambda conversation: text


def number_in(text: str) -> int:
    return int(re.search(r"number (\d+)", text).group(1))


def pictured_rows(folder, n: int) -> list[dict]:
    for colour in COLOURS[:n]:
        Image.new("RGB", (40, 30), colour).save(folder / f"{colour}.png")
    return [row | {"image": f"{colour}.png"} for row, colour in zip(question_rows(n), COLOURS, strict=False)]


def colour_of(picture) -> tuple:
    return picture.convert("RGB").getpixel((5, 5))


@pytest.mark.parametrize("kind", [ChatModel, SimpleModel])
def test_a_batch_keeps_its_conversations_apart(tmp_path, kind):
    """Backends apply the first request's function to the whole batch; each must still get its own picture."""
    write_task(tmp_path, pictured_rows(tmp_path, 8))
    model = kind(lambda conversation: "Answer: C", batch_size=4)
    evaluate(model, tmp_path)
    assert max(model.batches) == 4
    firsts = [c for c in model.conversations if "is incorrect" not in c[-1]["text"]]
    laters = [c for c in model.conversations if "is incorrect" in c[-1]["text"]]
    assert sorted(number_in(c[0]["text"]) for c in firsts) == list(range(8))
    assert len(laters) == 16
    for conversation in model.conversations:
        number = number_in(conversation[0]["text"])
        pictures = [picture for message in conversation for picture in message["pictures"]]
        assert [colour_of(picture) for picture in pictures] == [colour_of(Image.new("RGB", (9, 9), COLOURS[number]))]
        assert len(set(re.findall(r"number (\d+)", str([m["text"] for m in conversation])))) == 1


def test_a_chat_model_gets_the_history_as_messages(tmp_path):
    write_task(tmp_path, question_rows(1))
    model = ChatModel(always("Answer: C"))
    evaluate(model, tmp_path)
    later = next(c for c in model.conversations if len(c) > 1)
    assert [message["role"] for message in later] == ["user", "assistant", "user"]
    assert later[1]["text"] == "Answer: C"


def test_a_simple_model_gets_the_history_as_one_text(tmp_path):
    write_task(tmp_path, question_rows(1))
    model = SimpleModel(always("Answer: C"))
    evaluate(model, tmp_path)
    text = next(c[0]["text"] for c in model.conversations if "is incorrect" in c[0]["text"])
    assert re.match(
        r"User: Question number 0\?.*\n\nAssistant: Answer: C\n\nUser: Your previous .*\n\nAssistant:$", text, re.DOTALL
    )


THINKING = [
    "<think>A? No.</think>\n\nAnswer: C",
    "<think>A? No, it goes on",
    "It is C.</think>\n\nAnswer: C",
    "<reasoning>x</reasoning> <think></think> Answer: C \n",
]


def test_think_tags_survive_byte_for_byte(tmp_path):
    write_task(tmp_path, question_rows(len(THINKING)))
    model = ChatModel(lambda conversation: THINKING[number_in(conversation[0]["text"])])
    results = evaluate(model, tmp_path, log_samples=True)
    records = records_of(tmp_path)
    for record, text in zip(records, THINKING, strict=True):
        replies = [turn["reply"]["text"] for turn in record["turns"] if turn["role"] == "receiver"]
        assert set(replies) == {text}
    for sample in results["samples"]["bridge_task"]:
        summary = json.loads(sample["filtered_resps"][0])
        assert summary["id"] == f"q{sample['doc_id']}"


def test_a_summary_that_quotes_tags_reaches_its_own_episode(tmp_path):
    """An answer with tags in it must not be cut out of the string that carries it, nor move to another round."""
    rows = [{"question": f"Question number {i}?", "answer": "x"} for i in range(2)]
    write_task(tmp_path, rows, extra="")
    yaml = tmp_path / "bridge_task.yaml"
    yaml.write_text(yaml.read_text().replace("verifier: choice", "verifier: choice_or_exact"))
    results = evaluate(ChatModel(always("Answer: a<b </think> c>d")), tmp_path, log_samples=True)
    assert len(results["samples"]["bridge_task"]) == 2
    for sample in results["samples"]["bridge_task"]:
        assert json.loads(sample["filtered_resps"][0])["first"] is not None


def test_tags_in_a_summary_are_not_cut_out(tmp_path):
    """Ids and categories travel in the string that the harness would strip of think tags."""
    tagged = "<think>c</think><reasoning>d</reasoning>"
    write_task(tmp_path, [row | {"category": tagged} for row in question_rows(2)])
    results = evaluate(ChatModel(always("Answer: B")), tmp_path, log_samples=True)
    for sample in results["samples"]["bridge_task"]:
        assert sample["N"]["summaries"][0]["category"] == tagged
        assert "<" not in sample["filtered_resps"][0]


@pytest.mark.parametrize("result", ["", None, "{}", "[]", "not json", '{"doc_id": 1}', 7])
def test_an_odd_result_never_loses_the_other_tasks(tmp_path, result):
    from interbench_tasks.harness.task import InteractiveTask
    from interbench_tasks.yaml_files import config_from_file

    config = config_from_file(write_task(tmp_path, question_rows(1)))
    task = InteractiveTask(config=config)
    assert task.process_results({}, [result]) == {"N": {"summaries": []}}


def test_a_summary_that_the_metrics_cannot_read_is_told_and_not_raised(tmp_path):
    from interbench_tasks.harness.task import InteractiveTask
    from interbench_tasks.yaml_files import config_from_file

    task = InteractiveTask(config=config_from_file(write_task(tmp_path, question_rows(1))))
    row = task.process_results({}, ['{"doc_id": 0, "repeat": 0}'])
    assert list(row) == ["N"]
    assert task.aggregation()["N"]([row["N"]]) == 1


def failing(role: str):
    """An answer in which one role's calls fail; the receiver is told from the provider by its model."""

    def answer(conversation):
        if role == "arm" and len(conversation) > 1:
            return ""
        return "Answer: A"

    return answer


@pytest.fixture
def said():
    """What is logged, as `LEVEL text` lines."""
    lines: list[str] = []
    sink = logger.add(lines.append, format="{level} {message}", level="INFO")
    yield lines
    logger.remove(sink)


def test_calls_that_failed_anywhere_are_told_loudly(tmp_path, monkeypatch, said):
    write_task(tmp_path, question_rows(3))
    evaluate(ChatModel(failing("arm")), tmp_path)
    assert re.search(r"ERROR interbench: 3 of 3 episodes \(100.0%\) have no score, or not in every arm", "".join(said))
    said.clear()
    monkeypatch.setenv("INTERBENCH_PROVIDER", "simulated:dead,fail=1")
    evaluate(ChatModel(failing("none")), tmp_path)
    assert re.search(r"ERROR interbench: 3 of 3 episodes", "".join(said))


def test_few_failures_are_a_warning_and_none_are_silent(tmp_path, said):
    write_task(tmp_path, question_rows(30), extra="    max_failed_share: 0.5\n")
    evaluate(ChatModel(lambda c: "" if number_in(c[0]["text"]) == 1 else "Answer: B"), tmp_path)
    assert re.search(r"WARNING interbench: 1 of 30 episodes", "".join(said))
    assert "ERROR" not in "".join(said)


def test_a_real_receiver_with_a_simulated_provider_is_warned_about(tmp_path, said):
    write_task(tmp_path, question_rows(1))
    evaluate(ChatModel(always("Answer: B")), tmp_path)
    assert "provider was a simulation" in "".join(said)


def test_without_an_output_path_the_folder_is_told(tmp_path, said, monkeypatch):
    monkeypatch.setenv("INTERBENCH_RUNS", str(tmp_path / "runs"))
    write_task(tmp_path, question_rows(1))
    evaluate(ChatModel(always("Answer: B")), tmp_path, args=cli_args(None))
    assert re.search(rf"WARNING interbench: no --output_path.*{tmp_path / 'runs'}", "".join(said))


def test_a_metric_that_no_doc_has_is_absent(tmp_path):
    write_task(tmp_path, question_rows(3))
    results = results_of(evaluate(ChatModel(always("Answer: B")), tmp_path))
    assert results["accuracy"] == 1.0
    assert results["n_test"] == 0
    assert not [name for name in results if name.startswith(("correction_rate", "difference"))]
    assert not [name for name, value in results.items() if value is None or value != value or value == []]


def test_a_metric_that_some_docs_lack_is_computed_over_the_others(tmp_path):
    write_task(tmp_path, question_rows(4))
    model = ChatModel(lambda c: "Answer: B" if number_in(c[0]["text"]) == 0 or len(c) > 1 else "Answer: A")
    results = results_of(evaluate(model, tmp_path))
    assert (results["accuracy"], results["accuracy.n"]) == (0.25, 4)
    assert (results["correction_rate.simple"], results["correction_rate.simple.n"]) == (1.0, 3)
    assert results["N"] == 4


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("", "empty"),
        ("[LMMS_EVAL_REQUEST_FAILED after 5 retries] boom", "error"),
        ("[LMMS_EVAL_BUDGET_EXCEEDED]", "error"),
        (None, "ok"),
    ],
)
def test_a_failure_text_is_no_answer(tmp_path, output, status):
    """`None` stands for a good reply, to show that the other episodes are scored."""
    write_task(tmp_path, question_rows(4))
    model = ChatModel(lambda c: output if output is not None and number_in(c[0]["text"]) < 2 else "Answer: B")
    results = results_of(evaluate(model, tmp_path))
    failed = 0 if output is None else 2
    assert (results["accuracy"], results["accuracy.n"], results["accuracy.unscored"]) == (1.0, 4 - failed, failed)
    assert results["n_failed"] == failed
    assert records_of(tmp_path)[0]["turns"][0]["reply"]["status"] == status


def test_a_failed_round_is_unscored_in_its_arm_only(tmp_path):
    write_task(tmp_path, question_rows(2))

    def answer(conversation):
        if len(conversation) == 1:
            return "Answer: A"
        return "" if number_in(conversation[0]["text"]) == 0 and "\n\n" in conversation[-1]["text"] else "Answer: B"

    results = results_of(evaluate(ChatModel(answer), tmp_path))
    assert (results["correction_rate.detail.n"], results["correction_rate.detail.unscored"]) == (1, 1)
    assert (results["correction_rate.simple.n"], results["correction_rate.simple.unscored"]) == (2, 0)


def test_repeats_are_episodes_of_their_own(tmp_path):
    write_task(tmp_path, question_rows(3))
    model = ChatModel(always("Answer: B"))
    results = results_of(evaluate(model, tmp_path, repeats=2))
    assert len(model.conversations) == 6
    assert (results["N"], results["accuracy.n"]) == (6, 6)
    assert [(record["doc_id"], record["repeat"]) for record in records_of(tmp_path)] == [
        (doc, repeat) for doc in range(3) for repeat in range(2)
    ]


def test_a_failing_batch_is_halved_until_the_guilty_call_is_alone(tmp_path):
    write_task(tmp_path, question_rows(8))

    def answer(conversation):
        if number_in(conversation[0]["text"]) == 5:
            raise RuntimeError("CUDA out of memory")
        return "Answer: B"

    results = results_of(evaluate(ChatModel(answer), tmp_path))
    assert (results["accuracy"], results["accuracy.n"], results["accuracy.unscored"]) == (1.0, 7, 1)
    assert "CUDA out of memory" in records_of(tmp_path)[5]["error"]


def test_a_broken_picture_fails_its_episode_only(tmp_path):
    rows = pictured_rows(tmp_path, 4)
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(buffer, "PNG")
    (tmp_path / "green.png").write_bytes(buffer.getvalue()[:500])
    write_task(tmp_path, rows)
    results = results_of(evaluate(ChatModel(always("Answer: B")), tmp_path))
    assert (results["N"], results["accuracy.n"], results["n_failed"]) == (4, 3, 1)
    failed = records_of(tmp_path)[1]
    assert failed["status"] == "failed"
    assert "row 1, column image" in failed["error"]


def test_models_are_called_on_the_harness_thread_only(tmp_path):
    write_task(tmp_path, question_rows(4))

    def answer(conversation):
        asyncio.run(asyncio.sleep(0))  # backends do that inside generate_until
        return "Answer: C"

    model = ChatModel(answer)
    evaluate(model, tmp_path)
    assert model.threads == {threading.get_ident()}


def test_it_runs_inside_a_notebooks_loop(tmp_path):
    write_task(tmp_path, question_rows(2))

    async def cell():
        return evaluate(ChatModel(always("Answer: B")), tmp_path)

    assert results_of(asyncio.run(cell()))["accuracy"] == 1.0


def test_cache_requests_is_refused(tmp_path):
    write_task(tmp_path, question_rows(1))
    with pytest.raises(HarnessError, match="--cache_requests cannot store our requests"):
        evaluate(ChatModel(always("Answer: B")), tmp_path, cache_requests=True)


@pytest.mark.parametrize(
    ("option", "message"),
    [({"num_fewshot": 2}, "--num_fewshot has no effect"), ({"system_instruction": "x"}, "interbench.system")],
)
def test_options_without_effect_are_refused_rather_than_recorded(tmp_path, option, message):
    write_task(tmp_path, question_rows(1))
    with pytest.raises(HarnessError, match=message):
        evaluate(ChatModel(always("Answer: B")), tmp_path, **option)


def test_one_odd_row_fails_alone_whatever_it_does(tmp_path):
    rows = [row | {"k": i} for i, row in enumerate(question_rows(4))]
    write_task(tmp_path, rows, extra='    prompts: {question: "{{ question }} {{ 6 // row.k }}"}\n')
    results = results_of(evaluate(ChatModel(always("Answer: B")), tmp_path))
    assert (results["N"], results["accuracy.n"], results["n_failed"]) == (4, 3, 1)


def test_half_an_emoji_in_a_category_loses_nothing(tmp_path):
    write_task(tmp_path, [row | {"category": "x\ud83d"} for row in question_rows(2)])
    evaluate(ChatModel(always("Answer: B")), tmp_path)
    (path,) = tmp_path.rglob("metrics.json")
    assert b"accuracy" in path.read_bytes()


def test_token_settings_do_not_break_the_manifest(tmp_path):
    write_task(tmp_path, question_rows(1))
    evaluate(ChatModel(always("Answer: B")), tmp_path, gen_kwargs="eos_token=2")
    (path,) = tmp_path.rglob("manifest.json")
    assert json.loads(path.read_text())["generation"]["receiver"]["options"] == {"eos_token": 2}


def test_the_harness_cache_changes_nothing(tmp_path, monkeypatch):
    """It would replay failed episodes for ever; our ledger is the only cache."""
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")
    write_task(tmp_path, question_rows(3))
    counts = []
    for _ in range(2):
        model = ChatModel(always("Answer: C"))
        results = results_of(
            evaluate(model, tmp_path, use_cache=str(tmp_path / "cache"), args=cli_args(tmp_path / "out"))
        )
        counts.append((len(model.conversations), results["accuracy"]))
    assert counts == [(9, 0.0), (9, 0.0)]
    kept = [path for path in (tmp_path / "cache").rglob("*.db")]
    assert kept
    for path in kept:
        with closing(sqlite3.connect(path)) as cache:
            tables = [name for (name,) in cache.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            assert "responses" in tables
            assert cache.execute("SELECT count(*) FROM responses").fetchone() == (0,)


def test_predict_only_keeps_the_transcript_and_computes_nothing(tmp_path):
    write_task(tmp_path, question_rows(2))
    results = evaluate(ChatModel(always("Answer: B")), tmp_path, predict_only=True)
    assert "accuracy,none" not in results["results"]["bridge_task"]
    assert len(records_of(tmp_path)) == 2


def test_gen_kwargs_of_the_command_line_reach_the_model(tmp_path):
    write_task(tmp_path, question_rows(1))
    seen = []

    class Curious(ChatModel):
        def generate_until(self, requests):
            seen.extend(request.args[2] for request in requests)
            return super().generate_until(requests)

    evaluate(Curious(always("Answer: B")), tmp_path, gen_kwargs="max_new_tokens=7,temperature=0.5")
    assert seen == [{"max_new_tokens": 7, "temperature": 0.5, "do_sample": True, "until": []}]


def test_metrics_json_equals_the_harness_table(tmp_path):
    write_task(tmp_path, [row | {"category": "ab"[i % 2]} for i, row in enumerate(question_rows(6))])
    model = ChatModel(lambda c: "Answer: B" if number_in(c[0]["text"]) % 3 == 0 else "Answer: A")
    results = results_of(evaluate(model, tmp_path))
    (path,) = tmp_path.rglob("metrics.json")
    metrics = json.loads(path.read_text())
    for name, estimate in metrics["metrics"].items():
        if name in results:
            assert results[name] == pytest.approx(estimate["value"])
    assert set(metrics["categories"]) == {"a", "b"}
    assert len([name for name in results if name not in ("alias", "samples") and "_stderr" not in name]) <= 25


def test_logged_samples_stay_small(tmp_path):
    write_task(tmp_path, question_rows(2))
    long = "word " * 2000 + "\nAnswer: C"
    results = evaluate(ChatModel(always(long)), tmp_path, log_samples=True)
    sample = results["samples"]["bridge_task"][0]
    assert len(sample["filtered_resps"][0]) < 4096
    assert len(json.dumps(sample, default=str)) < 20_000
