"""No key is in anything that a run writes, whatever fails and whoever quotes it: fake keys, and every file searched."""

from __future__ import annotations

import base64
import html
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from typer.testing import CliRunner

from interbench_tasks import settings
from interbench_tasks.cli import app, main
from interbench_tasks.errors import BackendError, HarnessError
from interbench_tasks.harness.hidden_keys import keys_hidden
from interbench_tasks.redaction import MARK
from tests.cli import Finished, lmms_eval
from tests.harness_fakes import question_rows
from tests.plugin_package import install_plugin
from tests.servers.anthropic_server import AnthropicServer, api_refusal, planted_message
from tests.servers.chat_requests import ParsedRequest
from tests.servers.openai_server import DROPPED, Fault, OpenAIServer, PlantedReply, refusal

ROOT = Path(__file__).resolve().parents[1]
FAKES = {
    "OPENAI_API_KEY": "Kq7/Zw+9vT=\"x4&Pm2%81'nB<5sR",
    "ANTHROPIC_API_KEY": "uX3eHd8LcY0aJf6TgW1oQi5",
    "MY_VAR": "R2yVbN7kSm4ZpD9hCxE1tGu",
    "SHORT_VAR": "q7x9z",
    "GATEWAY_PASS": "Bearer jO8wFl3MrK6vIs0PaYn2",
    "HF_TOKEN": "hf_Bz5QeXc8WdUg1TjHo4Ny",
    "NOT_IN_THE_ENVIRONMENT": "eW6rLp0AiGq3SkVt9MfJb",
}
"""Variable -> fake key; the last one only stands in a YAML. None has the shape of a real service's key but HF_TOKEN."""
WINDOW = 10
"""A piece of a key of so many characters is a leak: what a cut in the wrong place leaves."""


def pieces_of(key: str) -> Iterator[str]:
    """What must be nowhere: every piece of a key, in each of its spellings; a short key as a whole."""
    bare = key.removeprefix("Bearer ")
    for spelled in {bare, quote(bare, safe=""), json.dumps(bare)[1:-1], html.escape(bare)}:
        yield from {spelled[i : i + WINDOW] for i in range(max(len(spelled) - WINDOW, 0) + 1)}
    if len(bare) >= WINDOW:
        for shift in range(3):
            yield base64.b64encode(b"\0" * shift + bare.encode()).decode()[4:-4]


NEEDLES = {piece.encode(): name for name, key in FAKES.items() for piece in pieces_of(key)}


def leaks_in(data: bytes) -> list[str]:
    """Which keys are in the data, also broken over lines, and what stands around."""
    squeezed = b"".join(data.replace(b"\\n", b"").split())
    return [
        f"{name}: ...{where[max(at - 60, 0) : at + 60]!r}"
        for needle, name in NEEDLES.items()
        for where in (data, squeezed)
        if (at := where.find(needle)) >= 0
    ]


@pytest.mark.parametrize("name", FAKES)
def test_a_leak_would_be_found(name):
    key = FAKES[name]
    bare = key.removeprefix("Bearer ")
    for text in (f"is {key}.", f"is {bare[:WINDOW]}...", f"{quote(bare, safe='')}", f"is {bare[:6]}\n{bare[6:]}"):
        assert leaks_in(text.encode()), text
    if len(bare) > WINDOW:
        assert leaks_in(base64.b64encode(f"user:{bare}".encode()))


# --- servers that quote what they were sent ---------------------------------------------------------------------


def in_lines(key: str) -> str:
    return "\n".join(key[i : i + 7] for i in range(0, len(key), 7))


ECHOES: list[Callable[[str], Fault | PlantedReply]] = [
    lambda key: refusal(401, f"no such key: {key}"),
    lambda key: refusal(400, f"{'x' * (240 - len(key) // 2)} {key}"),  # where the server's words are cut
    lambda key: refusal(500, f"request was /v1?auth={quote(key, safe='')}"),
    lambda key: refusal(403, f"header {base64.b64encode(f'user:{key}'.encode()).decode()} refused"),
    lambda key: Fault(body=f'{{"sent": "{"y" * (70 - len(key) // 2)}{key}'.encode()),  # where a body is cut
    lambda key: Fault(body=f"<html><body>{key}</body></html>".encode(), content_type="text/html"),
    lambda key: refusal(429, json.dumps({"headers": {"authorization": key}})),
    lambda key: refusal(400, in_lines(key)),
    lambda key: refusal(404, html.escape(f"<b>{key}</b>")),
    lambda key: PlantedReply(text=None, finish_reason=key),
    lambda key: PlantedReply(text="", finish_reason="stop", model=key),
    lambda key: PlantedReply(text=f"I was sent {key}\nAnswer: C", model=key, message={"reasoning_content": key}),
    lambda key: DROPPED,
]
"""Ways in which a server can quote the key that it was sent; question number i gets the i-th."""
N_PLAIN = 12
"""Questions that are answered wrongly without any echo, so that the provider is asked."""


