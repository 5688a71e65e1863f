"""Files of conversations: every mistake is told with file, line, id and key; strange layouts are mapped or refused."""

from __future__ import annotations

import json
import random

import pytest

from interbench_tasks.abilities import ABILITIES
from interbench_tasks.config import task_options_from
from interbench_tasks.conversation_mapping import canonical_from, canonical_keys
from interbench_tasks.conversations import reader_from
from interbench_tasks.errors import ConfigError, DataError
from interbench_tasks.rows import DataSet, load_rows
from interbench_tasks.task_files import own_tasks
from interbench_tasks.yaml_files import config_from_file
from tests.conversation_runs import OFFERS, options_of, row, write_rows

NO_JUDGE = {"rubric": None}


def reader(tmp_path, *rows, **block):
    path = write_rows(tmp_path, rows)
    data = load_rows(str(path), name=None, split="test", options={})
    return reader_from(data, options_of({**NO_JUDGE, **block}))


def changed(part, **changes):
    """A conversation with changes in its first question (`q`) or first turn (`t`)."""
    made = row("a", 3, 1)
    target = made["questions"][0] if part == "q" else made["turns"][0]
    target |= {key: value for key, value in changes.items() if value is not ...}
    for key in [key for key, value in changes.items() if value is ...]:
        del target[key]
    return made


# --- what a row becomes -----------------------------------------------------------------------------------------------


def test_a_row_becomes_an_episode_with_script_and_questions(tmp_path):
    made = row("a", 3, 2, topic="Food", cluster="twins", extra={"modality": "text"})
    episode = reader(tmp_path, made, **{"system": "Be brief."}).episode(0, 2)
    assert (episode.id, episode.doc_id, episode.repeat) == ("a", 0, 2)
    assert (episode.category, episode.cluster, episode.system) == ("Food", "twins", "Be brief.")
    assert episode.extra == {"modality": "text"}
    assert [(turn.user.text, turn.reply) for turn in episode.script] == [
        (f"a: this is fact {i}.", f"a: noted {i}.") for i in range(3)
    ]
    first = episode.questions[0]
    assert (first.id, first.ability, first.format, first.target, first.evidence) == ("q0", "MR", "open", "fact 0", (0,))
    assert first.message.text == first.text == "What is fact 0?"
    assert not first.should_refuse


def test_choices_and_truths_become_letters(tmp_path):
    made = row("a", 1, 0)
    made["questions"] = [
        {"qid": "1", "ability": "CR", "format": "mc", "question": "?", "options": ["red", "blue"], "answer": "blue"},
        {"qid": "2", "ability": "CR", "format": "mc", "question": "?", "options": {"A": "x", "B": "y"}, "answer": "A"},
        {"qid": "3", "ability": "CR", "format": "tf", "question": "?", "answer": False},
        {"qid": "4", "ability": "CR", "format": "tf", "question": "?", "answer": "True"},
    ]
    questions = reader(tmp_path, made).episode(0, 0).questions
    assert [question.target for question in questions] == ["B", "A", "B", "A"]
    assert questions[2].options == {"A": "True", "B": "False"}
    assert questions[0].message.text.startswith('?\nA. red\nB. blue\n\nEnd with a line of the form "Answer: X"')
    assert questions[0].text == "?"


def test_a_question_about_pictures_is_told_how_they_are_numbered(tmp_path):
    asked = reader(tmp_path, changed("q", ability="IM")).episode(0, 0).questions[0]
    assert "numbered from 1" in asked.message.text
    assert "numbered" not in asked.text


def test_refusal_is_what_ar_asks_for_unless_the_row_says_otherwise(tmp_path):
    rows = [
        changed("q", ability="AR", evidence_turns=...),
        {**changed("q", ability="AR", should_refuse=False), "id": "b"},
        {**changed("q", should_refuse=True), "id": "c"},
    ]
    made = reader(tmp_path, *rows)
    assert [made.episode(i, 0).questions[0].should_refuse for i in range(3)] == [True, False, True]


def test_numbers_are_read_as_their_text(tmp_path):
    assert reader(tmp_path, changed("q", answer=1)).episode(0, 0).questions[0].target == "1"
    assert reader(tmp_path, changed("q", qid=7)).episode(0, 0).questions[0].id == "7"


