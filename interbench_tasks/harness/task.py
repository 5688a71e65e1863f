"""The class that every task YAML of ours names: loads the data, hands out requests, looks results up."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from lmms_eval.api.task import ConfigurableMessagesTask
from loguru import logger

from interbench_tasks import settings
from interbench_tasks.config import task_options_from
from interbench_tasks.conversations import reader_from
from interbench_tasks.errors import HarnessError, InterbenchError
from interbench_tasks.harness.hidden_keys import keys_hidden
from interbench_tasks.harness.playing import play_task
from interbench_tasks.harness.registration import OWNER, REQUEST_TYPE, registration_problems
from interbench_tasks.items import picture_columns
from interbench_tasks.metrics.intervals import Estimate
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.redaction import redact
from interbench_tasks.report.writing import REPORT, write_report
from interbench_tasks.rows import DataSet, Rows, load_rows
from interbench_tasks.runs.folder import METRICS, merge_ranks, write_json
from interbench_tasks.runs.plan import Facts
from interbench_tasks.runs.play import parts_from
from interbench_tasks.runs.score import metrics_from
from interbench_tasks.runs.status import note
from interbench_tasks.runs.usage_file import merge_usage
from interbench_tasks.usage import Spent

ALL_ROWS = "N"
"""The metric that carries every episode's summary. Capital: the ranks' metric names are sorted, and this one must be
aggregated first, so that the others can be looked up in the table it makes."""
HIGHER_IS_BETTER = (
    *("accuracy", "correction_rate", "discrimination", "overall.", "score.", "ep", "imp", "rp."),
    *("eda", "dp", "se", "pcq", "meda", "type_coverage", "all_detected", "precision", "recall", "f1"),
)
CHAT_TEMPLATE = "--apply_chat_template"
NO_CHAT_TEMPLATE = (
    f"{CHAT_TEMPLATE} cannot be used: chat backends get the conversation as messages and apply their own template; "
    "leave it out"
)
SIBLINGS: Mapping[str, Callable[[Estimate], float | int | None]] = {
    "": lambda estimate: estimate.value,
    ".ci95_low": lambda estimate: estimate.ci95[0] if estimate.ci95 else None,
    ".ci95_high": lambda estimate: estimate.ci95[1] if estimate.ci95 else None,
    ".n": lambda estimate: estimate.n,
    ".unscored": lambda estimate: estimate.unscored,
}


class InteractiveTask(ConfigurableMessagesTask):  # type: ignore[misc] # the harness is untyped
    """A task of Interbench in the harness's eyes."""

    @keys_hidden()
    def __init__(self, config: dict[str, Any] | None = None, **_: Any) -> None:
        _refuse_a_broken_bridge()
        config = dict(config or {})
        config.pop("class", None)
        self._where = f"task {config.get('task')}"
        if any(word.startswith("--a") and CHAT_TEMPLATE.startswith(word) for word in sys.argv[1:]):
            raise HarnessError(f"{self._where}: {NO_CHAT_TEMPLATE}")  # later the harness fails at it by itself
        if not re.fullmatch(r"\w[\w.-]*", str(config.get("task"))):  # it names a folder
            raise HarnessError(f"{self._where}: a task's name may hold letters, digits, _ . and - only")
        self._manager = build_plugin_manager()
        self._offers = offers_from(self._manager)
        self._options = task_options_from(config, where=self._where, offers=self._offers)
        self._metric_set = self._offers.metrics[self._options.metrics](self._options.protocol_options)
        self._problems: set[str] = set()
        self._table: dict[str, Estimate] | None = None
        self._run_path: Path | None = None
        self._n_total: int | None = None
        self._n_second_pass: int | None = None
        self.spent = Spent()
        # Replies must come back byte for byte: the harness would cut think tags out of the string that carries them.
        config |= {"reasoning_tags": "none", "auto_strip_thinking": False, "output_type": "generate_until"}
        super().__init__(config=config)

    # --- data -----------------------------------------------------------------------------------------------------

    @keys_hidden()
    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        """Load the rows with undecoded pictures; a missing data set is one clear sentence, not five tries."""
        split = self.config.test_split or self.config.validation_split or "test"
        if not self.config.dataset_path:
            raise InterbenchError(f"{self._where}: dataset_path is missing")
        self._data = load_rows(
            self.config.dataset_path,
            name=self.config.dataset_name,
            split=split,
            options=dict(dataset_kwargs or {}),
        )
        reader_from(self._data, self._options)  # names missing columns and wrong rows before a model is loaded
        self.config.test_split, self.config.validation_split = split, None
        self.dataset = {split: self._data.rows}
        self.dataset_no_image = {split: _without_pictures(self._data, self._picture_columns())}

    def _picture_columns(self) -> tuple[str, ...]:
        """The columns that the harness need not carry along."""
        if self._options.reads == "conversations":  # pictures lie within the turns
            mapping: Mapping[str, Sequence[str]] = getattr(self._options.protocol_options, "mapping", {})
            return tuple(mapping.get("turns", ("turns",)))
        if self._options.reads == "flawed_items":
            names: Mapping[str, Sequence[str]] = getattr(self._options.protocol_options, "mapping", {})
            return tuple(names.get("images", ("images",)))
        return picture_columns(self._options.common.columns)

    def doc_to_text(self, doc: Mapping[str, Any]) -> str:
        """The bare question; the prompt is made when the episode is."""
        return str(doc.get(self._options.common.columns.question, ""))

    def doc_to_target(self, doc: Mapping[str, Any]) -> str:
        """The answer as the data set has it."""
        return str(doc.get(self._options.common.columns.answer, ""))

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        """Nothing: pictures go with the messages of an episode."""
        return []

    def fewshot_context(self, doc: Mapping[str, Any], *_: Any, **__: Any) -> str:
        """The bare question: our tasks have no few-shot examples."""
        return self.doc_to_text(doc)

    # --- requests -------------------------------------------------------------------------------------------------

    def build_all_requests(self, *args: Any, **kwargs: Any) -> None:
        """As the harness does, but refuses what cannot work with us."""
        if kwargs.get("apply_chat_template"):
            raise HarnessError(f"{self._where}: {NO_CHAT_TEMPLATE}")
        if kwargs.get("cache_requests"):
            raise HarnessError(f"{self._where}: --cache_requests cannot store our requests; leave it out")
        if self.config.num_fewshot:
            raise HarnessError(f"{self._where}: --num_fewshot has no effect on our tasks; leave it out")
        if kwargs.get("system_instruction") is not None:
            raise HarnessError(
                f"{self._where}: --system_instruction has no effect on our tasks; write metadata.interbench.system "
                "in a YAML of your own (interbench new-task)"
            )
        super().build_all_requests(*args, **kwargs)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> list[Instance]:
        """One Instance per repeat: a single one with `repeats` k would be paid k times and kept once."""
        metadata = {**kwargs.pop("metadata"), "repeats": 1}
        generation = {**self.config.generation_kwargs, "do_sample": True}  # the harness's cache leaves us alone then
        return [
            Instance(
                request_type=REQUEST_TYPE,
                arguments=(ctx, self, generation, doc_id, self.config.task, metadata["split"]),
                idx=repeat,
                metadata=metadata,
            )
            for repeat in range(max(int(self.config.repeats or 1), 1))
        ]

    @property
    def two_passes(self) -> bool:
        """Whether the protocol plays some episodes on when all were played; then all ranks meet once in between."""
        made = self._offers.protocols[self._options.common.protocol]
        return bool(
            getattr(made(self._options.protocol_options, parts_from(self._options, self._offers)), "two_passes", False)
        )

    def play(
        self,
        lm: Any,  # noqa: ANN401 - the harness is untyped
        wanted: Sequence[tuple[int, int]],
        run_id: str,
        n_total: int,
        from_all_ranks: Callable[[Facts], Facts],
        spent_before: Spent,
    ) -> dict[tuple[int, int], str]:
        """Play episodes; called by our request type. Returns (doc_id, repeat) -> summary as JSON.

        Args: wanted = this rank's; n_total = how many all ranks play together; from_all_ranks, spent_before = see
            `RunPlan`.
        """
        self._n_total = n_total
        played = play_task(
            lm,
            task=self.config.task,
            options=self._options,
            data=self._data,
            wanted=wanted,
            n_total=n_total,
            from_all_ranks=from_all_ranks,
            run_id=run_id,
            args=getattr(self, "args", None),
            manager=self._manager,
            offers=self._offers,
            generation=self.config.generation_kwargs,
            spent_before=spent_before,
        )
        self.spent = played.spent
        self._run_path = played.folder
        self._n_second_pass = played.n_second_pass
        return {key: _escaped(summary) for key, summary in played.summaries.items()}

    # --- results --------------------------------------------------------------------------------------------------

    def _prepare_metric_and_aggregation(self) -> None:
        """The metrics come from the protocol, not from `metric_list`."""
        self._metric_fn_list: dict[str, Any] = {}
        self._metric_fn_kwargs: dict[str, Any] = {}
        self._aggregation_list: dict[str, Any] = {}
        self._higher_is_better: dict[str, Any] = {}

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any], **_: Any) -> dict[str, Any]:
        """What the harness logs of one doc; never raises, never holds None or NaN."""
        if "bypass" in self._metric_fn_list:  # --predict_only
            return {"bypass": len(results)}
        summaries = [_summary_from(result) for result in _flat(results)]
        bare = getattr(self._metric_set, "bare", ())
        row: dict[str, Any] = {ALL_ROWS: {"summaries": [summary for summary in summaries if summary is not None]}}
        for summary in row[ALL_ROWS]["summaries"]:
            contributions = self._contributions(summary)
            for name in self._metric_set.headline(list(contributions)):
                if name == "n":
                    continue  # the same number as ALL_ROWS
                row[name] = {"value": contributions[name]}
                for sibling in [] if is_count(name) or name in bare else SIBLINGS:
                    row.setdefault(name + sibling, {})
        return row

    def _contributions(self, summary: Mapping[str, Any]) -> dict[str, float]:
        try:
            found = dict(self._metric_set.contributions(summary))
        except Exception as error:  # noqa: BLE001 - raising here would lose every task's results after all was paid
            self._tell_problem(f"metrics of an episode failed, the first is {summary.get('id')}", repr(error))
            return {}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _tell_problem(self, what: str, why: str) -> None:
        """Log what went wrong, and note it for `interbench run`; the same again is told once."""
        if why in self._problems:
            return
        self._problems.add(why)
        text = redact(f"{what}: {why}")
        logger.error(f"interbench: {self._where}: {text}")
        note("problem", text, task=str(self.config.task))

    def _metrics(self, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        second = {"n_episodes": self._n_second_pass} if self.two_passes else None
        return metrics_from(
            self._metric_set, summaries, task=self.config.task, n_wanted=self._n_total, second_pass=second
        )

    def aggregation(self) -> dict[str, Callable[[list[Any]], Any]]:
        """Metric -> function of the harness's items. The table is made once, of all rows; the others are looked up."""
        if "bypass" in self._metric_fn_list:
            return dict(self._aggregation_list)
        found: dict[str, Callable[[list[Any]], Any]] = {ALL_ROWS: self._aggregate_all}
        for name, estimate in (self._table or {}).items():
            for sibling, value_of in SIBLINGS.items():
                value = value_of(estimate)
                if value is not None and (sibling == "" or not is_count(name)):
                    found[name + sibling] = partial(_looked_up, value)
        return found

    def higher_is_better(self) -> dict[str, bool | None]:
        """True for rates that should be high; nothing for counts, siblings and controls."""
        return {name: True for name in self._table or {} if name.startswith(HIGHER_IS_BETTER)}

    def _aggregate_all(self, items: Sequence[Mapping[str, Any]]) -> int:
        """The number of episodes; makes the table and writes `metrics.json` on the way."""
        summaries = [summary for item in items for summary in item["summaries"]]
        summaries.sort(key=lambda summary: (summary["doc_id"], summary["repeat"]))
        try:
            self._table = _finite(self._metric_set.table(summaries))
        except Exception as error:  # noqa: BLE001 - raising here would lose every task's results after all was paid
            self._tell_problem("the metrics cannot be computed", repr(error))
            self._table = {}
            return len(summaries)
        if self._run_path is not None:
            try:
                merge_ranks(self._run_path)
                merge_usage(self._run_path)
                write_json(self._run_path / METRICS, self._metrics(summaries))
            except Exception as error:  # noqa: BLE001 - the harness's own table must not be lost for it
                why = str(error) if isinstance(error, InterbenchError) else repr(error)
                self._tell_problem("the metrics are not on disk", why)
            logger.info(f"interbench: transcripts and metrics are in {self._run_path}")
            self._write_report(self._run_path)
        return len(summaries)

    def _write_report(self, folder: Path) -> None:
        """Write the run's report beside its transcripts, where the user named a folder; it cannot harm the run."""
        if not getattr(getattr(self, "args", None), "output_path", None) or not settings.report_wanted():
            return
        path = folder / REPORT
        try:
            written = write_report([folder], path, self._offers)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a report, the run's results are there
            why = redact(str(error) if isinstance(error, InterbenchError) else repr(error))
            logger.warning(f"interbench: no report: {why}. Later: interbench report {folder} -o {path}")
            return
        logger.info(f"interbench: the report is {path} ({written.n_bytes / 1e6:.1f} MB, {written.wall_s:.1f} s)")


def is_count(name: str) -> bool:
    """True for metrics that count episodes (`n_test`): they have no interval.

    >>> is_count("n_test"), is_count("accuracy")
    (True, False)
    """
    return name == "n" or name.startswith("n_")


def _finite(table: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The table without undefined values: the harness's results must hold no NaN."""
    return {name: estimate for name, estimate in table.items() if math.isfinite(estimate.value)}


def _looked_up(value: float | int, items: Sequence[Any]) -> float | int:
    return value


def _refuse_a_broken_bridge() -> None:
    problems = list(registration_problems())
    if getattr(getattr(lmms, REQUEST_TYPE, None), OWNER, None) is None and not problems:
        problems = [f"another plugin took {REQUEST_TYPE} after us; uninstall it to use our tasks"]
    if problems:
        raise HarnessError("Interbench could not be set up in lmms-eval: " + "; ".join(problems))
    unknown = settings.unknown_variables()
    if unknown:
        allowed = ", ".join(sorted(settings.KNOWN_VARIABLES))
        raise HarnessError(f"unknown environment variable: {', '.join(unknown)}; allowed: {allowed}")


def _without_pictures(data: DataSet, columns: Sequence[str]) -> Any:  # noqa: ANN401 - datasets is untyped
    left = sorted({*data.picture_columns, *columns} & set(data.rows.features))
    if isinstance(data.rows, Rows):
        return data.rows.without(left)
    return data.rows.remove_columns(left) if left else data.rows


def _escaped(summary: Mapping[str, Any]) -> str:
    """JSON in which no tag of any kind can be found, should anybody look for think tags again."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _flat(results: Sequence[Any]) -> list[Any]:
    return [inner for result in results for inner in (result if isinstance(result, list) else [result])]


def _summary_from(result: object) -> dict[str, Any] | None:
    """The summary in a reply of ours; None for `""`, which the harness keeps where nothing was asked (padding)."""
    if not isinstance(result, str) or not result:
        return None
    try:
        summary = json.loads(result)
    except ValueError:
        return None
    return summary if isinstance(summary, dict) and {"doc_id", "repeat"} <= summary.keys() else None
