"""Looking at a ledger, pruning and exporting it: what is shown is what is there, and only what is meant goes."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from interbench_tasks.errors import LedgerError
from interbench_tasks.ledger import Ledger
from interbench_tasks.ledger_admin import (
    ModelShare,
    Overview,
    Selection,
    Tokens,
    age_s,
    check_selection,
    overview,
    prune,
    refuse_while_in_use,
)
from interbench_tasks.ledger_export import export_lines, write_export
from interbench_tasks.ledger_rows import Saved
from interbench_tasks.records import Reply
from tests.ledgers import REPLY, filled, key, put_all
from tests.test_ledger_file import break_pages, change_letter, garbage
from tests.test_ledger_schema import as_version, file_of_version_1

DAY_S = 86_400
GPT, CLAUDE, QWEN = "openai:gpt-4o", "anthropic:claude-sonnet-5-5", "qwen2_5_vl:Qwen/Qwen2.5-VL-7B-Instruct"
REPLIES = {
    GPT: [
        replace(REPLY, text="one"),
        replace(REPLY, text="two", finish_reason="length"),
        replace(REPLY, text=" \n", finish_reason="length"),
        replace(REPLY, text="", finish_reason="stop"),
    ],
    CLAUDE: [replace(REPLY, text="three", finish_reason="end_turn", model="claude-sonnet-5-5")],
    QWEN: [Reply(text="four"), Reply(text="five")],
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


def stored(folder: Path) -> Path:
    """A ledger of two ranks; keys 0 to 6 in the order of REPLIES, those of QWEN in the second rank's file."""
    numbers = iter(range(100))
    for rank, models in enumerate([(GPT, CLAUDE), (QWEN,)]):
        ledger = Ledger.open(folder, rank=rank)
        for model in models:
            put_all(ledger, {key(next(numbers)): reply for reply in REPLIES[model]}, model)
        ledger.close()
    return folder


def left(folder: Path) -> list[int]:
    """Numbers of the keys that the ledger still has."""
    ledger = Ledger.open(folder, rank=9)
    found = [number for number in range(10) if ledger.get(key(number)) is not None]
    ledger.close()
    return found


def aged(folder: Path, *ages_d: float) -> None:
    """Make the replies of keys 0, 1, ... that many days old."""
    connection = sqlite3.connect(folder / "ledger-rank0.sqlite3")
    with connection:
        for number, days in enumerate(ages_d):
            at = time.time() - days * DAY_S
            connection.execute("UPDATE reply SET created_at = ? WHERE key = ?", (at, key(number)))
    connection.close()


# --- show ---


def test_the_overview_counts_every_reply_once_by_model(folder):
    began = time.time()
    found = overview(stored(folder))
    shares = {share.model: share for share in found.models}
    assert [share.model for share in found.models] == [GPT, QWEN, CLAUDE]
    assert {model: share.n_replies for model, share in shares.items()} == {GPT: 4, CLAUDE: 1, QWEN: 2}
    assert shares[GPT].reasons == {"stop": 2, "length": 2}
    assert (shares[GPT].n_empty, shares[CLAUDE].n_empty) == (2, 0)
    assert shares[GPT].tokens == Tokens(input=4 * 812, output=20, reasoning=12)
    assert shares[QWEN].tokens == Tokens(unknown=2)
    assert shares[QWEN].reasons == {"unknown": 2}
    assert began - 1 < shares[GPT].oldest_at <= shares[QWEN].newest_at <= time.time()
    assert (found.versions, found.problems, found.set_aside) == ((2, 2), (), ())
    assert found.total.n_replies == 7
    assert found.total.tokens == Tokens(input=5 * 812, output=25, reasoning=15, unknown=2)


def test_sizes_are_those_on_disk(folder):
    path = filled(folder, n=300, backend=GPT)
    found = overview(folder)
    assert found.n_bytes == path.stat().st_size
    assert 0.7 * found.n_bytes < found.models[0].n_bytes <= found.n_bytes


def test_hits_and_what_they_saved_are_shown_by_model_from_all_ranks(folder):
    stored(folder)
    for rank in (0, 1):
        ledger = Ledger.open(folder, rank=rank)
        for number in (0, 4, 5):
            ledger.get(key(number))
        ledger.close()
    saved = {share.model: share.saved for share in overview(folder).models}
    assert saved[GPT] == Saved(hits=2, input_tokens=2 * 812, output_tokens=10, reasoning_tokens=6)
    assert saved[QWEN] == Saved(hits=2, unknown=2)
    assert overview(folder).total.saved.hits == 6


