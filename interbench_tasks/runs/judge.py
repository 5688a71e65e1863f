"""Judges replies again that were given before: of a run of ours, or of a file. The model under test is not asked.

The task is played once more with a receiver that repeats what was said (`StoredReplies`), so that judges are asked the
same way as in any run, by every protocol that has some.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pluggy
from pydantic import BaseModel

from interbench_tasks import settings
from interbench_tasks.config import TaskOptions, task_options_from
from interbench_tasks.conversations import reader_from
from interbench_tasks.engine import BatchedModel
from interbench_tasks.errors import BackendError, DataError, InterbenchError, RunFolderError, near_miss
from interbench_tasks.file_names import safe_file_name
from interbench_tasks.generation import generation_settings_from
from interbench_tasks.judging_rubrics import rubrics
from interbench_tasks.plugin_manager import Offers
from interbench_tasks.records import EpisodeRecord
from interbench_tasks.rows import USER_DATA, DataSet, load_rows
from interbench_tasks.runs.folder import EPISODES, MANIFEST, read_json, read_records
from interbench_tasks.runs.plan import Key, RunPlan
from interbench_tasks.runs.play import PlayedRun, play_run
from interbench_tasks.runs.score import score_folder
from interbench_tasks.runs.stored import StoredReplies, replies_from_file, replies_from_records
from interbench_tasks.task_files import data_of, own_tasks
from interbench_tasks.task_roles import Role
from interbench_tasks.yaml_files import config_from_file

FOLDER = "interbench"
STORED = "stored"
"""Backend of roles that repeat what they said; offered here only, no YAML can name it."""
MAY_DIFFER = frozenset({"rubric", "panel", "quorum", "judges", "seed", "judges_see_pictures", "judge_reasoning"})
"""Protocol options that only judges see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Who is to judge, by what, and where the result goes; None: as the task has it."""

    out: Path
    judges: str | None = None
    """As `INTERBENCH_JUDGES` has them: words of one or several backends."""
    rubric: str | None = None
    rule: str | None = None
    quorum: int | None = None
    task: str | None = None
    """A name of ours, or a YAML file."""
    data: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """What came of it."""

    folder: Path
    options: TaskOptions
    receiver: str
    played: PlayedRun
    n_without_reply: int = 0
    """Items of the task's data that a file of replies says nothing of; they are in no number."""


def own_output(folders: Sequence[Path], out: Path, named: Sequence[Path]) -> list[Path]:
    """Of run folders, those that `interbench judge` has written to `out`, unless they were named one by one.

    A command whose output lies among what it judges would else judge its own judgements when it is given again.
    """
    exact = {path.resolve() for path in named}
    below = [folder for folder in folders if folder.resolve().is_relative_to((out / FOLDER).resolve())]
    return [one for one in below if one.resolve() not in exact and "judged" in read_json(one / MANIFEST)]


def judge_run(source: Path, wanted: Wanted, *, manager: pluggy.PluginManager, offers: Offers) -> JudgedRun:
    """The run in `source`, judged again.

    Raises: RunFolderError, DataError or ConfigError where run, data and task do not fit each other or have no judges.
    """
    manifest = read_json(source / MANIFEST)
    records = [record for record in read_records(source) if record.status != "skipped"]
    try:
        named, models = str(manifest["task"]), manifest["models"]
        receiver = StoredReplies(
            models["receiver"]["name"], models["receiver"]["fingerprint"], replies_from_records(records, "receiver")
        )
        generation, n_total = manifest["generation"]["receiver"], int(manifest["data"]["n_episodes"])
        file = str(manifest["data"]["source"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{source / MANIFEST}: lacks {error}; was it written by another version?") from error
    taken = {"notetaker": _notetaker(models, records)} if "notetaker" in models else {}
    task = _task_from(wanted.task or named, wanted, offers, stored=taken, played_with=file)
    _refuse_another_task(task, manifest, source)
    asked_with = generation_settings_from({**generation.pop("options", {}), **generation})
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in _episode_files(source))).hexdigest()
    return _judged(
        replace(task, options=replace(task.options, receiver_settings=asked_with)),
        wanted,
        receiver=receiver,
        episodes=_same_rows(records, task, source),
        n_total=max(n_total, len(records)),
        base=safe_file_name(named) if "run_id" not in manifest else str(manifest["run_id"]),
        judged={"run_id": manifest.get("run_id"), "folder": str(source), "sha256": digest},
        manager=manager,
    )