def test_the_prompt_of_a_yaml_replaces_ours(tmp_path):
    prompts = {"question": "[{{ ability }} {{ format }} {{ n_pictures }}] {{ question }}"}
    made = reader(tmp_path, row("a", 1, 1), prompts=prompts)
    assert made.episode(0, 0).questions[0].message.text == "[MR open 0] What is fact 0?"


def test_a_prompt_that_names_what_does_not_exist_is_told_before_a_run():
    with pytest.raises(ConfigError, match="prompts.question uses 'row', which does not exist there"):
        options_of({**NO_JUDGE, "prompts": {"question": "{{ row }}"}})


# --- bad input --------------------------------------------------------------------------------------------------------

ABILITY_LIST = "allowed: IE, CR, IU, IM, MR, AR"
BAD = [
    ({**row("a"), "turns": []}, "turns holds none: a conversation needs at least one"),
    ({**row("a"), "questions": []}, "questions holds none"),
    ({key: value for key, value in row("a").items() if key != "turns"}, "turns is missing"),
    (changed("t", user_text="  "), r"turns\[0\] has neither text nor picture"),
    (changed("t", text="x"), r"turns\[0\].text is no known key.*\n  allowed: extra, images, ref_response, user_text"),
    (changed("q", ability=...), rf"questions\[0\].ability is missing\n  {ABILITY_LIST}"),
    (changed("q", ability="MRR"), rf"ability = 'MRR' is unknown \(did you mean 'MR'\?\)\n  {ABILITY_LIST}"),
    (changed("q", image_ids=[1]), r"questions\[0\].image_ids = 1: the conversation has no picture"),
    (changed("q", evidence_turns=[3]), r"evidence_turns = 3: the conversation has the turns 0 to 2"),
    (changed("q", format="essay"), r"questions\[0\].format = 'essay'"),
    (changed("q", format="mc"), r"questions\[0\].options is missing: format mc needs them"),
    (changed("q", options=["x"]), r"options are there, but the format is open, not mc"),
    (changed("q", format="tf"), r"questions\[0\].answer = 'fact 0'\n  allowed: true, false"),
    (changed("q", answer=" "), r"questions\[0\].answer is empty"),
    (changed("q", answer=...), r"questions\[0\].answer is missing"),
    (changed("q", anwser="x"), r"questions\[0\].anwser is no known key \(did you mean 'answer'\?\)"),
    (changed("q", question=" "), r"questions\[0\].question is empty"),
    (changed("q", ability="IE", items=["Up", "..."]), r"questions\[0\].items\[1\] = '...': has no word or number"),
    (changed("q", ability="IE", items=["the"]), r"questions\[0\].items\[0\] = 'the': has no word or number"),
    (changed("q", image_ids=1), r"questions\[0\].image_ids = 1: must be a list"),
    (changed("t", images="a.png"), r"turns\[0\].images = 'a.png': must be a list"),
    (
        changed("q", format="mc", options=["a dog", "a cat", "a  dog "], answer="A"),
        r"questions\[0\].options = 'a  dog ' stands for A and C: options need different texts",
    ),
    (
        changed("q", format="mc", options={"A": "4", "D": "4"}, answer="A"),
        r"questions\[0\].options = '4' stands for A and D",
    ),
    ({**row("a"), "questions": [*row("a")["questions"], row("a")["questions"][0]]}, r"qid = 'q0' is there twice"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_told_with_file_line_id_and_key(tmp_path, bad, message):
    with pytest.raises(DataError, match=message) as caught:
        reader(tmp_path, row("fine"), bad)
    assert f"{tmp_path}/talks.jsonl, line 2, id 'a': " in str(caught.value)


def test_a_list_whose_entries_are_all_wrong_is_not_called_empty(tmp_path):
    with pytest.raises(DataError) as caught:
        reader(tmp_path, {**row("a"), "turns": [{"role": "user", "content": "hi"}]})
    assert "turns[0].role is no known key" in str(caught.value)
    assert "holds none" not in str(caught.value)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path):
    rows = [changed("q", ability="X", answer=""), row("b"), {**row("b"), "turns": [{"user_text": ""}]}, row("b")]
    with pytest.raises(DataError) as caught:
        reader(tmp_path, *rows)
    told = str(caught.value)
    for part in ("line 1, id 'a'", "ability", "answer", "line 3", "line 4, id 'b': key 'id' is also that of line 2"):
        assert part in told, part


TOGETHER = [
    (changed("q", ability="MRR", answer=...), ["answer is missing", "ability = 'MRR' is unknown"]),
    (changed("q", ability=..., evidence_turns=[7]), ["ability is missing", "evidence_turns = 7"]),
    (changed("q", ability="X", anwser="x"), ["anwser is no known key", "ability = 'X'"]),
    ({**changed("q", ability="X"), "id": ""}, ["id = ''", "ability = 'X'"]),
    ({**changed("t", user_text=" "), "topics": "x"}, ["topics is no known key", "turns[0] has neither text nor"]),
    ({**changed("q", ability="X"), "turns": 3}, ["turns = 3: must be a list", "ability = 'X'"]),
    ({**row("a"), "turns": [{"text": "x"}, {"user_text": ""}]}, ["turns[0].text is no known", "turns[1] has neither"]),
    (
        {**row("a"), "questions": ["what?", changed("q", ability="X")["questions"][0]]},
        ["questions[0]", "ability = 'X'"],
    ),
]


@pytest.mark.parametrize(("bad", "parts"), TOGETHER, ids=[parts[0] for _, parts in TOGETHER])
def test_all_mistakes_of_a_line_are_told_together_whatever_kind_they_are_of(tmp_path, bad, parts):
    with pytest.raises(DataError) as caught:
        reader(tmp_path, bad)
    told = str(caught.value)
    assert all(part in told for part in parts), told
    assert len([line for line in told.splitlines() if "line 1" in line]) == len(parts), told


def test_nothing_is_said_of_a_key_for_what_is_wrong_with_another(tmp_path):
    """Without its format nobody knows whether a question needs options; without turns, which evidence there is."""
    for bad, key in (
        (changed("q", format="essay", options=["x", "y"]), "questions[0].format"),
        (changed("q", format="mc", options=7), "questions[0].options"),
        (
            {k: v for k, v in changed("q", evidence_turns=[2], image_ids=[1]).items() if k != "turns"},
            "turns is missing",
        ),
        (changed("q", qid=...), "questions[0].qid is missing"),
    ):
        with pytest.raises(DataError) as caught:
            reader(tmp_path, bad)
        lines = [line for line in str(caught.value).splitlines() if "line 1" in line]
        assert lines, bad
        assert all(key in line for line in lines), lines


def test_whatever_stands_in_a_line_it_is_an_episode_or_told(tmp_path):
    """Random damage never raises anything but the error that names the line."""
    rng = random.Random(5)
    values = [None, 3, -1, "", "x", [], {}, [1], ["x"], [{}], {"a": "b"}, True, 1.5, [[]], [None]]
    fine = row("a", 3, 2)
    fine["questions"][1] |= {"format": "mc", "options": ["x", "y"], "answer": "A"}
    n_told = 0
    for _ in range(400):
        made = json.loads(json.dumps(fine))
        for _ in range(rng.randint(1, 3)):
            target = rng.choice([made, *_objects(made, "turns"), *_objects(made, "questions")])
            target[rng.choice([*target, "more"])] = rng.choice(values)
        n_told += "line 1" in told_of(tmp_path, made)
    assert 200 < n_told < 400


def told_of(tmp_path, made) -> str:
    try:
        reader(tmp_path, made).episode(0, 0)
    except DataError as error:
        return str(error)
    return ""


def _objects(made, part):
    found = made.get(part)
    return [one for one in found if isinstance(one, dict) and one] if isinstance(found, list) else []


def test_empty_lines_do_not_shift_the_line_that_is_told(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text(f"\n{json.dumps(row('a'))}\n\n{json.dumps(changed('q', ability='X'))}\n", encoding="utf-8")
    data = load_rows(str(path), name=None, split="test", options={})
    with pytest.raises(DataError, match="line 4"):
        reader_from(data, options_of(NO_JUDGE))


def test_a_recorded_history_needs_every_reply(tmp_path):
    bad = changed("t", ref_response=...)
    with pytest.raises(DataError, match=r"turns\[0\].ref_response is missing: `history: recorded` replays"):
        reader(tmp_path, bad, history="recorded")
    assert reader(tmp_path, bad, history="live").episode(0, 0).script[0].reply is None


def test_an_answer_that_is_no_option_is_told_with_the_options(tmp_path):
    bad = changed("q", format="mc", options=["x", "y"], answer="z")
    with pytest.raises(DataError, match=r"questions\[0\].answer: answer 'z' is none of the options"):
        reader(tmp_path, bad).episode(0, 0)


def test_a_picture_that_is_not_there_is_told_with_its_turn(tmp_path):
    with pytest.raises(DataError, match=r"line 1, id 'a', turns\[0\].images\[0\]: .*no such file"):
        reader(tmp_path, changed("t", images=["no.png"])).episode(0, 0)


def test_a_row_that_cannot_be_an_episode_still_has_a_name(tmp_path):
    assert reader(tmp_path, row("a", topic="Food", cluster="c")).identity(0) == ("a", "Food", "c")


def test_keys_for_questions_have_no_effect_here_and_say_so():
    with pytest.raises(ConfigError, match="columns has no effect on conversations; name their columns under"):
        options_of({**NO_JUDGE, "columns": {"question": "x"}})


# --- other layouts ----------------------------------------------------------------------------------------------------

STRANGE = {
    "dialogue_id": 12,
    "domain": "Travel",
    "dialogue": [{"human": "Hello", "image": "x.png"}, {"human": "Bye", "gpt": "See you"}],
    "qa": [{"type": "memory recall", "query": "What did I say?", "label": "Hello", "choices": None}],
    "license": "unknown",
}


def shipped_mapping(task="mmrc"):
    return config_from_file(own_tasks()[task])["metadata"]["interbench"]["mapping"]


def test_the_mapping_of_mmrc_finds_likely_names():
    row = canonical_from({**STRANGE, "dialogue": [{"human": "Hello"}]}, shipped_mapping(), "here")
    assert row["id"] == 12
    assert row["topic"] == "Travel"
    assert row["turns"] == [{"user_text": "Hello"}]
    assert row["questions"] == [{"qid": "q0", "ability": "MR", "question": "What did I say?", "answer": "Hello"}]


@pytest.mark.parametrize("task", ["mmrc", "mmrc_notes"])
def test_every_key_of_a_shipped_mapping_is_one_of_a_conversation(task):
    assert set(shipped_mapping(task)) <= set(canonical_keys())


def test_an_unknown_layout_is_refused_with_the_columns_there_are(tmp_path):
    path = write_rows(tmp_path, [{"messages": [], "meta": {}}])
    data = load_rows(str(path), name=None, split="test", options={})
    with pytest.raises(DataError) as caught:
        reader_from(data, options_of({**NO_JUDGE, "mapping": shipped_mapping()}))
    told = str(caught.value)
    assert "no column for 'turns'; looked for turns, dialogue, conversation" in told
    assert "it has: messages, meta" in told
    assert "metadata.interbench.mapping" in told


def test_an_unknown_layout_of_a_question_names_its_place():
    bad = {**STRANGE, "qa": [*STRANGE["qa"], {"what": 1}]}
    with pytest.raises(DataError, match=r"here, questions\[1\]: no column for 'questions.ability'.*\n  it has: what"):
        canonical_from(bad, shipped_mapping(), "here")


@pytest.mark.parametrize("cell", ["text", 5, ["a", "b"], {"a": "b"}])
def test_turns_that_are_no_list_of_objects_are_refused(cell):
    with pytest.raises(DataError, match="column 'turns' must hold a list of objects"):
        canonical_from({**STRANGE, "dialogue": cell}, shipped_mapping(), "here")


def test_an_object_of_lists_is_a_list_of_objects():
    row = canonical_from({**STRANGE, "dialogue": {"human": ["a", "b"], "gpt": ["x", None]}}, shipped_mapping(), "here")
    assert row["turns"] == [{"user_text": "a", "ref_response": "x"}, {"user_text": "b"}]


def test_a_misspelt_key_of_a_mapping_is_told(tmp_path):
    with pytest.raises(
        ConfigError, match=r"'turns.user_txt' is no key of a conversation \(did you mean 'turns.user_text'\?\)"
    ):
        reader(tmp_path, row("a"), mapping={"turns.user_txt": "x"})


def test_a_mapped_data_set_of_the_hub_is_read_row_by_row():
    """As `datasets` gives it: pictures as undecoded cells, ids missing; only the first row is looked at beforehand."""
    import datasets
    from PIL import Image

    picture = Image.new("RGB", (20, 10), "red")
    rows = [
        {
            "dialogue": [{"human": f"Hello {number}", "image": [picture]}],
            "qa": [{"type": "IE", "query": "?", "label": "x"}],
        }
        for number in range(2)
    ]
    features = datasets.Features(
        {
            "dialogue": [{"human": datasets.Value("string"), "image": datasets.List(datasets.Image(decode=False))}],
            "qa": [{name: datasets.Value("string") for name in ("type", "query", "label")}],
        }
    )
    data = DataSet(rows=datasets.Dataset.from_list(rows, features=features), source="hub/set", folder=None)
    episode = reader_from(data, options_of({**NO_JUDGE, "mapping": shipped_mapping()})).episode(1, 0)
    assert (episode.id, episode.script[0].user.text) == ("1", "Hello 1")
    assert episode.script[0].user.pictures[0].width == 20
    assert episode.questions[0].ability == "IE"


def test_pictures_within_turns_stay_undecoded(tmp_path):
    """The data set's own bytes can be sent as they are, wherever in a row they lie."""
    import datasets
    from PIL import Image

    picture = Image.new("RGB", (20, 10), "red")
    rows = [{"dialogue": [{"human": "Hi", "image": [picture]}], "qa": [{"type": "IE", "query": "?", "label": "x"}]}]
    features = datasets.Features(
        {
            "dialogue": [{"human": datasets.Value("string"), "image": [datasets.Image()]}],
            "qa": [{name: datasets.Value("string") for name in ("type", "query", "label")}],
        }
    )
    datasets.Dataset.from_list(rows, features=features).to_parquet(str(tmp_path / "talks.parquet"))
    data = load_rows(str(tmp_path / "talks.parquet"), name=None, split="test", options={})
    assert data.picture_columns == ("dialogue",)
    assert isinstance(data.rows[0]["dialogue"][0]["image"][0]["bytes"], bytes)
    episode = reader_from(data, options_of({**NO_JUDGE, "mapping": shipped_mapping()})).episode(0, 0)
    assert episode.script[0].user.pictures[0].passed_through


def test_the_abilities_are_the_papers_six():
    assert list(ABILITIES) == ["IE", "CR", "IU", "IM", "MR", "AR"]


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"memories": ["note_takin"]}, r"memories = 'note_takin' \(did you mean 'note_taking'\?\)"),
        ({"memories": ["none", "none"]}, "memories: 'none' is named twice"),
        ({"memories": [["none", "none"]]}, "'none\\+none' has one memory twice"),
        ({"memories": []}, "metadata.interbench.memories"),
        ({"memories": [[]]}, "an arm needs at least one memory"),
        ({"history": "played"}, "history = 'played'.*\n.*allowed: live, recorded"),
        ({"questions": "together"}, "allowed: accumulate, independent"),
        ({"max_images": -1}, "max_images = -1"),
        ({"notes": {"max_char": 5}}, r"notes.max_char is no known key \(did you mean 'max_chars'\?\)"),
        ({"memories": ["note_taking"]}, "roles.notetaker is missing: name it in the YAML or .* INTERBENCH_NOTETAKER"),
        ({"rubric": "mmrc"}, "roles.judge is missing: name it in the YAML or .* INTERBENCH_JUDGES"),
        ({"rubric": "mmcr", "roles": {"judge": "simulated:j"}}, "metadata.interbench.rubric: mmcr is not known"),
        ({"rubric": "mmrc", "judges": ["simulated:a", "simulated:a"]}, "two are called 'a'; give each a name"),
        (
            {"rubric": "mmrc", "judges": ["simulated:a"], "roles": {"judge": "simulated:b"}},
            "judges and roles.judge are both there; keep one",
        ),
        (
            {"rubric": "mmrc", "panel": "mean_of_vald", "roles": {"judge": "simulated:b"}},
            "panel = 'mean_of_vald' is no panel rule",
        ),
        ({"rubric": "mmrc", "quorum": 3, "roles": {"judge": "simulated:b"}}, "quorum = 3: must be from 1 to"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_paid(block, message):
    with pytest.raises(ConfigError, match=message):
        options_of({**NO_JUDGE, **block})


def test_there_is_one_notetaker_only(monkeypatch):
    monkeypatch.setenv("INTERBENCH_NOTETAKER", "simulated:a,simulated:b")
    with pytest.raises(ConfigError, match="there can be one notetaker only, got 2"):
        options_of({**NO_JUDGE, "memories": ["note_taking"]})


def test_the_shipped_tasks_are_what_they_say():
    blocks = {
        name: task_options_from(config_from_file(path) | {"class": None}, where=name, offers=OFFERS).protocol_options
        for name, path in own_tasks().items()
        if name in ("mmrc_demo",)
    }
    assert blocks["mmrc_demo"].memories == ("none", "note_taking", ("recent_turns", "note_taking"))
