"""What we add to the harness's start: its imports with and without our entry point in turn, and making our task."""

from __future__ import annotations

import statistics
import subprocess
import sys

TARGET_S = 0.3
RUNS = 5
HIDE = """
import importlib.metadata as metadata
found = metadata.entry_points

def without_us(**kw):
    kept = found(**kw)
    if not kw and hasattr(kept, "values"):  # Python 3.11: a mapping of group to entry points
        kept = [entry for group in kept.values() for entry in group]
    return metadata.EntryPoints(entry for entry in kept if "interbench" not in entry.value)

metadata.entry_points = without_us
"""
START = """
import time
began = time.perf_counter()
import lmms_eval.evaluator
from lmms_eval.tasks import TaskManager
print(time.perf_counter() - began)
"""
TASK = """
import time
import lmms_eval.evaluator
from lmms_eval.tasks import TaskManager
manager = TaskManager(include_defaults=False, include_path={folder!r})
began = time.perf_counter()
manager.load_task_or_group(["interfeedback_demo"])
print(time.perf_counter() - began)
"""


def seconds(code: str) -> float:
    """What a fresh Python prints last."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> int:
    """Print the figures; 1 where the target is missed."""
    from interbench_tasks.task_files import task_folder

    task_code = TASK.format(folder=str(task_folder()))
    runs = [(seconds(START), seconds(HIDE + START), seconds(task_code)) for _ in range(RUNS)]
    ours, bare, task = (statistics.median(column) for column in zip(*runs, strict=True))
    share = ours - bare + task
    sys.stdout.write(
        f"harness's imports {bare:.2f} s, with us {ours:.2f} s; making the demo task {task:.2f} s\n"
        f"our share of the start: {share:.2f} s (target < {TARGET_S} s), medians of {RUNS} runs in turn\n"
    )
    return int(share >= TARGET_S)


if __name__ == "__main__":
    raise SystemExit(main())