def judge_replies(
    file: Path, wanted: Wanted, *, receiver: str | None, manager: pluggy.PluginManager, offers: Offers
) -> JudgedRun:
    """The replies of a JSONL file, judged as replies to a task's items.

    Args: receiver = what the model is called that gave them; None: as the file.
    Raises: DataError or ConfigError where file, data and task do not fit each other or the task has no judges.
    """
    if wanted.task is None:
        raise InterbenchError(f"--replies {file}: which task's items do they answer? Name it with --task")
    replies = replies_from_file(file)
    task = _task_from(wanted.task, wanted, offers, stored={})
    if "notetaker" in task.options.roles:
        raise InterbenchError(
            f"{wanted.task}: its memories take notes along the conversation, and the file has none; name a task whose "
            "`memories` take no notes"
        )
    name = receiver or file.stem
    judged = _judged(
        task,
        wanted,
        receiver=StoredReplies(name, f"{STORED}:{replies.digest}", replies.replies),
        episodes=_rows_of(replies.episodes, task, file),
        n_total=len(replies.episodes),
        base=safe_file_name(name),
        judged={"replies": str(file), "sha256": replies.digest},
        manager=manager,
    )
    return replace(judged, n_without_reply=len(task.data.rows) - len({one for one, _ in replies.episodes}))


# --- the task -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    name: str
    options: TaskOptions
    data: DataSet
    offers: Offers


def _task_from(
    words: str,
    wanted: Wanted,
    offers: Offers,
    *,
    stored: Mapping[str, StoredReplies],
    played_with: str | None = None,
) -> _Task:
    """The task with the judges that are wanted.

    Args: stored = role -> what repeats what it said; played_with = the data that the run's manifest names.
    """
    tasks = own_tasks()
    path = Path(words) if Path(words).suffix in (".yaml", ".yml") else tasks.get(words)
    if path is None:
        raise InterbenchError(
            f"no task of ours is called {words}{near_miss(words, tasks)}; name the YAML it was played with: --task FILE"
        )
    config = config_from_file(path)
    if not isinstance(config.get("task"), str):
        raise InterbenchError(f"{words}: is a group of tasks; name one of them")
    block = config.get("metadata", {}).get("interbench", {})
    protocol = offers.protocols.get(block.get("protocol"))
    if protocol is not None and "judge" not in protocol.roles:
        raise InterbenchError(f"{words}: the protocol {block['protocol']} asks no judges, so there is nothing to judge")
    if protocol is not None:
        block |= _changes(wanted, protocol.Options, str(block["protocol"]))
    given = {} if wanted.judges is None else {"judge": wanted.judges}
    given |= {role: f"{STORED}:{role}" for role in stored}
    known = replace(offers, backends={**offers.backends, STORED: lambda model, **_: stored[model]})
    options = task_options_from(config, where=str(path), offers=known, given=given)
    if not options.roles.get("judge"):
        raise InterbenchError(f"{words}: its rubric is null, so nobody judges; name one with --rubric")
    file = wanted.data or _users_file(config, words, played_with)
    data = data_of(config, path) if file is None else _data_in(file, config)
    return _Task(name=config["task"], options=options, data=data, offers=known)


def _users_file(config: Mapping[str, Any], task: str, played_with: str | None) -> Path | None:
    """Of a task that reads a file of the user's, the one that the run was played with; None: as the YAML says.

    Raises: DataError where it is gone, and no other one is named.
    """
    if config.get("dataset_path") != USER_DATA or played_with is None:
        return None
    file = Path(played_with).expanduser()
    if file.exists():
        return file
    if settings.local_data() is not None:  # its rows are held against the run's
        return None
    raise DataError(
        f"{task}: the run was played with {played_with}, and there is no such file or folder now (seen from here); "
        "name it with --data FILE"
    )


def _data_in(file: Path, config: Mapping[str, Any]) -> DataSet:
    split = config.get("test_split") or config.get("validation_split") or "test"
    return load_rows(str(file), name=None, split=split, options={})


def _changes(wanted: Wanted, options: type[BaseModel], protocol: str) -> dict[str, Any]:
    """What the command line changes in the task's block."""
    given = {"rubric": wanted.rubric, "panel": wanted.rule, "quorum": wanted.quorum}
    changes = {key: value for key, value in given.items() if value is not None}
    if "panel" in changes and "panel" not in options.model_fields:
        raise InterbenchError(f"--rule {wanted.rule}: the protocol {protocol} has a rule of its own; leave it out")
    return changes


def _notetaker(models: Mapping[str, Any], records: Sequence[EpisodeRecord]) -> StoredReplies:
    model = models["notetaker"]
    return StoredReplies(model["name"], model["fingerprint"], replies_from_records(records, "notetaker"))