def number_in(request: ParsedRequest) -> int:
    text = request.user_messages[0].text
    return int(text.partition("Question number ")[2].partition("?")[0])


def receiver_answer(request: ParsedRequest) -> str | PlantedReply | Fault:
    number = number_in(request)
    key = request.headers["authorization"].removeprefix("Bearer ")
    return ECHOES[number](key) if number < len(ECHOES) else "Answer: C"


def provider_answer(request: ParsedRequest) -> str | PlantedReply | Fault:
    """Solves every question; quotes its keys wherever it is asked for feedback."""
    short, gate = request.headers["x-api-key"], request.headers["x-gate"]
    if "Question number" not in request.user_messages[0].text or len(request.messages) > 1:
        return api_refusal(401, f"keys {short} and {gate}")
    kind = number_in(request) % 4
    if kind == 0:
        return api_refusal(401, f"keys {short} and {gate}")
    if kind == 1:
        return planted_message(f"I got {gate.removeprefix('Bearer ')}. Answer: B")
    return "Answer: B"


PLUGIN = f"""\
import os
from interbench_tasks import hookimpl

def every_key():
    return " ".join(os.environ.get(name, "") for name in {list(FAKES)!r})

class Unreadable(Exception):
    def __str__(self):
        return every_key()

class Leaky:
    def judge(self, text, target, options):
        raise ValueError(f"cannot judge with {{every_key()}}")

class LeakyArm:
    async def give(self, episode, turn, provider):
        try:
            raise KeyError(every_key())
        except KeyError:
            raise Unreadable()

class LeakyMetrics:
    def __init__(self, options):
        pass
    def summary(self, record):
        return {{"id": record.episode_id, "doc_id": record.doc_id, "repeat": record.repeat, "status": record.status}}
    def contributions(self, summary):
        raise ValueError(every_key())
    def headline(self, names):
        return names
    def table(self, summaries):
        raise Unreadable()

def broken(*args, **kwargs):
    raise RuntimeError(every_key())

@hookimpl
def interbench_verifiers():
    return {{"leaky": Leaky, "broken": broken}}

@hookimpl
def interbench_feedback_providers():
    return {{"leaky_arm": LeakyArm}}

@hookimpl
def interbench_metrics():
    return {{"leaky_metrics": LeakyMetrics, "broken_metrics": broken}}

@hookimpl
def interbench_backends():
    return {{"broken": broken}}

@hookimpl
def interbench_episode_finished(record):
    raise Unreadable()
"""


# --- one run with all of it -------------------------------------------------------------------------------------

SECRET_IN_YAML = FAKES["NOT_IN_THE_ENVIRONMENT"]
LOCAL = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
REFUSED = {
    "key_header": {"roles": {"provider": {**LOCAL, "extra_headers": {"Cookie": f"session={SECRET_IN_YAML}"}}}},
    "key_in_body": {"roles": {"provider": {**LOCAL, "extra_body": {"deep": [{"api_key": SECRET_IN_YAML}]}}}},
    "key_option": {"roles": {"provider": f"openai:m,hf_token={SECRET_IN_YAML}"}},
    "user_in_address": {"roles": {"provider": {**LOCAL, "base_url": f"http://me:{SECRET_IN_YAML}@127.0.0.1:9/v1"}}},
    "key_in_address": {"roles": {"provider": f"openai:m@http://127.0.0.1:9/v1?key={SECRET_IN_YAML}"}},
    "key_elsewhere": {"api_key": SECRET_IN_YAML, "verifier": {"token": SECRET_IN_YAML}},
    "broken_backend": {"roles": {"provider": "broken:m"}},
    "broken_metrics": {"metrics": "broken_metrics"},
    "broken_verifier": {"verifier": "broken"},
}
"""Tasks that are refused, or that break, before anything is played."""