def test_what_was_saved_is_the_seam_for_a_price(folder):
    stored(folder)
    ledger = Ledger.open(folder)
    for _ in range(3):
        ledger.get(key(0))
    ledger.close()

    def cost(model: str, saved: Saved) -> float | None:
        return (saved.input_tokens * 2.5 + saved.output_tokens * 10) / 1e6 if model == GPT else None

    assert [cost(share.model, share.saved) for share in overview(folder).models] == [
        pytest.approx(3 * (812 * 2.5 + 5 * 10) / 1e6),
        None,
        None,
    ]


def test_an_old_ledger_is_shown_as_it_is_beside_a_new_one(folder):
    stored(folder)
    path = file_of_version_1(folder, rank=3, start=50)
    before = path.read_bytes()
    found = overview(folder)
    assert sorted(found.versions) == [1, 2, 2]
    (old,) = [share for share in found.models if share.model == "gpt-4o-2024-08-06"]
    assert (old.n_replies, old.oldest_at, old.newest_at) == (3, 1.7e9 + 50, 1.7e9 + 52)
    assert path.read_bytes() == before


def test_a_running_ledger_can_be_looked_at(folder):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): REPLY}, GPT)
    assert overview(folder).total.n_replies == 1
    assert len(list(export_lines(folder, []))) == 1
    put_all(ledger, {key(2): REPLY}, GPT)
    ledger.close()
    assert overview(folder).total.n_replies == 2


@pytest.mark.parametrize("damage", [garbage, break_pages], ids=lambda f: f.__name__)
def test_a_damaged_file_is_told_and_the_others_are_shown(folder, damage):
    stored(folder)
    filled(folder.parent / "big")
    big = folder / "ledger-rank5.sqlite3"
    (folder.parent / "big" / "ledger-rank0.sqlite3").rename(big)
    damage(big)
    found = overview(folder)
    assert found.total.n_replies >= 7
    (problem,) = found.problems
    assert problem.startswith(f"{big}: damaged (")
    problems: list[str] = []
    assert len(list(export_lines(folder, problems))) == 7
    assert len(problems) == 1


def test_a_newer_file_is_told_and_the_others_are_shown(folder):
    stored(folder)
    as_version(folder / "ledger-rank1.sqlite3", 99)
    found = overview(folder)
    assert found.total.n_replies == 5
    assert "schema version 99" in found.problems[0]


def test_files_that_were_set_aside_are_named(folder):
    path = filled(folder)
    garbage(path)
    Ledger.open(folder).close()
    assert [found.name for found in overview(folder).set_aside] == ["ledger-rank0.sqlite3.damaged-1"]


@pytest.mark.parametrize("look", [overview, lambda folder: list(export_lines(folder, [])), refuse_while_in_use])
def test_a_folder_without_a_ledger_is_named_and_left_alone(folder, look):
    with pytest.raises(LedgerError, match=rf"{folder}: no ledger is here"):
        look(folder)
    assert not folder.exists()


def test_shares_of_several_files_add_up():
    one = ModelShare(model="m", n_replies=1, reasons={"stop": 1}, oldest_at=5.0, newest_at=5.0, saved=Saved(hits=1))
    two = ModelShare(model="m", n_replies=2, reasons={"stop": 1, "length": 1}, oldest_at=2.0, newest_at=9.0)
    both = one.plus(two)
    assert (both.n_replies, both.reasons, both.oldest_at, both.newest_at) == (3, {"stop": 2, "length": 1}, 2.0, 9.0)
    assert both == two.plus(one)
    empty = Overview(folder=Path(), models=(), versions=(), n_bytes=0, set_aside=(), problems=())
    assert (empty.total.n_replies, empty.total.oldest_at) == (0, None)


# --- prune ---