def _refuse_another_task(task: _Task, manifest: Mapping[str, Any], source: Path) -> None:
    """Refuse a task that is not the one that was played, as far as its options tell."""
    own = task.options.protocol_options.model_dump(mode="json")
    then = manifest.get("protocol_options", {})
    wrong = [
        (name, mine, theirs)
        for name, mine, theirs in (
            ("protocol", task.options.common.protocol, manifest.get("protocol")),
            ("version", task.options.version, manifest.get("task_version")),
            *((key, own.get(key), then[key]) for key in then if key in own and key not in MAY_DIFFER),
        )
        if mine != theirs
    ]
    if wrong:
        told = "; ".join(f"{name} was {theirs!r} and is {mine!r} now" for name, mine, theirs in wrong)
        raise InterbenchError(
            f"{source}: was played with another form of the task ({told}); name the YAML that it had: --task FILE"
        )


# --- its rows -------------------------------------------------------------------------------------------------------


def _same_rows(records: Sequence[EpisodeRecord], task: _Task, source: Path) -> list[Key]:
    """The rows that the records are of; the data must still be the same."""
    reader = reader_from(task.data, task.options)
    moved = [
        record.episode_id
        for record in records
        if record.doc_id >= len(task.data.rows) or reader.identity(record.doc_id)[0] != record.episode_id
    ]
    if moved:
        raise DataError(
            f"{source}: {len(moved)} of its episodes are not where they were in {task.data.source} ({_some(moved)}); "
            "name the data that it was played with: --data FILE"
        )
    return [(record.doc_id, record.repeat) for record in records]


def _rows_of(episodes: Sequence[tuple[str, int]], task: _Task, file: Path) -> list[Key]:
    """The rows that replies belong to, in the order of the data set."""
    reader = reader_from(task.data, task.options)
    row_of = {reader.identity(doc_id)[0]: doc_id for doc_id in range(len(task.data.rows))}
    foreign = list(dict.fromkeys(one for one, _ in episodes if one not in row_of))
    if foreign:
        raise DataError(
            f"{file}: {len(foreign)} ids are not in {task.data.source}: {_some(foreign)}\n"
            f"  ids there look like: {_some(list(row_of))}"
        )
    return sorted((row_of[one], repeat) for one, repeat in episodes)


def _some(ids: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(repr, ids[:most])) + (", ..." if len(ids) > most else "")


def _episode_files(source: Path) -> list[Path]:
    whole = source / EPISODES
    return [whole] if whole.exists() else sorted(source.glob("episodes-rank*.jsonl"))


# --- judging --------------------------------------------------------------------------------------------------------


def _judged(
    task: _Task,
    wanted: Wanted,
    *,
    receiver: StoredReplies,
    episodes: Sequence[Key],
    n_total: int,
    base: str,
    judged: Mapping[str, Any],
    manager: pluggy.PluginManager,
) -> JudgedRun:
    """Play the task with stored replies. The same command writes the same folder: it goes on where it was stopped."""
    judged = {**judged, "rubric_sha256": _rubric_digest(task.options), "data_sha256": _data_digest(task.data)}
    run_id = f"{base}-judged-{_digest_of(task.options, judged)}"
    plan = RunPlan(
        task=task.name,
        options=task.options,
        data=task.data,
        wanted=episodes,
        n_total=n_total,
        run_id=run_id,
        folder=wanted.out / FOLDER / run_id / task.name,
        judged=judged,
    )
    played = play_run(plan, receiver=receiver, manager=manager, offers=task.offers, harness_model=_no_harness)
    score_folder(plan.folder, task.offers)
    return JudgedRun(folder=plan.folder, options=task.options, receiver=receiver.name, played=played)


def _no_harness(role: Role) -> BatchedModel:
    _refuse_harness(role)


def _refuse_harness(role: Role) -> NoReturn:
    raise BackendError(
        f"{role.named_in}: interbench judge cannot load a model of the harness; serve it (vLLM, SGLang) and name it "
        "openai:NAME@http://HOST:PORT/v1"
    )


def _rubric_digest(options: TaskOptions) -> str:
    found = rubrics(str(getattr(options.protocol_options, "rubric", "")))
    return _sha256({name: rubric.model_dump(mode="json") for name, rubric in found.items()})


def _data_digest(data: DataSet) -> str:
    """Of the file that the items are in: judges read of it what is wrong. Of other data sets, of their name."""
    file = Path(data.source)
    if not file.is_file():
        return _sha256(data.source)
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _digest_of(options: TaskOptions, judged: Mapping[str, Any]) -> str:
    """Eight hex digits that differ where other judges, settings, rubrics, rules, items or replies are judged."""
    judges = [(role.label, role.words.backend, role.words.model, role.words.options) for role in options.roles["judge"]]
    settings = [role.settings for role in options.roles["judge"]]
    same = {key: value for key, value in judged.items() if key.endswith("sha256")}
    content = {"judges": judges, "settings": [str(one) for one in settings], "judged": same}
    return _sha256({**content, "options": options.protocol_options.model_dump(mode="json")})[:8]


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
