"""What really reaches servers in a critique: the item without a hint, judges with pictures, and how many at once."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.conversation_runs import server_backend
from tests.critique_runs import played
from tests.servers.openai_server import OpenAIServer, PlantedReply
from tests.test_mmpcbench_demo import ROWS, SHIPPED

SAID = {"detected": True, "diag": 1, "strategy": "clarification", "strategy_score": 2, "identified": ["first"]}
SAID |= {"refuses_whole_task": False, "false_alarm": False, "reason": "so"}


@pytest.fixture(autouse=True)
def without_ledger(monkeypatch):
    monkeypatch.setenv("INTERBENCH_LEDGER", "off")


def answer(request):
    """A model that always asks back, and a judge that gives everything the same values."""
    text = request.messages[-1].text
    nonce = re.search(r"nonce is the word (\w+)", text)
    if nonce is None:
        return "Which one do you mean?"
    keys = re.search(r"in exactly this order: ([\w, ]+)\.", text).group(1).split(", ")
    return json.dumps({key: nonce.group(1) if key == "nonce" else SAID[key] for key in keys})


def judges_at(server, *models, **options):
    return [{"backend": "openai", "model": model, "base_url": server.url, **options} for model in models]


def test_judges_get_the_same_pictures_as_the_model_and_only_they_are_told_what_is_wrong(tmp_path):
    rows = [row for row in ROWS if row["id"].endswith("_prices_1")]
    with OpenAIServer(answer) as server:
        records, table = played(
            tmp_path,
            rows,
            server_backend(server.url, "model"),
            pictures_from=SHIPPED,
            judges=judges_at(server, "a", "b"),
        )
        assert not server.violations
        log = list(server.log)
    by_model = {name: [one for one in log if one.model == name] for name in ("model", "a", "b")}
    assert {name: len(found) for name, found in by_model.items()} == dict.fromkeys(("model", "a", "b"), len(rows))
    shown = sorted(sorted(p.pixels for p in one.messages[-1].pictures) for one in by_model["model"])
    for name in ("a", "b"):
        assert sorted(sorted(p.pixels for p in one.messages[-1].pictures) for one in by_model[name]) == shown
    golds = [
        gold["defect"] for row in rows for gold in (row["gold"] if isinstance(row["gold"], list) else [row["gold"]])
    ]
    for one in by_model["model"]:
        assert not any(gold in one.messages[-1].text for gold in golds)
    for gold in golds:
        assert sum(gold in one.messages[-1].text for one in by_model["a"]) >= 1
    assert {record.status for record in records} == {"finished"}
    assert (table["eda"].value, table["dp"].value, table["se"].value) == (1, 1, 2)
    assert table["strategy.clarification"].value == 1


def test_reasoning_that_a_server_returns_apart_is_judged(tmp_path):
    def thinks(request):
        said = answer(request)
        apart = {"reasoning_content": "Two readings."}
        return PlantedReply(text=said, message=apart) if said.startswith("Which") else said

    with OpenAIServer(thinks) as server:
        records, table = played(
            tmp_path,
            [ROWS[0]],
            server_backend(server.url, "model"),
            pictures_from=SHIPPED,
            judges=judges_at(server, "a", "b"),
        )
    assert records[0].turns[0].reply.reasoning == "Two readings."
    assert (table["eda_r"].value, table["dqd"].value) == (1, 0)


@pytest.mark.slow
def test_three_judges_side_by_side_take_little_longer_than_the_servers_own_time(tmp_path):
    """240 items, each a reply and then 3 verdicts, 32 at once at each of 4 models that take 200 ms."""
    rows = [
        {"id": f"i{n}", "subtype": "BC", "Q": f"How many in {n}?", "gold": {"defect": "d", "fix": "f"}}
        for n in range(240)
    ]
    with OpenAIServer(answer, latency_s=0.2) as server:
        judges = judges_at(server, "a", "b", "c", max_concurrency=32)
        receiver = server_backend(server.url, "model", max_concurrency=32)
        started = time.perf_counter()
        played(tmp_path, rows, receiver, judges=judges)
        wall = time.perf_counter() - started
        requests = server.requests
    assert requests == 4 * 240
    ideal = (240 / 32 + 1) * 0.2  # the last verdicts follow the last replies
    assert wall < 3 * ideal, f"{wall:.2f} s, ideal {ideal:.2f} s"
