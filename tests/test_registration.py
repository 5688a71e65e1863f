"""What lmms-eval calls when it loads its plugins: it must never raise, and must tell what is wrong when asked."""

from __future__ import annotations

import pytest

from interbench_tasks.errors import HarnessError
from interbench_tasks.harness import registration

pytestmark = pytest.mark.integration


@pytest.fixture
def problems(monkeypatch) -> list[str]:
    fresh: list[str] = []
    monkeypatch.setattr(registration, "_problems", fresh)
    return fresh


def test_the_harness_knows_our_models_request_type_and_tasks():
    import lmms_eval.models
    from lmms_eval.api.model import lmms
    from lmms_eval.tasks import TaskManager

    assert registration.registration_problems() == ()
    assert {"interbench_api", "interbench_simulated"} <= set(
        lmms_eval.models.MODEL_REGISTRY_V2.list_canonical_model_ids()
    )
    assert callable(lmms.generate_until_interbench)
    assert "interfeedback_demo" in TaskManager().all_tasks


def test_registering_twice_changes_nothing(problems):
    from lmms_eval.tasks import TaskManager

    before = TaskManager.initialize_tasks
    assert len(registration.register()) == 2
    assert TaskManager.initialize_tasks is before
    assert problems == []


def test_a_stranger_who_took_our_method_name_is_named(problems):
    class Base:
        def generate_until_interbench(self, requests):
            """Somebody else's."""

    taken = Base.generate_until_interbench
    registration._add_method(Base, "generate_until_interbench", lambda self, requests: [])
    assert Base.generate_until_interbench is taken
    assert "another plugin already gave Base.generate_until_interbench (from tests.test_registration)" in problems[0]


def test_our_own_method_may_be_set_again(problems):
    class Base: ...

    registration._add_method(Base, "generate_until_interbench", lambda self, requests: ["first"])
    registration._add_method(Base, "generate_until_interbench", lambda self, requests: ["second"])
    assert Base().generate_until_interbench([]) == ["second"]
    assert problems == []


def test_an_unknown_shape_of_the_harness_is_a_problem_and_not_a_crash(problems, monkeypatch):
    from lmms_eval.tasks import TaskManager

    def other_shape(self, folders):
        return {}

    monkeypatch.setattr(TaskManager, "initialize_tasks", other_shape)
    assert len(registration.register()) == 2
    assert TaskManager.initialize_tasks is other_shape
    assert "TaskManager.initialize_tasks has an unknown shape: self, folders" in registration.registration_problems()[0]


def test_what_raises_while_registering_is_kept_and_told_by_the_task(problems, monkeypatch):
    def broken():
        raise RuntimeError("no such module")

    monkeypatch.setattr(registration, "_add_request_type", broken)
    registration.register()
    from interbench_tasks.harness.task import InteractiveTask

    with pytest.raises(
        HarnessError, match=r"could not be set up in lmms-eval: broken: RuntimeError\('no such module'\)"
    ):
        InteractiveTask(config={"task": "x"})


def test_a_stranger_who_takes_our_method_name_later_is_found(problems, monkeypatch):
    from lmms_eval.api.model import lmms

    from interbench_tasks.harness.task import InteractiveTask

    monkeypatch.setattr(lmms, "generate_until_interbench", lambda self, requests: [])
    with pytest.raises(HarnessError, match="another plugin took generate_until_interbench after us"):
        InteractiveTask(config={"task": "x"})


@pytest.mark.parametrize("name", ["../esc", "/tmp/esc", "a/b", ".hidden", ""])
def test_a_task_name_cannot_leave_its_folder(name):
    from interbench_tasks.harness.task import InteractiveTask

    with pytest.raises(HarnessError, match="may hold letters, digits"):
        InteractiveTask(config={"task": name})


def test_the_users_own_folders_come_before_ours():
    from lmms_eval.tasks import TaskManager

    manager = TaskManager(include_path="/nowhere", include_defaults=False)
    assert manager.all_tasks == []
