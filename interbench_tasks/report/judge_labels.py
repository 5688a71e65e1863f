"""What each judge of a run said of the same replies, as labels that agreement is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interbench_tasks.metrics.agreement import Label
from interbench_tasks.metrics.critique_panel import DETECTED, FIELDS, CritiquePanel
from interbench_tasks.records import Turn
from interbench_tasks.report.trimmed import trimmed_records
from interbench_tasks.report_parts import ReportRun


@dataclass(slots=True, kw_only=True)
class JudgedField:
    """One thing that judges say, over all judged replies of one run or several."""

    name: str
    ordinal: bool
    categories: tuple[Label, ...]
    """All labels that there can be; where they have an order, the lowest first."""
    judges: tuple[str, ...]
    rows: list[list[Label | None]] = field(default_factory=list)
    """By reply: what each judge called it, None where it gave no label."""
    clusters: list[str] = field(default_factory=list)
    """By reply: what replies share that are not independent."""
    inapplicable: list[list[bool]] = field(default_factory=list)
    """By reply: whether each judge gave no label because there is none to give; else a missing one is a failure."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Lowest and highest label; None where they have no order."""
        numbers = [label for label in self.categories if isinstance(label, int | float)]
        ranked = self.ordinal or self.name == "detected"
        return (float(numbers[0]), float(numbers[-1])) if ranked and len(numbers) > 1 else None


def joined(fields: Sequence[JudgedField]) -> JudgedField:
    """The replies of several runs together. Args: fields = of one name and the same judges, at least one."""
    first = fields[0]
    return JudgedField(
        name=first.name,
        ordinal=first.ordinal,
        categories=first.categories if len({one.categories for one in fields}) == 1 else _all_categories(fields),
        judges=first.judges,
        rows=[row for one in fields for row in one.rows],
        clusters=[cluster for one in fields for cluster in one.clusters],
        inapplicable=[row for one in fields for row in one.inapplicable],
    )


def _all_categories(fields: Sequence[JudgedField]) -> tuple[Label, ...]:
    found = {label for one in fields for label in one.categories}
    return tuple(sorted(found, key=lambda label: (isinstance(label, str), label)))


def fields_of_critiques(run: ReportRun) -> list[JudgedField]:
    """What the judges of a run of critiques said of final answers to inputs with one flaw; none for one judge."""
    panel = CritiquePanel()
    votes = [(panel.votes(summary), summary) for summary in run.summaries]
    judges = tuple(dict.fromkeys(judge for given, _ in votes for judge in given))
    if len(judges) < 2:
        return []
    found = [JudgedField(name=f.name, ordinal=f.ordinal, categories=tuple(f.labels), judges=judges) for f in FIELDS]
    for given, summary in votes:
        if not given:
            continue
        for place, (own, what) in enumerate(zip(found, FIELDS, strict=True)):
            cells = [given.get(judge) for judge in judges]
            row = [_told(vote, place, needs_detection=what.needs_detection) for vote in cells]
            own.rows.append(row)
            own.inapplicable.append(
                [label is None and vote is not None for label, vote in zip(row, cells, strict=True)]
            )
            own.clusters.append(_cluster(summary.get("cluster"), str(summary["id"])))
    return found


def _told(vote: Sequence[float] | None, place: int, *, needs_detection: bool) -> Label | None:
    if vote is None or (needs_detection and vote[DETECTED] != 1):
        return None
    return int(vote[place])


def fields_of_conversations(run: ReportRun) -> list[JudgedField]:
    """The scores, and where there are any the labels, that judges gave to answers; none for one judge.

    Raises: RunFolderError where the transcripts cannot be read.
    """
    scores: list[tuple[Mapping[str, Label], str]] = []
    labels: list[tuple[Mapping[str, Label], str]] = []
    spoke: list[set[str]] = []
    judges: dict[str, None] = {}
    for record in trimmed_records(run.folder, judges=True):
        for turn in record.turns:
            if len(turn.verdicts) > 1:
                judges |= dict.fromkeys(verdict.judge for verdict in turn.verdicts)
                cluster = _cluster(record.cluster, record.episode_id)
                scores.append((_scores(turn), cluster))
                labels.append((_labels(turn), cluster))
                spoke.append({verdict.judge for verdict in turn.verdicts if verdict.status == "scored"})
    found = [_field(name, of, spoke, tuple(judges)) for name, of in (("score", scores), ("label", labels))]
    return [one for one in found if one.categories and len(judges) > 1]


def _scores(turn: Turn) -> dict[str, Label]:
    return {v.judge: v.score for v in turn.verdicts if v.status == "scored" and v.score is not None}


def _labels(turn: Turn) -> dict[str, Label]:
    return {v.judge: v.label for v in turn.verdicts if v.status == "scored" and v.label}


def _field(
    name: str,
    given: Sequence[tuple[Mapping[str, Label], str]],
    spoke: Sequence[set[str]],
    judges: tuple[str, ...],
) -> JudgedField:
    categories = tuple(sorted({label for own, _ in given for label in own.values()}))
    told = [(own, cluster, by) for (own, cluster), by in zip(given, spoke, strict=True) if name == "score" or own]
    return JudgedField(
        name=name,
        ordinal=name == "score",
        categories=categories,
        judges=judges,
        rows=[[own.get(judge) for judge in judges] for own, _, _ in told],
        clusters=[cluster for _, cluster, _ in told],
        inapplicable=[[judge in by and judge not in own for judge in judges] for own, _, by in told],
    )


def _cluster(cluster: str | None, id: str) -> str:
    return f"id {id}" if cluster is None else f"cluster {cluster}"
