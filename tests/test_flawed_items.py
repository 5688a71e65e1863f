"""Items with defects: what a row may hold, other layouts, styles and subsets, and ISEval's rows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from interbench_tasks.config import task_options_from
from interbench_tasks.conversations import reader_from
from interbench_tasks.errors import ConfigError, DataError
from interbench_tasks.flawed_items import FlawedItem, item_from
from interbench_tasks.flawed_reader import FlawedItemReader, stratified
from interbench_tasks.flaws import SUBTYPES
from interbench_tasks.iseval import SUBTYPE_OF, iseval_rows, write_items
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.rows import load_rows
from tests.cli import interbench

ROOT = Path(__file__).resolve().parents[1]
ISEVAL = Path(os.environ.get("INTERBENCH_TEST_DATA", ROOT.parent / "shared" / "data")) / "iseval"
needs_iseval = pytest.mark.skipif(not ISEVAL.exists(), reason="ISEval is not there: set INTERBENCH_TEST_DATA")
GOLD = {"defect": "It has two readings.", "where": "the question", "fix": "I mean the first."}


def row(number=0, **changes):
    given = {"id": f"i{number}", "subtype": "EE.ambiguity", "T": "T", "Q": f"Q{number}?", "images": [], "gold": GOLD}
    return {key: value for key, value in {**given, **changes}.items() if value is not None}


def reader(folder, rows, **block):
    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    config = {
        "task": "t",
        "generation_kwargs": {"until": [], "max_new_tokens": 16, "temperature": 0},
        "metadata": {"interbench": {"protocol": "critique", "roles": {"judge": "simulated:j"}, **block}},
    }
    options = task_options_from(config, where="t.yaml", offers=offers_from(build_plugin_manager()))
    return reader_from(load_rows(str(path), name=None, split="test", options={}), options)


# --- rows ---------------------------------------------------------------------------------------------------------


def test_an_item_becomes_an_episode_without_a_hint_in_it(tmp_path):
    Image.new("RGB", (8, 6), "red").save(tmp_path / "a.png")
    made = reader(tmp_path, [row(images=["a.png"], cluster="c", lang="en", answer="12")])
    assert isinstance(made, FlawedItemReader)
    episode = made.episode(0, 2)
    (picture, text) = episode.question.content
    assert (picture.width, text) == (8, "T\n\nQ0?")
    assert (episode.id, episode.doc_id, episode.repeat, episode.cluster) == ("i0", 0, 2, "c")
    assert episode.category == episode.target == "EE.ambiguity"
    assert episode.extra["defects"] == "It has two readings. (where: the question)"
    assert (episode.extra["fix"], episode.extra["answer"]) == ("I mean the first.", "12")
    assert episode.questions == ()
    assert made.identity(0) == ("i0", "EE.ambiguity", "c")


@pytest.mark.parametrize(("text", "query", "shown"), [("T", "", "T"), ("", "Q?", "Q?"), ("", "", None)])
def test_an_empty_part_leaves_no_gap(tmp_path, text, query, shown):
    Image.new("RGB", (8, 6), "red").save(tmp_path / "a.png")
    content = reader(tmp_path, [row(T=text, Q=query, images="a.png")]).episode(0, 0).question.content
    assert [part for part in content if isinstance(part, str)] == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("subtype", "gold", "category", "kind"),
    [
        ("valid", None, "valid", "valid"),
        (None, None, "valid", "valid"),
        ([], [], "valid", "valid"),
        ("Cross-Modal Contradiction", GOLD, "PC.cross_modal", "flawed"),
        (["BC", "ambiguity"], [{"defect": "b"}, {"defect": "a"}], "EE.ambiguity+BC", "dual"),
        ("BC+EE.ambiguity", [{"defect": "b"}, {"defect": "a"}], "EE.ambiguity+BC", "dual"),
    ],
)
def test_a_subcategory_decides_the_kind_and_two_come_in_a_fixed_order(subtype, gold, category, kind):
    item = item_from(row(subtype=subtype, gold=gold))
    assert isinstance(item, FlawedItem), item
    assert (item.category, item.kind) == (category, kind)
    if kind == "dual":
        assert [one.defect for one in item.gold] == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"subtype": "EE.ambigous"}, r"subtype = 'EE.ambigous' is unknown \(did you mean 'EE.ambiguity'\?\)"),
        ({"subtype": ["BC", "EE.ambiguity", "MP.mismatch"], "gold": [GOLD, GOLD]}, "at most 2 defects"),
        ({"subtype": ["BC", "BC"], "gold": [GOLD, GOLD]}, "BC is there twice"),
        ({"gold": []}, "gold: 0 for 1 subcategories"),
        ({"subtype": "valid"}, "gold: 1 for 0 subcategories"),
        ({"gold": {"where": "x"}}, r"gold\[0\].defect is missing"),
        ({"gold": {"defect": ""}}, r"gold\[0\].defect"),
        ({"gold": {**GOLD, "reason": "x"}}, r"gold\[0\].reason is no known key"),
        ({"gold": [GOLD] * 3}, "gold holds too many"),
        ({"images": ["a.png"] * 6}, "images holds too many"),
        ({"T": "", "Q": " "}, "T, Q, images are all empty"),
        ({"type": "PC"}, "type = 'PC', but the subcategory is of type EE"),
        ({"question": "x"}, "question is no known key"),
        ({"id": None}, "id is missing"),
        ({"id": ""}, "id = ''"),
        ({"Q": ["x"]}, r"Q = \['x'\]"),
    ],
)
def test_every_mistake_in_a_row_is_told_with_its_line(tmp_path, changes, told):
    with pytest.raises(DataError, match=told) as raised:
        reader(tmp_path, [row(1), row(2, **changes)])
    assert "items.jsonl, line 2, id" in str(raised.value)


@pytest.mark.parametrize("given", ["EE", "Expression Error", "expression error", None])
def test_a_type_may_be_left_out_or_be_the_right_one(given):
    assert isinstance(item_from(row(type=given)), FlawedItem)


def test_a_mistake_of_many_rows_is_told_once_and_all_mistakes_at_once(tmp_path):
    rows = [row(n, subtype="EE.typo") for n in range(40)] + [row(41, gold=[]), row(42), row(42)]
    with pytest.raises(DataError) as raised:
        reader(tmp_path, rows)
    told = str(raised.value)
    assert told.count("EE.typo") == 1
    assert "also in 39 other rows" in told
    assert "gold: 0 for 1 subcategories" in told
    assert "line 43, id 'i42': key 'id' is also that of line 42" in told


def test_a_missing_picture_fails_its_own_episode_only(tmp_path):
    made = reader(tmp_path, [row(0, images=["no.png"]), row(1)])
    with pytest.raises(DataError, match=r"id 'i0', images\[0\].*no\.png"):
        made.episode(0, 0)
    assert made.episode(1, 0).id == "i1"


# --- other layouts ------------------------------------------------------------------------------------------------

MAPPING = {"id": "pid", "subtype": ["kind", "sub"], "Q": "prompt", "images": "image", "gold.defect": "why.text"}
THEIRS = {"pid": 7, "sub": "Ambiguity", "prompt": "How?", "why": {"text": "unclear"}, "other": 1}


def test_another_layout_is_read_by_a_table_of_names(tmp_path):
    episode = reader(tmp_path, [THEIRS], mapping=MAPPING).episode(0, 0)
    assert (episode.id, episode.category, episode.raw_question) == ("7", "EE.ambiguity", "How?")
    assert episode.extra["defects"] == "unclear"


@pytest.mark.parametrize(("lost", "key"), [("sub", "subtype"), ("prompt", "Q"), ("why", "gold.defect")])
def test_an_unknown_layout_fails_loudly_with_the_columns_there_are(tmp_path, lost, key):
    theirs = {name: value for name, value in THEIRS.items() if name != lost}
    with pytest.raises(DataError) as raised:
        reader(tmp_path, [theirs, theirs], mapping=MAPPING)
    told = str(raised.value)
    assert f"no column for '{key}'; looked for" in told
    assert f"it has: {', '.join(theirs)}" in told
    assert told.count("looked for") == 1
    assert f"{key}: [its_name]" in told


def test_a_valid_row_of_another_layout_needs_no_defect(tmp_path):
    theirs = {"pid": 8, "sub": "valid", "prompt": "How?"}
    assert reader(tmp_path, [theirs], mapping=MAPPING).episode(0, 0).extra["kind"] == "valid"


def test_a_wrong_key_of_a_mapping_is_told_with_its_near_miss(tmp_path):
    with pytest.raises(ConfigError, match=r"'gold.defekt' is no key of an item \(did you mean 'gold.defect'\?\)"):
        reader(tmp_path, [THEIRS], mapping={"gold.defekt": "why"})


def test_a_data_set_of_the_hub_is_read_with_pictures_as_they_are(tmp_path):
    import datasets

    Image.new("RGB", (8, 6), "red").save(tmp_path / "a.png")
    rows = [{**row(n, gold=None), "defect": "d", "images": [str(tmp_path / "a.png")]} for n in range(20)]
    features = datasets.Features({name: datasets.Value("string") for name in ("id", "subtype", "T", "Q", "defect")})
    features["images"] = datasets.List(datasets.Image())
    datasets.Dataset.from_list(rows, features=features).save_to_disk(str(tmp_path / "saved"))
    config = {
        "task": "t",
        "generation_kwargs": {"until": [], "max_new_tokens": 16, "temperature": 0},
        "metadata": {
            "interbench": {
                "protocol": "critique",
                "roles": {"judge": "simulated:j"},
                "mapping": {"gold.defect": "defect"},
                "more_styles": ["formal"],
                "subset": 5,
            }
        },
    }
    options = task_options_from(config, where="t.yaml", offers=offers_from(build_plugin_manager()))
    made = reader_from(load_rows(str(tmp_path / "saved"), name=None, split="test", options={}), options)
    episodes = [made.episode(n, 0) for n in range(20)]
    assert {len(one.question.pictures) for one in episodes} == {1}
    assert sum(bool(one.questions) for one in episodes) == 5


# --- styles and subsets -------------------------------------------------------------------------------------------


def test_a_seeded_stratified_subset_is_asked_in_further_styles(tmp_path):
    rows = [row(n, subtype=("EE.ambiguity", "BC", "valid")[n % 3 if n < 30 else 0]) for n in range(60)]
    for one in rows:
        one["gold"] = [] if one["subtype"] == "valid" else GOLD
    styles = {"more_styles": ["formal", "concise"], "subset": 10}

    def asked(seed):
        made = reader(tmp_path, rows, **styles, subset_seed=seed)
        return [episode.id for n in range(60) if (episode := made.episode(n, 0)).questions]

    chosen = [asked(0), asked(0), asked(1)]
    assert chosen[0] == chosen[1] != chosen[2]
    kinds = [rows[int(name[1:])]["subtype"] for name in chosen[0]]
    assert (kinds.count("EE.ambiguity"), kinds.count("BC"), kinds.count("valid")) == (8, 2, 0)
    made = reader(tmp_path, rows, **styles)
    episode = made.episode(int(chosen[0][0][1:]), 0)
    assert [question.id for question in episode.questions] == ["formal", "concise"]
    shown = [question.message.text for question in episode.questions]
    assert all(episode.question.text in text for text in shown)
    assert not any(
        word in " ".join(shown).casefold() for word in ("wrong", "error", "flaw", "missing", "careful", "check")
    )


def test_the_whole_set_may_be_asked_in_one_other_style(tmp_path):
    episode = reader(tmp_path, [row()], style="concise", prompts={"concise": "{{ query }} ({{ n_pictures }})"}).episode(
        0, 0
    )
    assert (episode.question.text, episode.questions) == ("Q0? (0)", ())


def test_a_stratified_sample_gives_each_stratum_its_share():
    strata = {"a": range(7), "b": range(10, 13), "c": range(20, 21)}
    for size in range(13):
        found = stratified(strata, size, 1)
        assert sum(map(len, found.values())) == min(size, 11)
        for name, rows in found.items():
            assert set(rows) <= set(strata[name])
            assert abs(len(rows) - min(size, 11) * len(strata[name]) / 11) < 1
    assert stratified({}, 5, 0) == {}


# --- ISEval -------------------------------------------------------------------------------------------------------


@needs_iseval
def test_isevals_175_questions_become_items_with_their_pictures(tmp_path):
    rows = iseval_rows(ISEVAL, valid=True)
    assert sum(one["subtype"] != "valid" for one in rows) == 175
    write_items(rows, ISEVAL, tmp_path / "out" / "iseval.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out" / "iseval.jsonl").read_text("utf-8").splitlines()]
    made = reader(tmp_path, written)
    episodes = [made.episode(n, 0) for n in range(len(written))]
    assert all(len(one.question.pictures) == 1 for one in episodes)
    kinds = {row["extra"]["conflict_type"] for row in written if row["subtype"] != "valid"}
    assert kinds == set(SUBTYPE_OF)
    assert len({one.id for one in episodes}) == len(episodes)


@needs_iseval
def test_a_converted_file_beside_the_pictures_names_them_from_there(tmp_path):
    folder = tmp_path / "iseval"
    folder.mkdir()
    (folder / "images").symlink_to(ISEVAL / "images")
    lines = (ISEVAL / "test.jsonl").read_text(encoding="utf-8").splitlines()[:3]
    (folder / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = interbench("convert", "iseval", folder, folder / "items.jsonl", "--valid").check()
    assert "3 flawed items" in done.output
    assert "lmms-eval --tasks iseval_local" in done.output


ISEVAL_ROW = {
    "pid": 1,
    "ill_query": "When?",
    "normal_query": "Where?",
    "conflict_type": "lacks_condition",
    "conflict": {"original_premise": "p", "recomposed_premise": "q", "conflict_reason": "r"},
    "image_path": "images/a.jpg",
    "meta_info": {"options": ["one", "two"], "final_answer": "B"},
}


def written(folder, *rows):
    path = folder / "test.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in rows), encoding="utf-8")
    return path


def test_an_iseval_row_keeps_what_judges_need_and_its_own_kind(tmp_path):
    flawed, sound = iseval_rows(written(tmp_path, ISEVAL_ROW), valid=True)
    assert (flawed["subtype"], flawed["extra"]["conflict_type"]) == ("BC", "lacks_condition")
    assert flawed["gold"] == {"defect": "r", "where": "q", "fix": "p"}
    assert flawed["answer"] == "two"
    assert (sound["Q"], sound["subtype"], sound["cluster"]) == ("Where?", "valid", flawed["cluster"])
    for one in (flawed, sound):
        assert isinstance(item_from(one), FlawedItem)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"conflict_type": "new_kind"}, "conflict_type = 'new_kind' is unknown"),
        ({"conflict": None}, "lacks conflict"),
        ({"ill_query": None}, "it has: pid, normal_query"),
    ],
)
def test_a_row_that_is_none_of_isevals_is_told(tmp_path, change, told):
    bad = {key: value for key, value in {**ISEVAL_ROW, **change}.items() if value is not None}
    with pytest.raises(DataError, match=told) as raised:
        iseval_rows(written(tmp_path, ISEVAL_ROW, bad))
    assert "test.jsonl, line 2" in str(raised.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        iseval_rows(tmp_path / "no.jsonl")
    with pytest.raises(DataError, match="holds no rows"):
        iseval_rows(written(tmp_path))
    (tmp_path / "test.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="no valid JSON"):
        iseval_rows(tmp_path)


def test_every_kind_of_iseval_has_a_subcategory_of_ours():
    assert set(SUBTYPE_OF.values()) <= set(SUBTYPES)
