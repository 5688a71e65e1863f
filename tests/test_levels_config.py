"""What a task YAML may say of levels, of people and of whom to test; and the texts that a data set brings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel

from interbench_tasks import settings
from interbench_tasks.config import task_options_from
from interbench_tasks.errors import ConfigError, DataError
from interbench_tasks.levels import wrong_levels
from interbench_tasks.protocols.feedback_loop import FeedbackLoopOptions
from tests.test_config import OFFERS, config
from tests.test_items import ROW, reader

LEVELS = {"levels": ["feedback_l1", "feedback_l2", "feedback_l3"]}
TEXTS = {"feedback_l1": "Look.", "feedback_l2": "Look at its colour.", "feedback_l3": "It is blue. Why?"}
HIERARCHICAL = {"arms": ["hierarchical"], "max_rounds": 3, "test_on": "all_wrong"}
PEOPLE = replace(OFFERS, backends={**OFFERS.backends, "human": OFFERS.backends["simulated"]})


def options_of(block: dict, *, offers=OFFERS, given=None, roles=True):
    made = config(**block)
    if not roles:
        made["metadata"]["interbench"].pop("roles")
    return task_options_from(made, where="mine.yaml", offers=offers, given=given)


def error_of(block: dict, **more) -> str:
    with pytest.raises(ConfigError) as caught:
        options_of(block, **more)
    return str(caught.value)


# --- where the texts come from ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nobody_named(monkeypatch):
    monkeypatch.delenv(settings.role_variable("provider"), raising=False)


def test_the_data_sets_texts_need_no_provider():
    options = options_of(HIERARCHICAL | {"columns": LEVELS}, roles=False)
    assert options.protocol_options.level_texts == "data"
    assert options.roles == {}


def test_a_provider_that_is_named_writes_instead(monkeypatch):
    block = HIERARCHICAL | {"columns": LEVELS}
    assert options_of(block).protocol_options.level_texts == "provider"
    named = options_of(block, roles=False, given={"provider": "simulated:x"})
    assert named.protocol_options.level_texts == "provider"
    monkeypatch.setenv(settings.role_variable("provider"), "simulated:x")
    named = options_of(block, roles=False)
    assert (named.protocol_options.level_texts, len(named.roles["provider"])) == ("provider", 1)


def test_what_the_yaml_says_stands():
    block = HIERARCHICAL | {"columns": LEVELS, "level_texts": "data"}
    options = options_of(block)
    assert options.protocol_options.level_texts == "data"
    assert options.roles == {}  # nobody asks it


def test_without_texts_a_provider_is_missed():
    assert "roles.provider is missing" in error_of(HIERARCHICAL, roles=False)
    assert "roles.provider is missing" in error_of(HIERARCHICAL | {"level_texts": "provider"}, roles=False)


def test_the_manifest_says_whence_the_texts_came_and_is_as_before_without_levels():
    assert options_of(HIERARCHICAL | {"columns": LEVELS}).protocol_options.model_dump()["level_texts"] == "provider"
    plain = FeedbackLoopOptions().model_dump()
    assert {"test_on", "level_texts", "level3_without_answer"}.isdisjoint(plain)
    assert FeedbackLoopOptions(test_on="all_wrong").model_dump()["test_on"] == "all_wrong"


def test_simple_alone_on_all_wrong_answers_needs_nobody():
    assert options_of({"arms": ["simple"], "test_on": "all_wrong"}, roles=False).roles == {}


# --- wrong combinations -----------------------------------------------------------------------------------------

DATA = HIERARCHICAL | {"columns": LEVELS, "level_texts": "data"}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            HIERARCHICAL | {"max_rounds": 4},
            "max_rounds = 4: the arm 'hierarchical' has 3 levels, one a round, so at most",
        ),
        (HIERARCHICAL | {"leak_guard": "rewrite"}, "leak_guard = 'rewrite': the last level of 'hierarchical' gives"),
        (
            HIERARCHICAL | {"level_texts": "data"},
            "columns.levels is missing: level_texts: data takes one column a round",
        ),
        (DATA | {"columns": {"levels": ["l1", "l2"]}}, "columns.levels names 2 columns, but max_rounds is 3"),
        (DATA | {"columns": {"levels": []}}, "metadata.interbench.columns.levels"),
        (DATA | {"test_on": "provider_right"}, "test_on = 'provider_right': with level_texts: data nobody solves"),
        (DATA | {"level3_without_answer": True}, "level3_without_answer: the data set's texts are told as they are"),
        ({"level_texts": "data"}, "level_texts has no effect: no arm has levels (e.g. hierarchical)"),
        ({"level3_without_answer": False}, "level3_without_answer has no effect: no arm has levels"),
        ({"columns": LEVELS}, "columns.levels has no effect: no arm has levels"),
        ({"test_on": "all_rong"}, "test_on = 'all_rong' (did you mean 'all_wrong'?)"),
        ({"test_onn": "all_wrong"}, "test_onn is no known key (did you mean 'test_on'?)"),
        (HIERARCHICAL | {"level_text": "data"}, "level_text is no known key (did you mean 'level_texts'?)"),
        (HIERARCHICAL | {"level_texts": "dat"}, "level_texts = 'dat' (did you mean 'data'?)"),
        ({"arms": ["hierarchcal"]}, "arms = 'hierarchcal' (did you mean 'hierarchical'?)"),
        (HIERARCHICAL | {"columns": {"level": ["a"]}}, "columns.level is no known key (did you mean 'levels'?)"),
        (HIERARCHICAL | {"prompts": {"levl1": "x"}}, "prompts.levl1 is no known key (did you mean 'level1'?)"),
        (HIERARCHICAL | {"prompts": {"level1": "{{ anser }}"}}, "prompts.level1 uses 'anser', which does not exist"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_paid(block, expected):
    assert expected in error_of(block)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"arms": ["detail"]},
            "test_on = 'provider_right': a person (metadata.interbench.roles.provider) does not solve",
        ),
        (HIERARCHICAL | {"flip_sample": 2}, "flip_sample: a person (metadata.interbench.roles.provider) can only mark"),
        ({"arms": ["detail"], "leak_guard": "rewrite"}, "leak_guard = 'rewrite': nobody asks a person"),
    ],
)
def test_people_are_not_asked_for_what_they_do_not_do(block, expected):
    assert expected in error_of(block | {"roles": {"provider": "human:desk"}}, offers=PEOPLE)


def test_a_person_may_write_levels():
    options = options_of(HIERARCHICAL | {"columns": LEVELS, "roles": {"provider": "human:desk"}}, offers=PEOPLE)
    assert options.protocol_options.level_texts == "provider"


def test_a_backend_that_says_so_is_a_person_too():
    class Desk:
        person = True

        def __init__(self, model: str) -> None:
            self.model = model

    offers = replace(OFFERS, backends={**OFFERS.backends, "desk": Desk})
    assert "a person (" in error_of({"arms": ["detail"], "roles": {"provider": "desk:x"}}, offers=offers)


def test_other_protocols_have_no_levels():
    class Options(BaseModel):
        arms: tuple[str, ...] = ()

    problems = wrong_levels(Options(), ["l1"], {}, OFFERS, key="k")
    assert [f"{problem.key}{problem.message}" for problem in problems] == [
        "k.columns.levels has no effect: this protocol has no levels"
    ]


# --- the texts of a data set ------------------------------------------------------------------------------------


def test_a_rows_texts_come_with_its_episode_in_the_order_of_the_yaml():
    episode = reader([ROW | TEXTS], columns=LEVELS).episode(0, 0)
    assert episode.levels == tuple(TEXTS.values())
    assert reader([ROW | TEXTS]).episode(0, 0).levels == ()


def test_columns_may_have_any_name():
    row = ROW | {"hint": "Look.", "told": "It is blue."}
    assert reader([row], columns={"levels": ["hint", "told"]}).episode(0, 0).levels == ("Look.", "It is blue.")


def test_a_missing_column_is_named_with_what_there_is():
    with pytest.raises(DataError, match=r"columns.levels: 'feedback_l1'.*\n  it has: id, question, options, answer"):
        reader([ROW], columns=LEVELS)


@pytest.mark.parametrize("cell", [None, "", "  ", ["a"], 3])
def test_a_row_without_a_text_is_an_error_before_any_episode(cell):
    rows = [ROW | TEXTS | {"id": "a"}, ROW | TEXTS | {"id": "b", "feedback_l2": cell}]
    with pytest.raises(DataError, match=r"none in column feedback_l2, row 1\n"):
        reader(rows, columns=LEVELS)


def test_all_columns_with_gaps_are_named_with_their_first_rows():
    rows = [ROW | TEXTS | {"id": str(n), "feedback_l1": "", "feedback_l3": None} for n in range(7)]
    with pytest.raises(DataError, match=r"feedback_l1, row 0, 1, 2, 3, 4 and 2 more; column feedback_l3, row 0"):
        reader(rows, columns=LEVELS)


def test_no_prompt_shows_feedback_that_the_data_set_brings():
    shown = reader([ROW | TEXTS], columns=LEVELS, prompts={"question": "{{ row }}"}).episode(0, 0)
    assert "Why?" not in shown.question.text
