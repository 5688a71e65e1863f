"""Forecasts of feedback loops: how many calls they make depends on how often models are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from interbench_tasks.config import TaskOptions
from interbench_tasks.estimating.given import PROBES, TARGET_WIDTH, Given, check_shares
from interbench_tasks.estimating.picture_tokens import knows_pictures_of
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.prompts import PromptSizes, prompt_sizes
from interbench_tasks.estimating.ranges import RunEstimate, range_of, run_estimate
from interbench_tasks.estimating.task import Task
from interbench_tasks.prices import PriceList
from interbench_tasks.protocols.feedback_calls import (
    ArmKind,
    Known,
    LoopCalls,
    LoopShape,
    Rate,
    Rates,
    drawn_calls,
    rates_in,
    shape_from,
)
from interbench_tasks.protocols.feedback_learned import Learned, learned_from


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEstimate:
    """What a run will take, and what that rests on."""

    run: RunEstimate
    rates: Rates
    sizes: PromptSizes
    known: Known
    """What was played already."""
    notes: tuple[str, ...] = ()
    to_probe: int | None = None
    """Questions to play first, so that the range of calls gets narrow enough; None where it is, or cannot."""

    @property
    def n_known(self) -> int:
        """Episodes that are counted as they were played."""
        return self.known.n

    @property
    def n_known_calls(self) -> int:
        """Their calls."""
        known = self.known
        return (
            known.first
            + sum(known.solves)
            + sum(sum(counts.values()) for counts in (known.rounds, known.feedback, known.notes))
        )


def width_of_calls(shape: LoopShape, rates: Rates, known: Known, *, seed: int = 0) -> float:
    """How wide the range of all calls is, in relation to its mean."""
    return range_of(drawn_calls(shape, rates, known, n_draws=2_000, seed=seed).total).width


def _to_probe(shape: LoopShape, rates: Rates, n_known: int, given: Given) -> int | None:
    """The fewest questions to play first, so that the range of calls is narrow enough, if they turn out as expected."""
    for n in (*PROBES, shape.n_episodes):
        if n_known < n <= shape.n_episodes:
            then = _as_if(shape, rates, n)
            if width_of_calls(shape, given.over(then.rates), then.known) <= TARGET_WIDTH:
                return n
    return None


def _as_if(shape: LoopShape, rates: Rates, n: int) -> Learned:
    """What `n` questions would tell, where each thing happens as often as its rate's middle value says."""
    rates = rates_in(shape, rates)
    right = round(n * rates.right.middle)
    unreadable = round((n - right) * rates.unreadable.middle)
    wrong = n - right - unreadable
    everyone, nobody = (True,) * shape.n_providers, (False,) * shape.n_providers
    solve = _any_middle(rates, shape)
    solved = {everyone: round(wrong * solve), nobody: wrong - round(wrong * solve)}
    rounds: dict[tuple[ArmKind, int], int] = {
        (kind, 1): solved[everyone] for kind in shape.arms.values() if kind != "borrowed"
    }
    return Learned(
        rates=replace(
            rates,
            right=Rate(hits=right, trials=n),
            unreadable=Rate(hits=unreadable, trials=max(n - right, 1)),
            solved_together=solved,
            corrected={
                arm: Rate(hits=round(solved[everyone] * _corrected(rates, arm)), trials=max(solved[everyone], 1))
                for arm in shape.arms
            },
        ),
        known=Known(
            n=n,
            right=right,
            solved=solved,
            first=n,
            rounds=rounds,
            solves=(0 if shape.all_wrong else wrong,) * shape.n_providers,
        ),
    )


def _corrected(rates: Rates, arm: str) -> float:
    return rates.corrected.get(arm, rates.corrected_elsewhere).middle


def _any_middle(rates: Rates, shape: LoopShape) -> float:
    """The mean share of wrong answers that a provider solves."""
    if rates.solved_together:
        n = sum(rates.solved_together.values())
        hits = sum(sum(pattern) * count for pattern, count in rates.solved_together.items())
        return hits / (n * shape.n_providers)
    return sum(rate.middle for rate in rates.solved) / len(rates.solved)


def learned(shape: LoopShape, labels: Sequence[str], played: Played, rows: Sequence[int]) -> Learned:
    """What the episodes that were played tell of the run. Args: labels = of the providers; rows = of the run."""
    if not played.same:  # rates of other models are a guess at these; their calls are not this run's
        found = learned_from(played.records, shape=shape, labels=labels, rates=Rates())
        return Learned(rates=found.rates, known=Known())
    wanted = set(rows)
    own = [record for record in played.records if record.doc_id in wanted and record.repeat == 0]
    return learned_from(own, shape=shape, labels=labels, rates=Rates())


