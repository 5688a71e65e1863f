"""Which replies people label: a seeded sample by strata, written down beside the run so that it can be extended.

Within a stratum replies have a fixed order by chance, the digest of seed and id; a sample is the first of each. So a
larger sample of the same seed holds the smaller one, and what is labelled is by chance whatever comes to be labelled
first, as long as people work through their list from the top.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from interbench_tasks.errors import RunFolderError
from interbench_tasks.labels.items import Judgeable, LabelRun
from interbench_tasks.labels.scales import FLAWED
from interbench_tasks.metrics.calibration import LEAST_LABELS
from interbench_tasks.runs.folder import read_json, write_json

SAMPLE = "sample.json"
StrataBy = Literal["category", "none"]
PAPERS_ABILITIES = ("CR", "IU", "MR")
"""What MMRC had people score again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a sample is drawn."""

    n: int = 180
    strata: StrataBy = "category"
    """`category`: of a critique the subcategory; of conversations topics, too, beside ability and arm. `none`: a
    critique is one stratum; conversations still have one for each ability and arm, for each has a number of its own."""
    seed: int = 0
    annotators: int = 2
    abilities: tuple[str, ...] = PAPERS_ABILITIES
    """Of conversations: whose answers are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample that was drawn."""

    design: Design
    items: tuple[str, ...]
    """Ids in the order in which people see them: by chance, strata mixed."""


def stratum_of(item: Judgeable, strata: StrataBy) -> str:
    """The stratum of a reply, by name."""
    own = [] if item.kind == FLAWED else [item.kind, item.arm]
    own += [item.category] if strata == "category" and item.category else []
    return ".".join(own) or "all"


def frame(run: LabelRun, design: Design) -> dict[str, list[Judgeable]]:
    """Stratum -> the replies that can be drawn: given, and with a verdict of the panel."""
    found: dict[str, list[Judgeable]] = {}
    for item in run.items:
        if item.answered and item.panel is not None and (item.kind == FLAWED or item.kind in design.abilities):
            found.setdefault(stratum_of(item, design.strata), []).append(item)
    return dict(sorted(found.items()))


def drawn(run: LabelRun, design: Design) -> Sample:
    """The sample of a run.

    Raises: RunFolderError where nothing can be drawn, or `n` is too small for the strata.
    """
    unknown = [ability for ability in design.abilities if ability not in run.asked]
    if FLAWED not in run.asked and unknown:
        raise RunFolderError(f"--abilities {','.join(unknown)}: not among {', '.join(run.asked)}")
    strata = frame(run, design)
    if not strata:
        raise RunFolderError(f"{run.folder}: no reply here has a verdict of the panel, so there is nothing to label")
    sizes = {name: len(items) for name, items in strata.items()}
    least = sum(min(LEAST_LABELS, size) for size in sizes.values())
    if design.n < least:
        raise RunFolderError(
            f"--n {design.n} is too small for {len(strata)} strata, which need {LEAST_LABELS} labels each, or all of "
            f"their replies: {least} at least{' (or --strata none)' if design.strata != 'none' else ''}"
        )
    chosen = [
        item
        for name, n in allocation(sizes, design.n).items()
        for item in sorted(strata[name], key=lambda item: _by_chance(design.seed, item.id))[:n]
    ]
    chosen.sort(key=lambda item: _by_chance(design.seed + 1, item.id))
    return Sample(design=design, items=tuple(item.id for item in chosen))


def _by_chance(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()


def allocation(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many of each stratum are drawn: LEAST_LABELS of each, then in proportion, never more than there are.

    Proportion rather than as many of each: a rate over all items is then surest.

    >>> allocation({"a": 100, "b": 300, "c": 2}, 40)
    {'a': 10, 'b': 28, 'c': 2}
    """
    taken = {name: min(LEAST_LABELS, size) for name, size in sizes.items()}
    total = sum(sizes.values())
    for _ in range(min(n, total) - sum(taken.values())):
        open_ones = [name for name in sizes if taken[name] < sizes[name]]
        # The one that is furthest behind its share; a tie goes to the first by name, so that it is always the same.
        name = min(open_ones, key=lambda one: ((taken[one] + 0.5) / sizes[one], one))
        taken[name] += 1
    return taken


# --- kept beside the run ----------------------------------------------------------------------------------------------


def read_sample(folder: Path) -> Sample | None:
    """The sample of a run folder; None where none was drawn.

    Raises: RunFolderError where its file is damaged.
    """
    path = folder / SAMPLE
    if not path.exists():
        return None
    content = read_json(path)
    try:
        raw: dict[str, Any] = dict(content["design"])
        design = Design(**{**raw, "abilities": tuple(raw["abilities"])})
        items = tuple(str(item) for item in content["items"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{path}: cannot be read; was it written by another version? ({error})") from error
    if design.strata not in get_args(StrataBy):
        raise RunFolderError(f"{path}: strata = {design.strata!r}; allowed: {', '.join(get_args(StrataBy))}")
    return Sample(design=design, items=items)


def keep_sample(folder: Path, sample: Sample, *, labelled: Sequence[str]) -> None:
    """Write the sample down. Args: labelled = ids of replies that have labels already.

    Raises: RunFolderError where there are labels and the sample is not a larger one of the same kind: they would no
        longer be a sample by chance; or the folder cannot be written.
    """
    before = read_sample(folder)
    if before is not None and labelled:
        keys = ("seed", "strata", "abilities")
        changed = [key for key in keys if getattr(before.design, key) != getattr(sample.design, key)]
        told = ", ".join(f"{key} {getattr(before.design, key)} -> {getattr(sample.design, key)}" for key in changed)
        if changed:
            raise RunFolderError(
                f"{folder}: {len(set(labelled))} replies of the sample are labelled already, so it can only be made "
                f"larger; this changes {told}"
            )
        if sample.design.n < before.design.n:
            raise RunFolderError(
                f"{folder}: the sample has {before.design.n} replies and labels; --n {sample.design.n} is smaller"
            )
        more = tuple(item for item in sample.items if item not in set(before.items))
        sample = Sample(design=sample.design, items=(*before.items, *more))
    write_json(folder / SAMPLE, {"design": asdict(sample.design), "items": list(sample.items)})
