"""`interbench run ...`: lmms-eval for scripts, with an exit code that can be trusted."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import yaml

from interbench_tasks import settings
from interbench_tasks.errors import RunFolderError
from interbench_tasks.redaction import redact

if TYPE_CHECKING:
    from interbench_tasks.harness.running import Ended
    from interbench_tasks.runs.outcome import RunOutcome
    from interbench_tasks.runs.status import Note

PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": ["--help"]}
SEVERITY = (0, 4, 3, 2, 1)
"""Exit codes from the least to the worst; a stop from outside stands above all of them."""


def run(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the command that would be run.")] = False,
) -> None:
    """Run lmms-eval with all of ITS OPTIONS, and exit non-zero where it would exit with 0 after an error.

    \b
    interbench run --model interbench_api --model_args model=openai:gpt-4o-2024-08-06 \\
                   --tasks interfeedback_demo --output_path runs/

    Tasks that are not ours may be among them. At the end stands one line for each task of ours: what was played, what
    failed, whether the run was finished, and the folder.

    \b
    Exit codes:
      0    all is done, and every metric is there
      1    an error, also one that lmms-eval only prints
      2    wrong usage: an unknown option or task, a --config list that cannot work
      3    done, but more than max_failed_share failed, or a metric is missing
      4    unfinished: a budget was used up; the same command goes on from there
      130  stopped by Ctrl-C (143: by SIGTERM, 129: its terminal was closed); the same command goes on from there

    `lmms-eval --help` lists its options. Several ranks: torchrun --nproc_per_node 2 --no-python interbench run ...
    """  # noqa: D301 - \b keeps click from filling a paragraph
    arguments = list(context.args)
    if not arguments:
        typer.echo(context.get_help())
        raise typer.Exit(2)
    _refuse_what_is_no_run(arguments)
    _refuse_mixed_variables(arguments)
    from interbench_tasks.harness.running import command_of, run_harness

    if dry_run:
        typer.echo(redact(shlex.join(command_of(arguments))))
        raise typer.Exit(0)
    ended = run_harness(arguments)
    raise typer.Exit(_told(ended))


def _refuse_what_is_no_run(arguments: Sequence[str]) -> None:
    first, is_eval = arguments[0], arguments[0] == "eval" and len(arguments) > 1
    if "--tui" in arguments or not (first.startswith("-") or is_eval):
        _wrong_usage(
            f"interbench run takes the options of a run, got '{first}'; for other commands call lmms-eval itself"
        )


def _wrong_usage(text: str) -> NoReturn:
    typer.echo(redact(text), err=True)
    raise typer.Exit(2)


# --- the list of --config ---------------------------------------------------------------------------------------


def _refuse_mixed_variables(arguments: Sequence[str]) -> None:
    """Refuse a list whose entries set different INTERBENCH_ variables: the harness gives all of them the last value."""
    for path in _config_files(arguments):
        entries = _entries_of(path)
        for name in sorted({name for entry in entries for name in entry}):
            values = {entry.get(name) for entry in entries}
            if len(values) > 1:
                _wrong_usage(
                    f"--config {path}: its entries set {name} differently, and lmms-eval gives all of them the last "
                    "value; write one file for each and run them one by one"
                )


def _config_files(arguments: Sequence[str]) -> list[str]:
    """What stands after `--config`, also shortened as the harness allows; the last one counts there."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--config")
    try:
        found, _ = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # no value: the harness says so
        return []
    return [found.config] if found.config else []


def _entries_of(path: str) -> list[dict[str, str]]:
    """The INTERBENCH_ variables that each entry sets; none where the harness will refuse the file anyway."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return []
    entries = content if isinstance(content, list) else [content]
    return [_variables_of(entry.get("env") if isinstance(entry, Mapping) else None) for entry in entries]


def _variables_of(env: Any) -> dict[str, str]:  # noqa: ANN401 - any YAML value
    if not isinstance(env, Mapping):
        return {}
    return {str(name): str(value) for name, value in env.items() if str(name).startswith("INTERBENCH_")}


# --- what came of it --------------------------------------------------------------------------------------------


def _told(ended: Ended) -> int:
    """Say what came of each task of ours, and why it is not well; gives the exit code. Ranks above 0 say nothing."""
    codes = [ended.exit_code, *(3 for note in ended.notes if note.kind == "problem")]
    wrong = [ended.why] if ended.why else []
    wrong += [f"{note.task}: {note.text}" if note.task else note.text for note in ended.notes if note.text]
    first_rank = settings.rank_and_world_size()[0] == 0
    for note in ended.notes:
        if note.kind == "begun" and first_rank:
            if wrong and not note.folder_has_begun:  # the reason is told; that there is no folder is no second one
                codes.append(1)
                continue
            outcome = _outcome(note, wrong)
            codes.append(1 if outcome is None else outcome.exit_code)
    if first_rank:
        sys.stdout.flush()
        for text in dict.fromkeys(wrong):
            typer.echo(redact(f"interbench: {text}"), err=True)
    return max(codes, key=lambda code: SEVERITY.index(code) if code in SEVERITY else len(SEVERITY) + code)


def _outcome(note: Note, wrong: list[str]) -> RunOutcome | None:
    """What came of one task, said in a line; None, and the reason added to `wrong`, where its folder does not tell."""
    from interbench_tasks.runs.outcome import outcome_of

    assert note.folder is not None
    try:
        outcome = outcome_of(note.folder, metrics=note.metrics)
    except RunFolderError as error:
        wrong.append(f"{note.task}: {error}")
        return None
    typer.echo(redact(outcome.text))
    return outcome
