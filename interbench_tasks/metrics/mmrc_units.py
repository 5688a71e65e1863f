"""What each question of a conversation adds to its metrics, for comparing two runs question by question."""

from __future__ import annotations

from collections.abc import Iterator

from interbench_tasks.metrics.mmrc_answers import Answer, answers_from_record
from interbench_tasks.metrics.mmrc_names import Lineup
from interbench_tasks.records import EpisodeRecord

Unit = tuple[float, float]
"""(value, weight): what a question adds to the sums whose ratio a metric is."""


def units_from_record(record: EpisodeRecord, lineup: Lineup) -> dict[str, dict[str, Unit]]:
    """Metric -> question id -> what it adds, for each question that the metric is scored on.

    Summed over the questions they are `ConversationMetrics.parts`. A question that is unscored is in none.
    """
    found: dict[str, dict[str, Unit]] = {}
    for answer in answers_from_record(record, lineup.arms):
        for name, unit in _units(answer, judged=lineup.scale is not None):
            found.setdefault(f"{name}.{answer.arm}", {})[answer.question.id] = unit
    for arm, base in lineup.pairs:
        for name in [name for name in found if name.startswith("score.") and name.endswith(f".{arm}")]:
            ability = name.split(".")[1]
            of_base = found.get(f"score.{ability}.{base}", {})
            both = {one: unit for one, unit in found[name].items() if one in of_base}
            own = {one: (value - of_base[one][0], 1.0) for one, (value, _) in both.items()}
            if own:
                found[f"difference.{ability}.{arm}-{base}"] = own
    return found


def _units(answer: Answer, *, judged: bool) -> Iterator[tuple[str, Unit]]:
    """(metric without its arm, what the answer adds)."""
    if judged and answer.score is not None:
        yield f"score.{answer.question.ability}", (answer.score, 1.0)
    if answer.correct is not None:
        yield "accuracy", (float(answer.correct), 1.0)
        yield f"accuracy.{answer.question.ability}", (float(answer.correct), 1.0)
    items = answer.items() if answer.wants_items else None
    if items is not None:
        yield "ep", (items.precision, 1.0)
        yield "ep_recall", (items.recall, 1.0)
        yield "ep_f1", (items.f1, 1.0)
    pictures = answer.pictures() if answer.wants_pictures else None
    if pictures is not None:
        yield "imp", (pictures.recall, 1.0)
        yield "imp_precision", (pictures.precision, 1.0)
        yield "imp_micro", (float(pictures.hits), float(pictures.wanted))
        yield "imp_precision_micro", (float(pictures.hits), float(pictures.named))
    refused = answer.refused() if answer.wants_refusal else None
    if refused is not None:
        yield "rp", (float(refused), 1.0)
