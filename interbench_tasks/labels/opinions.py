"""What people said of the sampled replies, beside the judges and the panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.items import Judgeable, LabelRun, label_run
from interbench_tasks.labels.sampling import SAMPLE, Sample, read_sample
from interbench_tasks.labels.scales import Opinion
from interbench_tasks.labels.store import LABELS, Label, read_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One reply of the sample and its labels."""

    item: Judgeable
    labels: tuple[Label, ...]
    opinions: tuple[Opinion, ...]
    """One a label, in their order."""
    people: Opinion
    """What they come to together; empty where nobody labelled it or all is open."""

    @property
    def open_fields(self) -> bool:
        """Whether two people differ so much that a third has to look."""
        return len(self.opinions) == 2 and bool(set(self.opinions[0]) - set(self.people))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRun:
    """A run, its sample, and what people said so far."""

    run: LabelRun
    sample: Sample
    items: Mapping[str, Labelled] = field(repr=False)
    """Id -> reply, for all of the sample, in its order."""
    problems: tuple[str, ...] = ()
    """What of the labels could not be used, each a sentence."""

    @property
    def disagreed(self) -> tuple[Labelled, ...]:
        """Replies that wait for a third person."""
        return tuple(one for one in self.items.values() if one.open_fields)

    @property
    def n_labelled(self) -> int:
        """Replies with a label at least."""
        return sum(bool(one.labels) for one in self.items.values())

    @property
    def n_complete(self) -> int:
        """Replies with as many labels as were planned, and no open question."""
        wanted = self.sample.design.annotators
        return sum(len(one.labels) >= wanted and not one.open_fields for one in self.items.values())


def labelled_run(folder: Path, labels_from: Path | None = None) -> LabelledRun:
    """A run with its labels.

    Args: labels_from = another run's folder that has the labels, of the same replies, which other judges judged.
    Raises: RunFolderError where no sample was drawn, a file is damaged, or the labels are of other replies.
    """
    run = label_run(folder)
    source = labels_from or folder
    sample = read_sample(source)
    if sample is None:
        raise RunFolderError(
            f"{source}: has no {SAMPLE}: draw a sample first: interbench people sample {source} -o FILE"
        )
    known = run.by_id()
    missing = [name for name in sample.items if name not in known]
    if missing:
        raise RunFolderError(
            f"{source / SAMPLE}: {len(missing)} of {len(sample.items)} replies are not in {folder}, e.g. {missing[0]}; "
            "its labels are of other replies"
        )
    return joined(run, sample, read_labels(source), where=source / LABELS)


def joined(run: LabelRun, sample: Sample, labels: Sequence[Label], *, where: Path) -> LabelledRun:
    """A run, its sample and its labels put together; a label that cannot be used is told and left out."""
    known = run.by_id()
    of_item: dict[str, list[tuple[Label, Opinion]]] = {name: [] for name in sample.items}
    problems: list[str] = []
    for label in labels:
        if label.item not in of_item:
            problems.append(
                f"{where}: {label.annotator} has labelled {label.item}, which is not in the sample; left out"
            )
            continue
        opinion, wrong = run.asked[known[label.item].kind].opinion(label.values)
        if wrong:
            problems.append(f"{where}: {label.annotator} on {label.item}: {'; '.join(wrong)}; left out")
            continue
        of_item[label.item].append((label, opinion))
    items = {}
    for name, own in of_item.items():
        item = known[name]
        opinions = tuple(opinion for _, opinion in own)
        items[name] = Labelled(
            item=item,
            labels=tuple(label for label, _ in own),
            opinions=opinions,
            people=run.asked[item.kind].agreed(opinions),
        )
    return LabelledRun(run=run, sample=sample, items=items, problems=tuple(problems))
