"""Every hook is documented and does what its documentation says; a plugin that errs says so before a model loads."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import pluggy
import pytest

from interbench_tasks import hookspecs
from interbench_tasks.errors import InterbenchError, PluginError, PluginNameClash
from interbench_tasks.hookspecs import hookimpl
from interbench_tasks.plugin_manager import ENTRY_POINT_GROUP, build_plugin_manager, offers_from
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.report_parts import ReportRun, Section

HERE = Path(__file__).read_text(encoding="utf-8")
HOOKS = [
    function
    for name, function in vars(hookspecs).items()
    if name.startswith("interbench_") and inspect.isfunction(function)
]


def plugin(hook: str, result=None, error: Exception | None = None) -> SimpleNamespace:
    """A plugin with one hook, which returns `result` or raises `error`."""

    def implementation():
        if error is not None:
            raise error
        return result

    implementation.__name__ = hook
    return SimpleNamespace(**{hook: hookimpl(implementation)})


def offered(pm: pluggy.PluginManager, hook: str):
    return getattr(offers_from(pm), hook.removeprefix("interbench_"))


# --- what is said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS, ids=lambda f: f.__name__)
def test_every_hook_is_documented_and_tested(hook):
    doc = inspect.getdoc(hook) or ""
    arguments = [f"{name}:" for name in inspect.signature(hook).parameters]
    missing = [w for w in ["Called:", "Returns:", "Several plugins:", "Since:", *arguments] if w not in doc]
    assert not missing
    assert f"def test_{hook.__name__}__" in HERE


def test_every_hook_is_an_offer_or_a_watch_by_its_signature():
    for hook in HOOKS:
        is_offer = hook.__name__ in hookspecs.OFFERS
        assert is_offer == (not inspect.signature(hook).parameters), hook.__name__
        assert is_offer == ("Mapping" in str(inspect.signature(hook).return_annotation)), hook.__name__


def test_an_offer_hook_is_a_field_of_the_offers(pm):
    fields = {f"interbench_{name}" for name in offers_from(pm).__dataclass_fields__}
    assert fields == set(hookspecs.OFFERS)


# --- offer hooks: one rule for all -------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", hookspecs.OFFERS)
def test_without_a_plugin_nothing_is_offered(pm, hook):
    assert offered(pm, hook) == {}


@pytest.mark.parametrize("hook", hookspecs.OFFERS)
def test_what_several_plugins_offer_is_merged(pm, hook):
    pm.register(plugin(hook, {"a": int}), name="first")
    pm.register(plugin(hook, {"b": str, "c": list}), name="second")
    assert offered(pm, hook) == {"a": int, "b": str, "c": list}


@pytest.mark.parametrize("hook", hookspecs.OFFERS)
def test_a_name_offered_twice_names_both_plugins(pm, hook):
    pm.register(plugin(hook, {"a": int}), name="first")
    pm.register(plugin(hook, {"a": str}), name="second")
    with pytest.raises(PluginNameClash, match=rf"'a' is offered twice by {hook}: by '(first|second)' and by"):
        offers_from(pm)


@pytest.mark.parametrize("hook", hookspecs.OFFERS)
@pytest.mark.parametrize("result", [None, ["a"], "a", 1], ids=repr)
def test_an_offer_that_is_no_mapping_is_an_error(pm, hook, result):
    pm.register(plugin(hook, result), name="odd")
    with pytest.raises(PluginError, match=f"plugin 'odd': {hook} must return a mapping of name to factory, got"):
        offers_from(pm)


@pytest.mark.parametrize("hook", hookspecs.OFFERS)
def test_an_offer_that_raises_names_the_plugin_and_keeps_the_cause(pm, hook):
    cause = RuntimeError("no such file")
    pm.register(plugin(hook, error=cause), name="broken")
    with pytest.raises(PluginError, match=rf"plugin 'broken': {hook} raised RuntimeError\('no such file'\)") as caught:
        offers_from(pm)
    assert caught.value.__cause__ is cause


# --- each hook ---------------------------------------------------------------------------------------------------


def test_interbench_backends__gives_factories_that_take_a_model_and_options(pm):
    class Echo:
        def __init__(self, model: str, **options: object) -> None:
            self.name, self.fingerprint, self.options = f"echo:{model}", f"echo:{model}", options

        async def reply(self, call): ...

        async def close(self): ...

    pm.register(plugin("interbench_backends", {"echo": Echo}), name="echo")
    backend = offers_from(pm).backends["echo"]("loud", volume=11)
    assert isinstance(backend, hookspecs.Backend)
    assert (backend.name, backend.options) == ("echo:loud", {"volume": 11})


def test_interbench_protocols__gives_classes_by_name(pm):
    class Quiz:
        roles = ()
        metrics = "quiz"

    pm.register(plugin("interbench_protocols", {"quiz": Quiz}), name="quiz")
    assert offers_from(pm).protocols == {"quiz": Quiz}


def test_interbench_feedback_providers__gives_factories_without_arguments(pm):
    class Socratic:
        async def give(self, episode, turn, provider): ...

    pm.register(plugin("interbench_feedback_providers", {"socratic": Socratic}), name="socratic")
    assert isinstance(offers_from(pm).feedback_providers["socratic"](), Socratic)


def test_interbench_memories__gives_classes_that_take_what_the_yaml_says(pm):
    class Nothing:
        acts_at, takes_notes = "question", False

        def __init__(self, options: hookspecs.MemoryOptions) -> None:
            self.options = options

    pm.register(plugin("interbench_memories", {"nothing": Nothing}), name="nothing")
    made = offers_from(pm).memories["nothing"](hookspecs.MemoryOptions(recent_turns=2))
    assert made.options.recent_turns == 2


def test_interbench_verifiers__gives_factories_without_arguments(pm):
    class Exact:
        def judge(self, text, target, options): ...

    pm.register(plugin("interbench_verifiers", {"exact": Exact}), name="exact")
    assert isinstance(offers_from(pm).verifiers["exact"](), Exact)


def test_interbench_panel_rules__gives_factories_without_arguments(pm):
    class First:
        def combine(self, verdicts, declared): ...

    pm.register(plugin("interbench_panel_rules", {"first": First}), name="first")
    assert isinstance(offers_from(pm).panel_rules["first"](), First)


def test_interbench_metrics__gives_factories_that_take_the_protocols_options(pm):
    class Metrics:
        def __init__(self, options: object) -> None:
            self.options = options

    pm.register(plugin("interbench_metrics", {"quiz": Metrics}), name="quiz")
    assert offers_from(pm).metrics["quiz"]("options").options == "options"


def test_interbench_report_sections__gives_functions_of_the_runs(pm):
    def odd(runs):
        return Section(title="Odd", parts=tuple(run.name for run in runs))

    pm.register(plugin("interbench_report_sections", {"odd": odd}), name="odd")
    run = ReportRun(name="mine", folder=Path("runs"), task="quiz", protocol="quiz", manifest={}, metrics={})
    assert offers_from(pm).report_sections["odd"]([run]).parts == ("mine",)


def make_record(episode_id: str = "item-1") -> EpisodeRecord:
    return EpisodeRecord(
        task="quiz",
        protocol="feedback_loop",
        episode_id=episode_id,
        doc_id=0,
        repeat=0,
        category=None,
        cluster=None,
        target="A",
        options={"A": "cat", "B": "dog"},
    )


def watcher(seen: list[object]) -> SimpleNamespace:
    def interbench_episode_finished(record):
        seen.append(record)

    return SimpleNamespace(interbench_episode_finished=hookimpl(interbench_episode_finished))


def test_interbench_episode_finished__reaches_every_plugin_with_the_same_record(pm):
    first, second, record = [], [], make_record()
    pm.register(watcher(first), name="first")
    pm.register(watcher(second), name="second")
    assert pm.hook.interbench_episode_finished(record=record) == []
    assert first == second == [record]
    assert first[0] is record


def test_interbench_episode_finished__cannot_change_the_record(pm):
    def interbench_episode_finished(record):
        record.target = "B"

    pm.register(SimpleNamespace(interbench_episode_finished=hookimpl(interbench_episode_finished)), name="eager")
    with pytest.raises(AttributeError, match="target"):
        pm.hook.interbench_episode_finished(record=make_record())


def test_interbench_episode_finished__works_for_a_plugin_that_needs_no_argument(pm):
    calls = []
    pm.register(plugin("interbench_episode_finished", error=None), name="silent")
    pm.register(watcher(calls), name="counts")
    pm.hook.interbench_episode_finished(record=make_record())
    assert len(calls) == 1


# --- finding plugins ---------------------------------------------------------------------------------------------


class InstalledPackage(importlib.metadata.Distribution):
    """A package that is installed as far as importlib.metadata can see."""

    def __init__(self, name: str, entry_points: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            "entry_points.txt": f"[{ENTRY_POINT_GROUP}]\n{entry_points}\n",
        }

    def read_text(self, filename):
        return self._texts.get(filename)

    def locate_file(self, path):
        return Path(path)


class Finder:
    """Puts packages on `sys.meta_path` for importlib.metadata."""

    def __init__(self, *packages: InstalledPackage) -> None:
        self.packages = packages

    def find_spec(self, *arguments, **keywords):
        return None

    def find_distributions(self, context):
        return iter(self.packages)


@pytest.fixture
def install(monkeypatch):
    """`install(package, ...)`: these are the only packages that importlib.metadata finds through a finder of ours."""

    def put(*packages: InstalledPackage) -> None:
        hidden = [finder for finder in sys.meta_path if not hasattr(finder, "find_distributions")]
        path_finder = SimpleNamespace(
            find_spec=importlib.machinery.PathFinder.find_spec,
            invalidate_caches=importlib.machinery.PathFinder.invalidate_caches,
        )
        monkeypatch.setattr(sys, "meta_path", [*hidden, path_finder, Finder(*packages)])

    return put


def write_plugin(folder: Path, name: str, code: str) -> None:
    (folder / f"{name}.py").write_text(f"from interbench_tasks import hookimpl\n{code}\n", encoding="utf-8")


GOOD = "@hookimpl\ndef interbench_verifiers():\n    return {'exact': object}"


@pytest.fixture
def module_folder(tmp_path, monkeypatch):
    """A folder on the import path; what is imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_installed_plugin_is_found_by_its_entry_point(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good"))
    manager = build_plugin_manager()
    assert manager.has_plugin("good")
    assert offers_from(manager).verifiers == {"exact": object}


def test_a_package_found_twice_on_the_path_counts_once(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good"), InstalledPackage("ib-good", "good = ib_good"))
    assert offers_from(build_plugin_manager()).verifiers == {"exact": object}


def test_two_packages_with_a_plugin_of_one_name_are_an_error(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    write_plugin(module_folder, "ib_other", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good"), InstalledPackage("ib-other", "good = ib_other"))
    with pytest.raises(PluginNameClash, match=r"two packages have a plugin named 'good'; .*pip uninstall ib-other"):
        build_plugin_manager()


def test_one_module_under_two_names_is_an_error(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good\nagain = ib_good"))
    with pytest.raises(PluginError, match=r"plugin '(good|again)' of ib-good cannot be registered"):
        build_plugin_manager()


def test_without_installed_plugins_no_entry_point_is_read(install, module_folder):
    write_plugin(module_folder, "ib_broken", "raise RuntimeError('imported')")
    install(InstalledPackage("ib-broken", "broken = ib_broken"))
    assert not build_plugin_manager(installed=False).get_plugins()


def test_a_broken_plugin_names_its_package_and_how_to_be_rid_of_it(install, module_folder):
    write_plugin(module_folder, "ib_broken", "import no_such_module")
    install(InstalledPackage("ib-broken", "broken = ib_broken"))
    with pytest.raises(PluginError) as caught:
        build_plugin_manager()
    text = str(caught.value)
    assert "plugin 'broken' of ib-broken cannot be imported (ib_broken)" in text
    assert "No module named 'no_such_module'" in text
    assert "pip uninstall ib-broken" in text


def test_a_missing_attribute_of_an_entry_point_names_its_package(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good:nothing"))
    with pytest.raises(PluginError, match=r"plugin 'good' of ib-good cannot be imported \(ib_good:nothing\)"):
        build_plugin_manager()


def test_a_misspelt_hook_is_an_error_that_lists_the_hooks(install, module_folder):
    write_plugin(module_folder, "ib_typo", GOOD.replace("interbench_verifiers", "interbench_verifierz"))
    install(InstalledPackage("ib-typo", "typo = ib_typo"))
    with pytest.raises(PluginError, match="interbench_verifierz") as caught:
        build_plugin_manager()
    allowed = str(caught.value).split("allowed: ")[1].split(", ")
    assert allowed == sorted(hook.__name__ for hook in HOOKS)


def test_a_hook_with_an_argument_that_does_not_exist_is_an_error(install, module_folder):
    write_plugin(module_folder, "ib_argument", "@hookimpl\ndef interbench_episode_finished(recrod): ...")
    install(InstalledPackage("ib-argument", "argument = ib_argument"))
    with pytest.raises(PluginError, match=r"(?s)plugin 'argument' of ib-argument cannot be registered: .*recrod"):
        build_plugin_manager()


def test_each_manager_is_a_fresh_one(install, module_folder):
    write_plugin(module_folder, "ib_good", GOOD)
    install(InstalledPackage("ib-good", "good = ib_good"))
    first = build_plugin_manager()
    first.unregister(name="good")
    assert build_plugin_manager().has_plugin("good")


def test_every_plugin_error_is_one_of_ours():
    assert issubclass(PluginError, InterbenchError)
    assert issubclass(PluginNameClash, InterbenchError)