def write_tasks(folder: Path, provider: AnthropicServer) -> list[str]:
    """The tasks of the run, each a YAML of its own; returns their names."""
    data = folder / "questions.jsonl"
    rows = question_rows(len(ECHOES) + N_PLAIN)
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    role = {"backend": "anthropic", "model": "teacher", "base_url": provider.url, "api_key_env": "SHORT_VAR"}
    role |= {"extra_headers": {"X-Gate": "$GATEWAY_PASS", "X-Title": "Interbench"}, "max_retries": 0}
    played = {
        "echoes": {"arms": ["detail", "simple", "leaky_arm"]},
        "judged": {"verifier": "leaky"},
        "measured": {"metrics": "leaky_metrics"},
    }
    for name, own in {**played, **REFUSED}.items():
        block = {"protocol": "feedback_loop", "arms": ["detail"], "verifier": "choice", "roles": {"provider": role}}
        config = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": str(data)},
            "test_split": "test",
            "generation_kwargs": {"until": [], "max_new_tokens": 64, "temperature": 0},
            "metadata": {"version": 1.0, "interbench": {**block, **own}},
        }
        text = "class: !function interbench_tasks.harness.task.InteractiveTask\n" + yaml.safe_dump(config)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [",".join(played), *REFUSED]


@dataclass(frozen=True)
class Run:
    folder: Path
    """Holds the tasks, and under `written` all that the run wrote."""
    done: Finished
    receiver: OpenAIServer
    provider: AnthropicServer

    @property
    def written(self) -> list[Path]:
        return sorted(path for path in (self.folder / "written").rglob("*") if path.is_file())

    @property
    def errors(self) -> list[str]:
        """Every error in a transcript."""
        texts = [path.read_text(encoding="utf-8") for path in self.written if path.name == "episodes.jsonl"]
        return [error for text in texts for line in text.splitlines() for error in errors_in(json.loads(line))]


def errors_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "error" and isinstance(inner, str):
                yield inner
            yield from errors_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from errors_in(inner)


@pytest.fixture(scope="module")
def secret_run(tmp_path_factory) -> Iterator[Run]:
    """One start of the harness that plays three tasks and is refused the others."""
    folder = tmp_path_factory.mktemp("secrets")
    install_plugin(folder, "interbench_leaky", PLUGIN)
    written = folder / "written"
    with OpenAIServer(receiver_answer) as receiver, AnthropicServer(provider_answer) as provider:
        shared = {
            "model": "interbench_api",
            "model_args": f"model=openai:student@{receiver.url},api_key_env=MY_VAR,max_retries=0,timeout_s=20",
            "include_path": str(folder),
            "output_path": str(written / "out"),
            "log_samples": True,
        }
        entries = [{**shared, "tasks": tasks} for tasks in write_tasks(folder, provider)]
        (folder / "list.json").write_text(json.dumps(entries), encoding="utf-8")
        environment = {name: key for name, key in FAKES.items() if name != "NOT_IN_THE_ENVIRONMENT"}
        environment |= {"INTERBENCH_LEDGER": str(written / "ledger"), "INTERBENCH_RUNS": str(written / "runs")}
        environment |= {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "INTERBENCH_PROGRESS": "off"}
        done = lmms_eval("--config", folder / "list.json", **environment)
        (written / "said.txt").write_text(done.output, encoding="utf-8")
        yield Run(folder, done, receiver, provider)


@pytest.mark.integration
def test_no_key_is_in_any_file_of_the_run_nor_in_what_it_says(secret_run):
    names = {path.suffix for path in secret_run.written}
    assert {".jsonl", ".json", ".sqlite3", ".txt"} <= names
    for path in secret_run.written:
        data = path.read_bytes()
        if path.name == "said.txt":
            data = b"\n".join(line for line in data.split(b"\n") if b"Evaluation tracker args" not in line)
        assert leaks_in(data) == [], path


@pytest.mark.integration
def test_the_harness_prints_one_token_itself_as_the_readme_says(secret_run):
    lines = [line for line in secret_run.done.output.splitlines() if FAKES["HF_TOKEN"] in line]
    assert lines
    assert all("Evaluation tracker args" in line for line in lines)
    assert "prints `HF_TOKEN`" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.integration
