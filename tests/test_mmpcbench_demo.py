"""The items of `mmpcbench_demo`, and the task through the harness's own command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from loguru import logger
from PIL import Image

from interbench_tasks.critique_votes import STRATEGIES, Vote
from interbench_tasks.flawed_items import FlawedItem, item_from
from interbench_tasks.flaws import SUBTYPES
from interbench_tasks.metrics.pcq import pcq
from tests.cli import harness_results, interbench, lmms_eval, metrics, records
from tests.critiques import naive_item

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = Path(str(resources.files("interbench_tasks.task_yamls"))) / "mmpcbench" / "demo"
ROWS = [json.loads(line) for line in (SHIPPED / "items.jsonl").read_text(encoding="utf-8").splitlines()]
LEVELS = ("light", "medium", "severe")


# --- the items ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(ROOT / "scripts" / "draw_mmpcbench_demo.py"), "--out", str(folder)]
    subprocess.run(command, check=True, timeout=120)
    return folder


def test_the_script_writes_exactly_what_is_shipped(written):
    assert (written / "items.jsonl").read_bytes() == (SHIPPED / "items.jsonl").read_bytes()
    again = {path.relative_to(written).as_posix() for path in written.rglob("*.png")}
    assert again == {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*.png")}
    for name in sorted(again):
        with Image.open(written / name) as new, Image.open(SHIPPED / name) as old:
            assert new.convert("RGB").tobytes() == old.convert("RGB").tobytes(), name


def test_nothing_but_items_pictures_and_readme_is_shipped():
    found = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    assert found == {"items.jsonl", "README.md", *(path for row in ROWS for path in row["images"])}
    assert sum((SHIPPED / path).stat().st_size for path in found) < 700_000


def test_there_are_8_items_of_each_subcategory_24_valid_and_12_dual_ones():
    items = [item_from(row) for row in ROWS]
    assert all(isinstance(item, FlawedItem) for item in items)
    kinds = Counter(item.kind for item in items)
    assert kinds == {"flawed": 96, "valid": 24, "dual": 12}
    assert {code: Counter(item.category for item in items)[code] for code in SUBTYPES} == dict.fromkeys(SUBTYPES, 8)
    assert len({item.category for item in items if item.kind == "dual"}) == 3
    assert len({row["id"] for row in ROWS}) == len(ROWS)


def test_some_are_chinese_and_say_so_in_their_words():
    def is_chinese(text):
        return any("\u4e00" <= letter <= "\u9fff" for letter in text)

    for row in ROWS:
        text = row["T"] + row["Q"] + "".join(gold["defect"] for gold in golds(row))
        assert is_chinese(text) == (row["lang"] == "zh"), row["id"]
    assert 20 <= sum(row["lang"] == "zh" for row in ROWS) <= 50


def golds(row):
    return row["gold"] if isinstance(row["gold"], list) else [row["gold"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_an_item_shows_what_its_defect_says(row):
    pictures = len(row["images"])
    assert pictures == {"PC.inter_visual": 2, "MP.missing_image": 0}.get(str(row["subtype"]), 1)
    assert (row["T"] + row["Q"] == "") == (row["subtype"] == "MP.missing_instruction")
    for gold in golds(row):
        assert gold["defect"]
        assert gold["fix"]
        assert gold["defect"] not in row["T"] + row["Q"]
    assert not any("{" in text or "}" in text for text in (row["T"], row["Q"], *(g["fix"] for g in golds(row))))
    assert ("answer" in row) == (row["subtype"] == "valid" or not isinstance(row["subtype"], list))


def test_the_valid_versions_can_be_answered_from_the_picture():
    for row in ROWS:
        if row["subtype"] == "MP.missing_image":
            values = [int(word) for word in "".join(c if c.isdigit() else " " for c in golds(row)[0]["fix"]).split()]
            assert int(row["answer"]) == max(values) - min(values)


def test_masks_of_one_picture_are_nested_and_their_shares_in_range():
    ranges = {"light": (0.2, 0.305), "medium": (0.4, 0.505), "severe": (0.7, 0.805)}
    groups = {}
    for row in ROWS:
        if str(row["subtype"]).startswith("MP.visual"):
            level = row["subtype"].removeprefix("MP.visual_")
            groups.setdefault(row["cluster"], {})[level] = row["inject"]["params"]
            low, high = ranges[level]
            share = row["inject"]["params"]["mask"]
            assert low <= bin(int(share, 16)).count("1") / 256 == pytest.approx(row["inject"]["params"]["p"], abs=1e-4)
            assert row["inject"]["params"]["p"] <= high
    assert len(groups) == 8
    for own in groups.values():
        masks = [int(own[level]["mask"], 16) for level in LEVELS]
        assert masks[0] & masks[1] == masks[0]
        assert masks[1] & masks[2] == masks[1]
        assert len({own[level]["op"] for level in LEVELS}) == 1
    assert {own["light"]["op"] for own in groups.values()} == {"blur", "pixelate", "warp"}


def shown(path):
    with Image.open(SHIPPED / path) as picture:
        return picture.convert("RGB")


def test_pictures_outside_the_mask_are_as_they_were():
    """Severe contains light: where neither was worked on, both show the same."""
    clusters = {row["cluster"] for row in ROWS if str(row["subtype"]).startswith("MP.visual")}
    for cluster in sorted(clusters):
        own = {row["subtype"].removeprefix("MP.visual_"): row for row in ROWS if row.get("cluster") == cluster}
        with (
            Image.open(SHIPPED / own["light"]["images"][0]) as one,
            Image.open(SHIPPED / own["severe"]["images"][0]) as other,
        ):
            light, severe = one.convert("RGB"), other.convert("RGB")
        free = f"{~int(own['severe']['inject']['params']['mask'], 16) & (1 << 256) - 1:0256b}"
        assert light.size == severe.size == (320, 224)
        for patch in (place for place, bit in enumerate(free) if bit == "1"):
            y, x = divmod(patch, 16)
            box = (20 * x, 14 * y, 20 * x + 20, 14 * y + 14)
            difference = zip(light.crop(box).tobytes(), severe.crop(box).tobytes(), strict=True)
            assert max(abs(a - b) for a, b in difference) <= 24, own["light"]["id"]  # 64 colours each
        assert light.tobytes() != severe.tobytes()


# --- the task -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's folder, and what was printed; with the simulated judges that the task names."""
    folder = tmp_path_factory.mktemp("mmpcbench_demo")
    arguments = "accuracy=0.8,detect=0.6,think=0.7,alarm=0.2"
    done = lmms_eval(
        "--model", "interbench_simulated", "--model_args", arguments, "--tasks", "mmpcbench_demo",
        "--log_samples", "--output_path", folder,
    ).check()  # fmt: skip
    return folder, done.output