@pytest.mark.parametrize(
    ("selection", "stays"),
    [
        (Selection(model="openai:*"), [4, 5, 6]),
        (Selection(model="gpt-4o"), [4, 5, 6]),
        (Selection(model="gpt-4o-2024-*"), [4, 5, 6]),
        (Selection(model="Qwen/Qwen2.5*"), [0, 1, 2, 3, 4]),
        (Selection(model="claude"), [0, 1, 2, 3, 4, 5, 6]),
        (Selection(model="*"), []),
        (Selection(model="'; DROP TABLE reply; --"), [0, 1, 2, 3, 4, 5, 6]),
        (Selection(statuses=("empty",)), [0, 1, 4, 5, 6]),
        (Selection(statuses=("length",)), [0, 3, 4, 5, 6]),
        (Selection(statuses=("unknown",)), [0, 1, 2, 3, 4]),
        (Selection(statuses=("length", "end_turn")), [0, 3, 5, 6]),
        (Selection(statuses=("length", "empty"), model=GPT), [0, 4, 5, 6]),
        (Selection(statuses=("length",), model=CLAUDE), [0, 1, 2, 3, 4, 5, 6]),
    ],
    ids=str,
)
def test_only_what_is_meant_is_shown_and_deleted(folder, selection, stays):
    stored(folder)
    found = overview(folder, selection)
    assert found.total.n_replies == 7 - len(stays)
    assert prune(folder, selection) == 7 - len(stays)
    assert left(folder) == stays


def test_age_is_counted_from_when_a_reply_was_stored(folder):
    stored(folder)
    aged(folder, 31, 29, 100, 0)
    selection = Selection(before=time.time() - age_s("30d"))
    assert overview(folder, selection).total.n_replies == 2
    assert prune(folder, selection) == 2
    assert left(folder) == [1, 3, 4, 5, 6]


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), (" 2W ", 1_209_600)])
def test_ages(text, seconds):
    assert age_s(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "1.5d", "30 days", "3y", "9999999999d"])
def test_an_age_that_is_none_is_refused(text):
    with pytest.raises(LedgerError, match=r"--older-than .*: must be a whole number and one of m, h, d, w, e\.g\. 30d"):
        age_s(text)


def test_pruning_gives_the_space_back_to_the_disk(folder):
    path = filled(folder, n=400, backend=GPT)
    filled(folder, n=5, backend=CLAUDE, start=1000)
    before = path.stat().st_size
    assert prune(folder, Selection(model=GPT)) == 400
    assert path.stat().st_size < before / 10
    assert not Path(f"{path}-wal").exists()
    assert overview(folder).total.n_replies == 5


def test_what_was_saved_stays_known_after_pruning(folder):
    stored(folder)
    ledger = Ledger.open(folder)
    ledger.get(key(0))
    ledger.close()
    prune(folder, Selection(model=GPT))
    (gone,) = [share for share in overview(folder).models if share.model == GPT]
    assert (gone.n_replies, gone.saved.hits) == (0, 1)


@pytest.mark.parametrize("rank", [0, 1, 7])
def test_a_ledger_in_use_is_not_pruned(folder, rank):
    stored(folder)
    ledger = Ledger.open(folder, rank=rank)
    for refuse in (refuse_while_in_use, lambda folder: prune(folder, Selection(model="*"))):
        with pytest.raises(LedgerError, match=rf"ledger-rank{rank}\.sqlite3: a run is using this ledger\. Wait until"):
            refuse(folder)
    put_all(ledger, {key(9): REPLY})
    ledger.close()
    assert left(folder) == [0, 1, 2, 3, 4, 5, 6, 9]
    refuse_while_in_use(folder)
    assert prune(folder, Selection(model="*")) == 8


def test_a_run_that_begins_while_a_ledger_is_pruned_gets_a_file_of_its_own(folder):
    from interbench_tasks.ledger_admin import _claims_of_all

    stored(folder)
    held = _claims_of_all(folder)
    ledger = Ledger.open(folder)
    put_all(ledger, {key(9): REPLY})
    assert ledger.get(key(0)).text == "one"
    ledger.close()
    for claim in held:
        claim.release()
    assert (folder / "ledger-rank0-2.sqlite3").exists()


def test_an_old_ledger_is_brought_up_to_date_and_pruned(folder):
    file_of_version_1(folder, n=5)
    assert prune(folder, Selection(before=1.7e9 + 2)) == 2
    assert left(folder) == [2, 3, 4]


def test_everything_at_once_is_refused(folder):
    stored(folder)
    for refuse in (check_selection, lambda selection, folder: prune(folder, selection)):
        with pytest.raises(LedgerError, match=r"say which replies: .*all: --model '\*'"):
            refuse(Selection(), folder)
    assert left(folder) == [0, 1, 2, 3, 4, 5, 6]


