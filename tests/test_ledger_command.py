"""`interbench ledger`, as a user types it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interbench_tasks.cli_ledger import overview_text
from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_admin import overview
from tests.cli import interbench as interbench_process
from tests.ledgers import ROOT, key
from tests.test_command_line import interbench
from tests.test_ledger_admin import GPT, QWEN, left, stored
from tests.test_ledger_file import garbage


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A ledger with seven replies, of which one was found twice; the one that INTERBENCH_LEDGER names."""
    folder = stored(tmp_path / "ledger")
    ledger = Ledger.open(folder)
    for _ in range(2):
        ledger.get(key(0))
    ledger.close()
    monkeypatch.setenv("INTERBENCH_LEDGER", str(folder))
    return folder


def table(text: str) -> dict[str, list[str]]:
    """Model -> cells, of the table in an output."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if "  " in line]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("words", [("ledger",), ("ledger", "show")])
def test_show_tells_what_is_there_and_what_it_saved(folder, words):
    code, text = interbench(*words)
    assert code == 0
    assert text.startswith(f"{folder}\n7 replies in 2 files, ")
    assert "schema version 2, stored 2" in text
    rows = table(text)
    assert rows["model"] == [
        *("replies", "size", "finish reasons", "tokens in", "tokens out", "hits", "saved in", "saved out", "saved USD")
    ]
    assert rows[GPT][0] == "4"
    assert rows[GPT][2:] == ["length 2, stop 2, (2 empty)", "3,248", "20", "2", "1,624", "10", "0.00"]
    assert rows[QWEN][2:] == ["unknown 2", "unknown", "unknown", "0", "0", "0", "no price"]
    assert rows["all"][0] == "7"
    assert rows["all"][3:] == ["4,060+", "25+", "2", "1,624", "10", "0.00+"]
    assert "USD at list prices" in text
    assert "+ tokens are unknown for 2 replies and 0 hits" in text


def test_show_takes_another_folder(folder, tmp_path):
    other = stored(tmp_path / "other")
    assert str(other) in interbench("ledger", "show", "--folder", other)[1]
    assert str(other) in interbench("ledger", "--folder", other)[1]


@pytest.mark.parametrize("words", [("show",), ("prune", "--model", "*", "--yes"), ("export",)])
def test_a_folder_before_the_verb_is_refused_not_ignored(folder, tmp_path, words):
    other = stored(tmp_path / "other")
    with pytest.raises(LedgerError, match=f"interbench ledger {words[0]} --folder"):
        interbench("ledger", "--folder", other, *words)
    assert "7 replies" in interbench("ledger")[1]


def test_show_goes_on_past_a_damaged_file_and_ends_with_1(folder):
    garbage(folder / "ledger-rank1.sqlite3")
    code, text = interbench("ledger", "show")
    assert code == 1
    assert "5 replies in 1 file," in text
    assert "ledger-rank1.sqlite3: damaged (file is not a database)" in text


def test_show_names_what_was_set_aside(folder):
    garbage(folder / "ledger-rank0.sqlite3")
    Ledger.open(folder).close()
    code, text = interbench("ledger", "show")
    assert (code, "delete them if you like: ledger-rank0.sqlite3.damaged-1" in text) == (0, True)


def test_a_price_function_gives_a_column_of_money(folder):
    text = overview_text(overview(folder), lambda model, saved: saved.input_tokens / 1000 if model == GPT else None)
    assert (table(text)["model"][-1], table(text)[GPT][-1], table(text)[QWEN][-1]) == ("saved USD", "1.62", "no price")


def test_the_users_prices_count_and_all_is_the_sum_of_what_is_known(folder, tmp_path, monkeypatch):
    prices = tmp_path / "prices.yaml"
    prices.write_text(f'"{GPT}": {{input: 1000, output: 0}}\n')
    monkeypatch.setenv("INTERBENCH_PRICES", str(prices))
    rows = table(interbench("ledger")[1])
    assert (rows[GPT][-1], rows[QWEN][-1], rows["all"][-1]) == ("1.62", "no price", "1.62+")


def test_prune_only_shows_with_dry_run(folder):
    code, text = interbench("ledger", "prune", "--model", "openai:*", "--status", "length", "--dry-run")
    assert code == 0
    assert table(text)[GPT][0] == "2"
    assert "2 replies, about " in text
    assert "would be deleted" in text
    assert left(folder) == [0, 1, 2, 3, 4, 5, 6]


def test_prune_deletes_nothing_without_yes(folder):
    code, text = interbench("ledger", "prune", "--status", "empty")
    assert code == 1
    assert "2 replies, about " in text
    assert "Nothing was deleted: say --yes to delete." in text
    assert left(folder) == [0, 1, 2, 3, 4, 5, 6]


def test_prune_with_yes_deletes_what_it_shows(folder):
    code, text = interbench("ledger", "prune", "--status", "empty", "--status", "unknown", "--yes")
    assert code == 0
    assert re.search(r"4 replies deleted, .* freed", text)
    assert left(folder) == [0, 1, 4]
    code, text = interbench("ledger", "prune", "--status", "empty", "--yes")
    assert (code, "0 replies, about 0 B, are to be deleted" in text) == (0, True)


@pytest.mark.parametrize(
    ("typed", "stays"), [("y", [0, 1, 4, 5, 6]), ("n", [0, 1, 2, 3, 4, 5, 6]), ("", [0, 1, 2, 3, 4, 5, 6])]
)
def test_prune_asks_on_a_terminal(folder, typed, stays):
    ours, theirs = pty.openpty()
    code = "from interbench_tasks.cli import main; main()"
    command = [sys.executable, "-c", code, "ledger", "prune", "--status", "empty"]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    os.write(ours, f"{typed}\n".encode())
    said = process.communicate(timeout=60)[0].decode()
    os.close(ours)
    os.close(theirs)
    assert "Delete them for good? [y/N]" in said
    assert process.returncode == (0 if typed == "y" else 1)
    assert left(folder) == stays


def test_prune_refuses_while_a_run_uses_the_ledger_but_shows_what_it_would_do(folder):
    ledger = Ledger.open(folder)
    code, text = interbench("ledger", "prune", "--status", "empty", "--dry-run")
    assert (code, "2 replies" in text) == (0, True)
    with pytest.raises(LedgerError, match="a run is using this ledger"):
        interbench("ledger", "prune", "--status", "empty", "--yes")
    assert interbench("ledger", "show")[0] == 0
    ledger.close()
    assert left(folder) == [0, 1, 2, 3, 4, 5, 6]


def test_prune_by_age(folder):
    code, text = interbench("ledger", "prune", "--older-than", "1d", "--dry-run")
    assert (code, "0 replies" in text) == (0, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prune",), "say which replies"),
        (("prune", "--older-than", "soon"), "must be a whole number and one of m, h, d, w"),
        (("prune", "--status", "emtpy"), "did you mean 'empty'"),
        (("prune", "--model", "x", "--folder", "nowhere"), "no ledger is here"),
        (("show", "--folder", "nowhere"), "no ledger is here"),
        (("export", "--format", "csv"), "there is no such format; allowed: jsonl"),
        (("export", "--folder", "nowhere"), "no ledger is here"),
    ],
)
def test_wrong_words(folder, words, message):
    with pytest.raises(LedgerError, match=message):
        interbench("ledger", *words)


@pytest.mark.parametrize("verb", ["show", "export", "prune"])
def test_a_ledger_that_is_switched_off_is_no_ledger(monkeypatch, verb):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")
    words = ("--model", "*") if verb == "prune" else ()
    with pytest.raises(LedgerError, match=r"switched off \(INTERBENCH_LEDGER=off\): name a folder with --folder"):
        interbench("ledger", verb, *words)


def test_export_writes_a_file_or_the_standard_output(folder, tmp_path):
    code, text = interbench("ledger", "export")
    lines = text.splitlines()
    assert (code, len(lines)) == (0, 7)
    out = tmp_path / "replies.jsonl"
    code, text = interbench("ledger", "export", "--format", "jsonl", "--out", out)
    assert (code, text) == (0, f"7 replies written to {out}\n")
    assert out.read_text(encoding="utf-8").splitlines() == lines
    assert {json.loads(line)["model"] for line in lines} >= {GPT, QWEN}


def test_errors_are_text_and_the_exit_code_is_1(folder):
    done = interbench_process("ledger", "prune", "--status", "emtpy")
    assert done.exit_code == 1
    assert done.output.startswith("--status emtpy: no reply has it (did you mean 'empty'?)")
    assert "Traceback" not in done.output


def test_looking_needs_neither_torch_nor_the_harness(folder):
    code = (
        "import sys\nfrom interbench_tasks.cli import app\n"
        "try:\n    app(['ledger', 'show'])\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(str([n for n in ('torch', 'lmms_eval', 'datasets', 'openai') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stderr == "[]"
    assert "7 replies" in done.stdout


def test_the_folder_is_the_users_data_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("INTERBENCH_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(LedgerError, match="no ledger is here") as caught:
        interbench("ledger")
    assert Path(str(caught.value).split(":")[0]).name == "ledger"