def raw_votes(verdicts):
    """Each judge's vote, from the text of its last reply alone; None where that is no JSON."""
    votes = []
    for verdict in verdicts:
        try:
            said = json.loads(verdict["reply"]["text"])
        except ValueError:
            votes.append(None)
            continue
        numbers = float(said["diag"]), said.get("strategy", "none"), float(said.get("strategy_score", 0))
        votes.append(Vote(True, *numbers) if said["detected"] else Vote(False))
    return votes


def flawed(kept):
    return [record for record in kept if "+" not in record["category"] and record["category"] != "valid"]


@pytest.mark.integration
def test_the_demo_runs_offline_and_says_what_is_simulated(demo):
    folder, output = demo
    table = harness_results(folder)["mmpcbench_demo"]
    assert table["N"] == 132
    assert len([name for name in table if "stderr" not in name and name not in ("alias", "name", "sample_len")]) <= 26
    found = metrics(folder)
    assert {"eda", "pcq", "dp", "se"} <= found.keys()
    assert (table["eda"], table["pcq.ci95_low"]) == (found["eda"]["value"], found["pcq"]["ci95"][0])
    assert "pcq.ci95_high" in output
    manifest = json.loads(next(folder.rglob("manifest.json")).read_text())
    assert all("simulated" in model["name"] for model in manifest["models"].values())
    assert len(manifest["models"]) == 4