def test_a_misspelt_status_is_refused_with_what_there_is(folder):
    stored(folder)
    told = r"lenght: no reply has it \(did you mean 'length'\?\); there are: empty, end_turn, length, stop, unknown"
    with pytest.raises(LedgerError, match=told):
        prune(folder, Selection(statuses=("lenght",)))


def test_a_damaged_file_is_not_pruned_and_told(folder):
    stored(folder)
    garbage(folder / "ledger-rank0.sqlite3")
    with pytest.raises(LedgerError, match=r"ledger-rank0\.sqlite3: damaged .*nothing of it was deleted"):
        prune(folder, Selection(model="*"))


# --- export ---


def test_every_reply_is_exported_once_with_what_is_known_of_it(folder):
    stored(folder)
    problems: list[str] = []
    lines = [json.loads(line) for line in export_lines(folder, problems)]
    assert problems == []
    assert [line["key"] for line in lines] == [key(number) for number in range(7)]
    first = lines[0]
    assert time.time() - 60 < time.mktime(time.strptime(first["time"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert {name: first[name] for name in first if name != "time"} == {
        "key": key(0),
        "model": GPT,
        "api_model": "gpt-4o-2024-08-06",
        "finish_reason": "stop",
        "text": "one",
        "reasoning": "Whiskers.",
        "usage": {"calls": 1, "input_tokens": 812, "output_tokens": 5, "reasoning_tokens": 3},
    }
    assert lines[5]["usage"]["input_tokens"] is None


def test_a_reply_that_two_runs_paid_for_is_exported_once(folder):
    for rank in (0, 1):
        ledger = Ledger.open(folder, rank=rank)
        put_all(ledger, {key(1): REPLY, key(2 + rank): REPLY})
        ledger.close()
    assert [json.loads(line)["key"] for line in export_lines(folder, [])] == [key(1), key(2), key(3)]


SECRET = "sk-test-0123456789abcdef"


def test_no_secret_is_exported_whatever_a_model_says(folder, monkeypatch):
    monkeypatch.setenv("MY_SERVICE_API_KEY", "correct-horse-battery")
    ledger = Ledger.open(folder)
    odd = Reply(
        text=f"Your key is {SECRET}.",
        reasoning="token: correct-horse-battery",
        model=f"m {SECRET}",
        finish_reason=SECRET,
    )
    put_all(ledger, {key(1): odd, key(2): Reply(text='{"api_key": "hunter2-hunter2"}')}, f"b:{SECRET}")
    ledger.close()
    text = "\n".join(export_lines(folder, []))
    assert not [secret for secret in (SECRET, "correct-horse", "hunter2") if secret in text]
    assert "[redacted]" in text
    assert [json.loads(line)["key"] for line in text.splitlines()] == [key(1), key(2)]


@pytest.mark.parametrize("text", ["", "a\nb\r\n\u2028c", "日本語 🙂", "\ud800", "\0", '"quoted" \\ back'], ids=ascii)
def test_any_text_is_one_line_of_valid_json(folder, text):
    ledger = Ledger.open(folder)
    put_all(ledger, {key(1): Reply(text=text)})
    ledger.close()
    (line,) = export_lines(folder, [])
    assert json.loads(line)["text"] == text
    assert line.encode().count(b"\n") == 0


def test_a_damaged_reply_is_left_out_and_told(folder):
    path = filled(folder)
    change_letter(path, b"reply 17 ", b"reply 71 ")
    problems: list[str] = []
    assert len(list(export_lines(folder, problems))) == 199
    assert problems == [f"{path}: 1 replies are damaged and were left out."]


def test_an_export_is_whole_or_not_there(folder, tmp_path):
    stored(folder)
    out = tmp_path / "out.jsonl"
    assert write_export(out, export_lines(folder, [])) == 7
    assert len(out.read_text().splitlines()) == 7
    with pytest.raises(LedgerError, match=r"out\.jsonl: exists already"):
        write_export(out, export_lines(folder, []))

    def breaks():
        yield "{}"
        raise LedgerError("broken")

    with pytest.raises(LedgerError, match="broken"):
        write_export(tmp_path / "half.jsonl", breaks())
    with pytest.raises(LedgerError, match="cannot be written: No such file or directory; name another file with --out"):
        write_export(tmp_path / "nowhere" / "x.jsonl", iter(["{}"]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "out.jsonl"]