class LoopForecast:
    """Says what a run of one task will take."""

    def __init__(self, calls: LoopCalls, task: Task) -> None:
        self._calls = calls
        self._task = task
        self._options = task.options.protocol_options
        recorded = task.options.common.columns.first_answer is not None
        self.shape = shape_from(
            self._options,
            task.offers.feedback_providers,
            n_episodes=len(task.rows),
            first_recorded=recorded,
            memories=task.offers.memories,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the providers; one without a name where there is one."""
        return getattr(self._options, "providers", ()) or ("",)

    @property
    def matters(self) -> Sequence[str]:
        """Options that change the calls."""
        return self._calls.matters

    @property
    def playable(self) -> TaskOptions:
        """The options without what depends on which episodes are played together: the run would pay for that again."""
        plugins = self._task.offers.feedback_providers
        arms = tuple(arm for arm in self.shape.arms if getattr(plugins[arm], "borrows", None) is None)
        changes = {"flip_sample": 0, "arms": arms or tuple(self.shape.arms)}
        return replace(self._task.options, protocol_options=self._options.model_copy(update=changes))

    def estimate(self, played: Played, *, given: Given, prices: PriceList, seed: int = 0) -> LoopEstimate:
        """What a run of the task will take."""
        task, shape = self._task, self.shape
        check_shares(given, (), task.name)
        models = task.models(prices)
        sizes = prompt_sizes(task.data, task.options.common, [shown for _, shown in models], rows=task.rows)
        told = learned(shape, self.labels, played, task.rows)
        rates = given.over(told.rates)
        drawn = drawn_calls(shape, rates, told.known, seed=seed)
        run = run_estimate(
            drawn,
            [model for model, _ in models],
            sizes,
            assumed=given.assumed,
            seen=told.tokens,
            seed=seed,
            takers=shape.takers,
        )
        return LoopEstimate(
            run=run,
            rates=rates,
            sizes=sizes,
            known=told.known,
            notes=played.notes,
            to_probe=_to_probe(shape, rates, told.known.n, given) if run.calls.width > TARGET_WIDTH else None,
        )

    # --- in words -----------------------------------------------------------------------------------------------------

    def headline(self) -> str:
        """What is played."""
        shape = self.shape
        arms = ", ".join(f"{arm} ({kind})" for arm, kind in shape.arms.items())
        told = f"{self._task.name}: {len(self._task.rows):,} episodes; arms {arms}"
        return f"{told}; {_count(shape.max_rounds, 'feedback round')}"

    def basis(self, found: LoopEstimate, given: Given) -> Iterator[str]:
        """What the ranges rest on."""
        rates, shape = found.rates, self.shape
        yield f"right first answers: {_rate(rates.right, given.accuracy, '--accuracy')}"
        if shape.all_wrong:
            yield "every wrong first answer is tested; nobody solves the question first"
        elif rates.solved_together:
            n = sum(rates.solved_together.values())
            hits = [sum(c for p, c in rates.solved_together.items() if p[i]) for i in range(shape.n_providers)]
            yield f"wrong ones that a provider solves: {', '.join(f'{hit} of {n}' for hit in hits)} seen"
        else:
            told = _rate(rates.solved[0], given.provider_accuracy, "--provider-accuracy")
            yield f"wrong ones that a provider solves: {told}"
        if shape.max_rounds > 1:
            yield f"corrected in a round: {', '.join(_corrected_told(found, arm) for arm in shape.arms)}"
        low, high = given.assumed.reply
        said = "as you say" if given.reply is not None else "assumed (--reply-tokens)"
        seen = "as seen in the episodes played" if found.known.n else f"{low:g} to {high:g}, {said}"
        yield f"tokens of a reply: {seen}"
        sizes = found.sizes
        sample = "" if sizes.n_rows == sizes.n_total else f" (a sample of {sizes.n_rows} of {sizes.n_total:,} rows)"
        yield f"prompts: {sizes.question:,.0f} tokens of text, about 4 characters each{sample}{_pictures(found)}"
        if sizes.n_broken:
            yield f"{_count(sizes.n_broken, 'row')} of these cannot become a question: interbench check tells why"

    def advice(self, found: LoopEstimate) -> Iterator[str]:
        """How to narrow the ranges."""
        width = found.run.calls.width
        if width <= TARGET_WIDTH:
            return
        if found.to_probe is None:
            yield f"The range of calls is {width:.0%} of its mean wide, which only the run itself can narrow."
            return
        yield (
            f"The range of calls is {width:.0%} of its mean wide. --probe {found.to_probe} brings it to about "
            f"{TARGET_WIDTH:.0%}: it plays that many episodes now, for real, and the run takes them from the ledger."
        )


def _pictures(found: LoopEstimate) -> str:
    shown = []
    for model, (low, high) in found.sizes.pictures.items():
        if high > 0:
            how = "" if knows_pictures_of(model) else ", assumed: no rule is known for this model"
            shown.append(f"{model} {low:,.0f}{'' if low == high else f' to {high:,.0f}'} of pictures{how}")
    return f"; {'; '.join(shown)}" if shown else ""


def _corrected_told(found: LoopEstimate, arm: str) -> str:
    return f"{arm} {_rate(found.rates.corrected.get(arm, found.rates.corrected_elsewhere), None, '--from')}"


def _rate(rate: Rate, given: Rate | None, option: str) -> str:
    if rate.hits is not None:
        return f"{rate.hits} of {rate.trials} seen"
    shown = f"{rate.low:.0%}" if rate.low == rate.high else f"{rate.low:.0%} to {rate.high:.0%}"
    return f"{shown}, {'as you say' if given is not None else f'assumed ({option})'}"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