@pytest.mark.integration
def test_the_metrics_equal_what_the_judges_said(demo):
    """From the judges' raw words and naive formulas; where a judge is missing, only a decided item counts."""
    folder, _ = demo
    found, kept = metrics(folder), records(folder)
    panels = [raw_votes(record["turns"][0]["verdicts"]) for record in flawed(kept)]
    assert 0 < sum(None in votes for votes in panels) < 10  # the third judge cannot always be read
    assert found["n_flawed"]["value"] == len(panels) == 96
    items = [decided(votes) for votes in panels]
    hit = [item for item in items if item["d"]]
    expected = {
        "eda": mean([item["d"] for item in items]),
        "dp": mean([item["dp"] for item in hit]),
        "se": mean([item["se"] for item in hit]),
    }
    expected["pcq"] = pcq(*expected.values())
    for strategy in (*STRATEGIES, "split"):
        shares = [None if item["strategy"] is None else item["strategy"] == strategy for item in hit]
        expected[f"strategy.{strategy}"] = mean(shares)
    assert {name: found[name]["value"] for name in expected} == pytest.approx(expected)
    thoughts = [raw_votes(record["turns"][0]["reasoning_verdicts"]) for record in flawed(kept)]
    pairs = [(decided(r)["d"], item["d"]) for r, item in zip(thoughts, items, strict=True)]
    assert found["eda_r"]["count"] == sum(r for r, _ in pairs if r is not None)
    assert found["ddr"]["count"] == sum(f == 0 for r, f in pairs if r and f is not None)


def mean(values):
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known)


def decided(votes):
    """What three judges say, of whom the third may be missing."""
    known = [vote for vote in votes if vote is not None]
    if len(known) == 3:
        d, dp, strategy, se = naive_item(known)
        return {"d": d, "dp": dp, "strategy": strategy, "se": se}
    assert len(known) == 2
    said = [vote for vote in known if vote.detected]
    if len(said) < 2:
        return {"d": None if said else 0, "dp": None, "strategy": None, "se": None}
    agree = said[0].strategy == said[1].strategy
    found = {"d": 1, "dp": mean([vote.diag for vote in said]), "strategy": said[0].strategy if agree else None}
    return found | {"se": mean([vote.score for vote in said]) if agree else None}


@pytest.mark.integration
def test_the_receiver_is_told_nothing_of_the_defect_and_score_gives_the_same_again(demo):
    folder, _ = demo
    shown = {row["id"]: row for row in ROWS}
    for record in records(folder):
        for turn in record["turns"]:
            if turn.get("round", 0) == 0:
                text = json.dumps(turn["user"], ensure_ascii=False)
                assert not any(gold["defect"] in text for gold in golds(shown[record["episode_id"]]))
    first = metrics(folder)
    interbench("score", folder).check()
    assert metrics(folder) == first
    (path,) = folder.rglob("metrics.json")
    categories = json.loads(path.read_text())["categories"]
    assert set(SUBTYPES) <= categories.keys()
    assert categories["BC"]["eda"]["n"] == 8


@pytest.mark.integration
def test_a_subset_is_asked_in_further_styles_and_who_asked_back_is_told(demo):
    folder, _ = demo
    kept = records(folder)
    branches = Counter(turn.get("branch", "") for record in kept for turn in record["turns"])
    assert branches["formal"] == branches["concise"] == 36
    found = metrics(folder)
    assert found["shift_eda.formal"]["n"] + found["shift_eda.formal"]["unscored"] == 36
    assert 0 < branches["clarification"] == found["solved_after_clarification"]["n"]


