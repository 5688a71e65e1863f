"""The harness's command line, as `interbench run` starts it: `python -m interbench_tasks.harness.watched ARGUMENTS`.

It does what `lmms-eval ARGUMENTS` does, but for four things: an error that the harness only prints is noted and makes
the exit code 1 (2 for a wrong command line); SIGTERM and a closed terminal (SIGHUP) end it like Ctrl-C, with what is
finished in order; it ends when the process that started it is gone; and keys of the environment are taken out of all
that it prints.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from typing import Any, TextIO

from interbench_tasks import settings
from interbench_tasks.engine import text_of_failure
from interbench_tasks.errors import HarnessError
from interbench_tasks.redaction import without_known_secrets
from interbench_tasks.runs.outcome import ERROR, INTERRUPTED, OK, USAGE
from interbench_tasks.runs.status import note

COMMAND_LINE = "lmms_eval.__main__"
EVALUATE_ONE = "cli_evaluate_single"
LISTS = ("list", "list_groups", "list_tags", "list_subtasks")
"""Values of `--tasks` that show something and play nothing."""
STOPS = ("SIGINT", "SIGTERM", "SIGHUP")
LOOK_AGAIN_S = 1.0
SAME_KEY_PRESS_S = 0.5
"""A Ctrl-C in a terminal reaches us twice: from the terminal, and passed on by `interbench run`."""


class Evaluations:
    """What became of the entries of the harness's list (one, unless `--config` names several)."""

    def __init__(self) -> None:
        self.worst = OK

    def watching(self, evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The harness's function for one entry, whose end is noted."""

        def evaluate_and_note(args: Any = None) -> Any:  # noqa: ANN401 - the harness is untyped
            try:
                return evaluate(args)
            except Exception as error:  # the harness prints it and goes on
                self.failed(error)
                raise
            except SystemExit as ended:
                self._ended(args, ended)
                raise

        return evaluate_and_note

    def _ended(self, args: Any, ended: SystemExit) -> None:  # noqa: ANN401 - the harness is untyped
        """Note a `sys.exit` in an entry, which may say 0 although nothing was done; `--tasks list` ends like that."""
        tasks = getattr(args, "tasks", None)
        if tasks in LISTS:
            return
        if tasks is None:
            note("refused", "no --tasks was given")
            ended.code = USAGE
        else:
            note("failed", f"something ended the process with sys.exit({ended.code!r})")
            ended.code = ERROR

    def failed(self, error: Exception) -> None:
        """Note an error that ended an entry, or the whole command."""
        refused = _is_about_the_command_line(error)
        told = "lmms-eval refuses this command" if refused else "lmms-eval failed"
        note("refused" if refused else "failed", f"{told}: {text_of_failure(error)}")
        self.worst = ERROR if self.worst == ERROR or not refused else USAGE


def _is_about_the_command_line(error: Exception) -> bool:
    """The harness checks its arguments in one file; whatever raises elsewhere is no matter of the command line."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return isinstance(error, ValueError) and bool(frames) and frames[-1][0].f_globals["__name__"] == COMMAND_LINE


class WithoutKeys:
    """A text stream that passes everything on, without the environment's keys."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text; a key that comes in two pieces is not found."""
        self._stream.write(without_known_secrets(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


def watched_command(evaluations: Evaluations, command_line: str = COMMAND_LINE) -> Callable[[], None]:
    """The harness's command, as a function of our own that calls ours for each entry; nothing of theirs is changed.

    Args: command_line = the module that holds it.
    Raises: HarnessError where the installed harness has another shape.
    """
    module = importlib.import_module(command_line)
    evaluate_all: Any = getattr(module, "cli_evaluate", None)
    evaluate_one: Any = getattr(module, EVALUATE_ONE, None)
    calls_it = isinstance(evaluate_all, types.FunctionType) and EVALUATE_ONE in evaluate_all.__code__.co_names
    if not calls_it or not callable(evaluate_one):
        raise HarnessError(
            f"{command_line} has an unknown shape; pip install 'lmms-eval>=0.7.3,<0.8', or start lmms-eval itself"
        )
    own_names = {**vars(module), EVALUATE_ONE: evaluations.watching(evaluate_one)}
    return types.FunctionType(
        evaluate_all.__code__, own_names, evaluate_all.__name__, evaluate_all.__defaults__, evaluate_all.__closure__
    )


def exit_code_of(arguments: list[str]) -> int:
    """Run the harness's command with these arguments and say how it ended.

    Raises: SystemExit where the harness raises it: after `--help`, `--tasks list`, or a wrong option.
    """
    sys.argv = ["lmms-eval", *(arguments[1:] if arguments[:1] == ["eval"] else arguments)]
    evaluations = Evaluations()
    try:
        watched_command(evaluations)()
    except KeyboardInterrupt:
        note("stopped")
        return INTERRUPTED
    except SystemExit as ended:
        if not ended.code:
            note("evaluated")
        raise
    except Exception as error:  # noqa: BLE001 - with --verbosity DEBUG the harness raises whatever ended an entry
        traceback.print_exc()
        evaluations.failed(error)
    if evaluations.worst == OK:
        note("evaluated")
    return evaluations.worst


def _interrupted_once() -> Callable[[int, object], None]:
    """A signal handler that raises KeyboardInterrupt, once for signals that come together."""
    last = [-SAME_KEY_PRESS_S]

    def handler(number: int, frame: object) -> None:
        now = time.monotonic()
        if now - last[0] >= SAME_KEY_PRESS_S:
            last[0] = now
            raise KeyboardInterrupt

    return handler


def _end_with(parent: int) -> None:
    """End this process once the one that started it is gone: nobody would watch what it pays for."""
    while os.getppid() == parent:
        time.sleep(LOOK_AGAIN_S)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """What `python -m` runs."""
    sys.stdout, sys.stderr = WithoutKeys(sys.stdout), WithoutKeys(sys.stderr)
    handler = _interrupted_once()
    for number in (getattr(signal, name) for name in STOPS if hasattr(signal, name)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    if settings.status_file() is not None:
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    sys.exit(exit_code_of(sys.argv[1:]))


if __name__ == "__main__":
    main()