def test_the_keys_were_really_sent_and_really_quoted(secret_run):
    """Else finding none would mean nothing."""
    assert {request.headers["authorization"] for request in secret_run.receiver.log} == {f"Bearer {FAKES['MY_VAR']}"}
    assert {request.headers["x-api-key"] for request in secret_run.provider.log} == {FAKES["SHORT_VAR"]}
    assert {request.headers["x-gate"] for request in secret_run.provider.log} == {FAKES["GATEWAY_PASS"]}
    errors = secret_run.errors
    for said in (
        f"no such key: {MARK}",
        f"auth={MARK}",
        f"header {MARK} refused",
        "malformed JSON",
        "HTML page",
        "finish_reason is",
        "broke off",
        f"keys {MARK} and {MARK}",
        "the verifier raised ValueError",
        "feedback 'leaky_arm' ",
    ):
        assert any(said in error for error in errors), (said, sorted(set(errors)))
    for said in ("the metrics cannot be computed", "metrics of an episode failed", "plugin 'interbench_leaky'"):
        assert said in secret_run.done.output


@pytest.mark.integration
@pytest.mark.parametrize("task", REFUSED)
def test_what_is_refused_or_broken_is_told_without_the_key(secret_run, task):
    said = {
        "key_header": "extra_headers: 'Cookie' looks like a key",
        "key_in_body": "extra_body.deep.0: 'api_key' looks like a key",
        "key_option": "'hf_token' cannot be given here",
        "user_in_address": "base_url must hold no user and password",
        "key_in_address": "base_url must end before '?'",
        "key_elsewhere": "api_key is no known key",
    }
    # Entries are played in their order, and the harness prints the error of each.
    errors = [line for line in secret_run.done.output.splitlines() if "Error during evaluation: " in line]
    assert len(errors) == len(REFUSED)
    error = errors[list(REFUSED).index(task)]
    assert said.get(task, f"RuntimeError: {MARK}") in error


@pytest.mark.integration
def test_our_own_commands_show_no_key_of_such_a_run(secret_run, monkeypatch):
    for name, key in FAKES.items():
        if name != "NOT_IN_THE_ENVIRONMENT":
            monkeypatch.setenv(name, key)
    monkeypatch.syspath_prepend(str(secret_run.folder))
    files = [str(secret_run.folder / f"{name}.yaml") for name in REFUSED if not name.startswith("broken")]
    scored = [str(path.parent) for path in secret_run.written if path.name == "manifest.json" and "echoes" in str(path)]
    for words in (["check", "--no-data", *files], ["score", "--categories", *scored], ["run", "--dry-run", *sent()]):
        result = CliRunner().invoke(app, words)
        assert leaks_in(f"{result.output} {result.exception!r}".encode()) == [], words


@pytest.mark.integration
def test_a_plugin_that_breaks_our_own_command_shows_no_key(secret_run, monkeypatch, capsys):
    for name, key in FAKES.items():
        monkeypatch.setenv(name, key)
    monkeypatch.syspath_prepend(str(secret_run.folder))
    [measured] = [path.parent for path in secret_run.written if path.match("measured/manifest.json")]
    monkeypatch.setattr(sys, "argv", ["interbench", "score", str(measured)])
    for name in ("MY_VAR", "SHORT_VAR", "GATEWAY_PASS", "NOT_IN_THE_ENVIRONMENT"):
        settings.key_variable(name)  # as the backends of a run do
    with pytest.raises(SystemExit) as ended:
        main()
    output, errors = capsys.readouterr()
    assert ended.value.code == 1
    assert errors.startswith(f"Unreadable: {MARK}")
    assert leaks_in(f"{output}{errors}".encode()) == []


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError("plain"), ValueError, "plain"),
        (ValueError("with hush-hush-hush"), HarnessError, f"ValueError: with {MARK}"),
        (BackendError("with hush-hush-hush"), HarnessError, f"with {MARK}"),
    ],
)
def test_an_error_whose_traceback_would_show_a_key_is_replaced(monkeypatch, error, kind, said):
    monkeypatch.setenv("SOME_API_KEY", "hush-hush-hush")
    with pytest.raises(kind) as raised, keys_hidden():
        raise error
    assert str(raised.value) == said
    shown = "".join(traceback.format_exception(raised.value))
    assert "hush-hush-hush" not in shown


def test_an_error_whose_cause_would_show_a_key_is_replaced(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "hush-hush-hush")
    error = RuntimeError("plain")
    error.__cause__ = ValueError("with hush-hush-hush")
    with pytest.raises(HarnessError, match="RuntimeError: plain") as raised, keys_hidden():
        raise error
    assert "hush-hush-hush" not in "".join(traceback.format_exception(raised.value))


def sent() -> list[str]:
    """A command line that somebody wrote keys into."""
    return ["--model_args", f"model=m,api_key={FAKES['MY_VAR']}", "--hf_hub_log_args", f"token={FAKES['HF_TOKEN']}"]