# --- planted truth ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def perfect(tmp_path_factory):
    """The same task played with judges that never err; records and table."""
    from interbench_tasks.backends.simulated import SimulatedBackend
    from tests.critique_runs import played

    folder = tmp_path_factory.mktemp("perfect")
    judges = [{"backend": "simulated", "model": name} for name in ("a", "b", "c")]
    receiver = SimulatedBackend("planted", detect=0.6, think=0.5, alarm=0.25, accuracy=0.8)
    return played(folder, ROWS, receiver, pictures_from=SHIPPED, judges=judges)


def marks(text):
    """The planted truth of a reply: its challenge's diagnosis, strategy, score and parts; None where there is none."""
    from interbench_tasks.backends.simulated_critique import _MARK

    found = _MARK.search(text)
    return None if found is None else found.groups()


def test_with_perfect_judges_the_metrics_equal_the_planted_truth(perfect):
    kept, table = perfect
    answers = {r.episode_id: r.turns[0].reply.text.partition("</think>")[2] for r in kept}
    planted = {
        kind: [marks(answers[r.episode_id]) for r in kept if kind_of_record(r) == kind]
        for kind in ("flawed", "dual", "valid")
    }
    hit = [mark for mark in planted["flawed"] if mark]
    eda, dp, se = len(hit) / 96, *(sum(int(mark[place]) for mark in hit) / len(hit) for place in (0, 2))
    assert {name: table[name].value for name in ("eda", "dp", "se", "pcq")} == pytest.approx(
        {"eda": eda, "dp": dp, "se": se, "pcq": pcq(eda, dp, se)}
    )
    for strategy in ("correction", "clarification", "refusal"):
        assert table[f"strategy.{strategy}"].count == sum(mark[1] == strategy for mark in hit)
    assert table["meda"].count == sum(mark is not None for mark in planted["dual"])
    parts = [len(mark[3].split("+")) if mark and mark[3] else 0 for mark in planted["dual"]]
    assert table["type_coverage"].value == pytest.approx(sum(parts) / 24)
    assert table["all_detected"].count == parts.count(2)
    assert table["far_v"].count == sum(mark is not None for mark in planted["valid"])
    assert table["urr_v"].count == sum(mark is not None and mark[1] == "refusal" for mark in planted["valid"])
    false, true = table["far_v"].count, len(hit)
    assert table["precision"].value == pytest.approx(true / (true + false))


def test_with_perfect_judges_consistency_is_what_reasoning_and_answer_say(perfect):
    kept, table = perfect
    pairs = []
    for record in kept:
        if kind_of_record(record) == "flawed":
            thought, _, said = record.turns[0].reply.text.partition("</think>")
            pairs.append((marks(thought), marks(said)))
    r, both = [pair for pair in pairs if pair[0]], [pair for pair in pairs if all(pair)]
    assert table["eda_r"].count == len(r)
    assert table["ddr"].value == pytest.approx(sum(pair[1] is None for pair in r) / len(r))
    assert table["dqd"].value == pytest.approx(sum(int(a[0]) - int(b[0]) for a, b in both) / len(both))


def kind_of_record(record):
    from interbench_tasks.flaws import kind_of

    return kind_of(record.category)


def test_a_judge_of_the_models_family_is_warned_of():
    from interbench_tasks.backends.simulated import SimulatedBackend
    from interbench_tasks.harness.playing import say_who_is_related
    from tests.critique_runs import options_of

    told = []
    sink = logger.add(told.append, format="{level} {message}")
    try:
        for model in ("gpt-mini", "claude-x"):
            names = [{"backend": "simulated", "model": name} for name in ("gpt-5.2", "gemini-3")]
            say_who_is_related(SimulatedBackend(model), options_of({"judges": names}))
    finally:
        logger.remove(sink)
    (warning,) = told
    assert warning.startswith("WARNING interbench: simulated:gpt-5.2 judged simulated:gpt-mini")
    assert "(gpt)" in warning
