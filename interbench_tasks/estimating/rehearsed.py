"""Forecasts of protocols whose calls can be rehearsed: conversations and critiques.

The number of calls comes from a rehearsal: it is exact, but for kinds of calls that depend on what models say, whose
shares are drawn. Tokens are those of the prompts, plus the replies that they quote, plus the replies themselves; how
long replies are is assumed, or learned from episodes that were played. These also tell by how much the rule of thumb
is wrong for their texts and pictures. What was played is counted as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from interbench_tasks.config import TaskOptions
from interbench_tasks.estimating.given import PROBES, TARGET_WIDTH, Given, check_shares
from interbench_tasks.estimating.lengths import Learned, assumed_length, learned_lengths
from interbench_tasks.estimating.picture_tokens import knows_pictures_of
from interbench_tasks.estimating.played import Played
from interbench_tasks.estimating.prompts import TEXT_RANGE
from interbench_tasks.estimating.ranges import (
    LEVEL,
    N_DRAWS,
    Amounts,
    Range,
    RoleEstimate,
    RoleModel,
    RunEstimate,
    range_of,
)
from interbench_tasks.estimating.rehearsal import Key, Rehearsal, Size, rehearsed
from interbench_tasks.estimating.task import Task
from interbench_tasks.prices import PriceList
from interbench_tasks.protocols.feedback_calls import Counts, Rate
from interbench_tasks.protocols.rehearsed import AGAIN, THOUGHTS, RehearsedCalls

WIDE = 0.5
"""A range of tokens wider than this, in relation to its mean, is worth a few episodes played first."""
TO_LEARN = 5
"""Episodes that tell how long replies are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedEstimate:
    """What a run will take, and what that rests on."""

    run: RunEstimate
    rehearsal: Rehearsal
    learned: Learned
    shares: Mapping[str, Rate]
    """Kind of call that depends on what models say -> its share."""
    notes: tuple[str, ...] = ()
    to_probe: int | None = None
    n_rows: int
    """Rows that the run will play."""
    thumb: Mapping[str, float] = field(default_factory=dict)
    """Model -> most tokens of the pictures of an episode."""

    @property
    def n_known(self) -> int:
        """Episodes that are counted as they were played."""
        return len(self.learned.known)

    @property
    def n_known_calls(self) -> int:
        """Their calls."""
        return sum(played.calls for own in self.learned.known.values() for played in own.values())


class RehearsedForecast:
    """Says what a run of one task will take."""

    def __init__(self, calls: RehearsedCalls, task: Task) -> None:
        self._calls = calls
        self._task = task

    @property
    def matters(self) -> Sequence[str]:
        """Options that change the calls."""
        return self._calls.matters

    @property
    def playable(self) -> TaskOptions:
        """The options by which single episodes can be played ahead of the run: its own."""
        return self._task.options

    def estimate(self, played: Played, *, given: Given, prices: PriceList, seed: int = 0) -> RehearsedEstimate:
        """What a run of the task will take."""
        check_shares(given, tuple(self._calls.chances), self._task.name)
        models = self._task.models(prices)
        shown = {model.role: pictured for model, pictured in models}
        own = learned_lengths(self._calls, played, self._task.rows)
        wanted = [record.doc_id for record in own.records if record.doc_id in set(self._task.rows)]

        def length(kind: str) -> float:
            return own.mean(kind) or sum(assumed_length(kind, given)) / 2

        rehearsal = rehearsed(self._task, self._calls, shown, length, also=wanted)
        learned = own.against(rehearsal)
        chances = {kind: self._chance(kind, rehearsal, learned, given) for kind in self._kinds(rehearsal)}
        run = _Drawing(self, rehearsal, learned, chances, given, [model for model, _ in models], seed).run()
        return RehearsedEstimate(
            run=run,
            rehearsal=rehearsal,
            learned=learned,
            shares=chances,
            notes=played.notes,
            n_rows=len(self._task.rows),
            to_probe=self._to_probe(run, rehearsal, learned, chances, given),
            thumb={model.name: _most_pictures(rehearsal, role) for role, model in shown.items()},
        )

    def _kinds(self, rehearsal: Rehearsal) -> list[str]:
        """What depends on what models say: kinds with a chance, and repeated ones, that this task has."""
        there = {kind for own in rehearsal.episodes.values() for _, kind in own}
        again = [f"{kind} {AGAIN}" for kind in self._calls.repeats if kind in there]
        return [*[kind for kind in self._calls.chances if kind in there], *again]

    def _chance(self, kind: str, rehearsal: Rehearsal, learned: Learned, given: Given) -> Rate:
        if kind in given.shares:
            return given.shares[kind]
        base = kind.removesuffix(f" {AGAIN}")
        hits, trials = 0, 0
        for doc in sorted(learned.same_rows):
            own = learned.told[doc]
            roles = {role for (role, k) in rehearsal.episodes[doc] if k == base}
            for role in roles:
                made = own.get((role, base))
                rehearsed_calls = rehearsal.episodes[doc][role, base].calls
                trials += rehearsed_calls if kind == base else (made.calls if made is not None else 0)
                counted = own.get((role, kind))
                hits += counted.calls if counted is not None else 0
        if trials:
            return Rate(hits=min(hits, trials), trials=trials)
        return self._calls.chances[kind] if kind in self._calls.chances else self._calls.repeats[base]

    def _to_probe(
        self, run: RunEstimate, rehearsal: Rehearsal, learned: Learned, chances: Mapping[str, Rate], given: Given
    ) -> int | None:
        """Episodes to play first: so that calls get certain enough, or to learn how long replies are."""
        n = len(self._task.rows)
        if run.calls.width > TARGET_WIDTH:
            per_doc = {
                kind: sum(
                    size.calls for own in rehearsal.episodes.values() for (_, k), size in own.items() if k == kind
                )
                / len(rehearsal.episodes)
                for kind in chances
            }
            for size in PROBES:
                if len(learned.told) < size <= n and _width(rehearsal, chances, per_doc, size, n) <= TARGET_WIDTH:
                    return size
            return None
        if not learned.told and n > 1 and _token_width(run) > WIDE:
            return min(TO_LEARN, n)
        return None

    # --- in words -----------------------------------------------------------------------------------------------------

    def headline(self) -> str:
        """What is played."""
        return f"{self._task.name}: {len(self._task.rows):,} episodes of the protocol {self._task.protocol}"

    def basis(self, found: RehearsedEstimate, given: Given) -> Iterator[str]:
        """What the ranges rest on."""
        if not found.shares:
            yield "calls: all are certain, as long as none fails; the same request is made once"
        for kind, rate in found.shares.items():
            said = "as you say" if kind in given.shares else "assumed"
            if kind in self._calls.chances and kind not in given.shares:
                said += f" (--share '{kind}=...')"
            yield f"share of calls '{kind}': {_shown(rate, said)}"
        lengths = {kind: found.learned.mean(kind) for kind in _reply_kinds(found.rehearsal)}
        seen = [f"{kind} {mean:,.0f}" for kind, mean in lengths.items() if mean is not None]
        if seen:
            yield f"mean tokens of a reply, as seen in {_count(len(found.learned.told), 'episode')}: {', '.join(seen)}"
        guessed = {kind: assumed_length(kind, given) for kind, mean in lengths.items() if mean is None}
        if guessed:
            told = ", ".join(f"{kind} {low:,.0f} to {high:,.0f}" for kind, (low, high) in guessed.items())
            yield f"tokens of a reply, assumed (--reply-tokens says the receiver's): {told}"
        n = len(found.rehearsal.episodes)
        sample = "" if n + found.rehearsal.n_broken == found.n_rows else f"; a sample of {n} of {found.n_rows:,} rows"
        yield f"prompts: as the protocol makes them, about 4 characters a token{_pictures(found)}{sample}"
        if found.rehearsal.n_broken:
            yield f"{_count(found.rehearsal.n_broken, 'row')} cannot become an episode: interbench check tells why"

    def advice(self, found: RehearsedEstimate) -> Iterator[str]:
        """How to narrow the ranges."""
        width = found.run.calls.width
        if width > TARGET_WIDTH and found.to_probe is None:
            yield f"The range of calls is {width:.0%} of its mean wide, which only the run itself can narrow."
        elif width > TARGET_WIDTH:
            yield (
                f"The range of calls is {width:.0%} of its mean wide. --probe {found.to_probe} brings it to about "
                f"{TARGET_WIDTH:.0%}: it plays that many episodes now, for real; the run takes them from the ledger."
            )
        elif found.to_probe is not None:
            yield (
                f"The range of tokens is {_token_width(found.run):.0%} of its mean wide. --probe {found.to_probe} "
                "plays that many episodes now, for real, and so learns how long replies are; the run takes them from "
                "the ledger."
            )


class _Drawing:
    """Calls, tokens and money of whole runs, drawn many times."""

    def __init__(
        self,
        forecast: RehearsedForecast,
        rehearsal: Rehearsal,
        learned: Learned,
        chances: Mapping[str, Rate],
        given: Given,
        models: Sequence[RoleModel],
        seed: int,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._chances = chances
        self._thinks = forecast._calls.thinks
        self._learned = learned
        self._given = given
        self._models = models
        rest = [doc for doc in rehearsal.episodes if doc not in learned.known]
        n_rest = len(forecast._task.rows) - len(learned.known) - rehearsal.n_broken
        sampled_all = len(rest) >= n_rest
        self._scale = 1.0 if sampled_all or not rest else n_rest / len(rest)
        self._sample = None if sampled_all else [rehearsal.episodes[doc] for doc in rest]
        self._sizes = rehearsal.over(rest)
        self._n_rest = max(n_rest, 1)
        self._text = self._between(*TEXT_RANGE)
        self._lengths: dict[str, Amounts] = {}
        self._apart: dict[str, Amounts] = {}
        self._shares: dict[str, Amounts] = {}

    def run(self) -> RunEstimate:
        found = [self._role(model) for model in self._models]
        costs = [cost for *_, cost in found if cost is not None]
        roles = tuple(
            RoleEstimate(
                role=model,
                calls=range_of(calls),
                input_tokens=range_of(taken),
                output_tokens=range_of(given),
                cost=None if cost is None else range_of(cost),
            )
            for model, (calls, taken, given, cost) in zip(self._models, found, strict=True)
        )
        return RunEstimate(
            roles=roles,
            calls=range_of(np.asarray(sum(calls for calls, *_ in found))),
            cost=range_of(np.asarray(sum(costs))) if len(costs) == len(found) else None,
        )

    def _role(self, model: RoleModel) -> tuple[Counts, Amounts, Amounts, Amounts | None]:
        """Calls, input and output tokens and money of one role."""
        known = [own for own in self._learned.known.values()]
        played = [seen for own in known for (role, _), seen in own.items() if role == model.role]
        calls = np.full(N_DRAWS, sum(seen.calls for seen in played), dtype=np.int64)
        taken = np.full(N_DRAWS, float(sum(seen.input_tokens for seen in played)))
        given = np.full(N_DRAWS, float(sum(seen.output_tokens for seen in played)))
        for (role, kind), size in self._sizes.items():
            if role != model.role:
                continue
            for n, asked, said in self._of_kind(model, kind, size):
                calls, taken, given = calls + n, taken + asked, given + said
        price = model.price
        cost = None if price is None else (taken * price.input + given * price.output) / 1_000_000
        return calls, taken, given, cost

    def _of_kind(self, model: RoleModel, kind: str, size: Size) -> Iterator[tuple[Counts, Amounts, Amounts]]:
        """Calls, input and output tokens of the calls of one kind, and of those that are made once more."""
        scale = self._scaled(model.role, kind)
        share = self._share(kind, size) if kind in self._chances else np.ones(N_DRAWS)
        n = np.rint(size.calls * scale * share).astype(np.int64)
        asked = self._asked(model.role, kind, size) / max(size.calls, 1)
        said = np.minimum(self._length(kind, n=size.calls), float(model.max_new_tokens))
        if kind == "answer" and self._thinks is not None and self._learned.mean(kind) is None:
            share_thinks = self._share(self._thinks, size) if self._thinks in self._chances else np.zeros(N_DRAWS)
            said = np.minimum(said + share_thinks * self._length(THOUGHTS, n=size.calls), float(model.max_new_tokens))
        yield n, np.asarray(n * asked), np.asarray(n * said, dtype=np.float64)
        again = f"{kind} {AGAIN}"
        if again in self._chances:
            repeated = self._rng.binomial(n, self._chances[again].drawn(self._rng, N_DRAWS))
            yield repeated, np.asarray(repeated * asked), np.asarray(repeated * said, dtype=np.float64)

    def _asked(self, role: str, kind: str, size: Size) -> Amounts:
        """Input tokens of the rehearsed calls of one kind. float64 [draws]."""
        quoted = sum((n * self._length(other, n=size.calls) for other, n in size.quoted.items()), np.zeros(N_DRAWS))
        ratio = self._learned.ratio(role, kind)
        if ratio is None:
            return np.asarray(size.text * self._text + self._between(*size.pictures) + quoted)
        if role not in self._apart:  # prompts of one role are off together: they are of the same texts
            self._apart[role] = self._rng.standard_t(ratio.freedom, N_DRAWS)
        drawn = np.maximum(ratio.mean + ratio.error(self._n_rest) * self._apart[role], 0)
        thumb = size.text + sum(size.pictures) / 2 + sum(n * self._middle(other) for other, n in size.quoted.items())
        return np.asarray(drawn * thumb)

    def _middle(self, kind: str) -> float:
        return self._learned.mean(kind) or sum(assumed_length(kind, self._given)) / 2

    def _length(self, kind: str, *, n: int) -> Amounts:
        """Mean tokens of the replies of one kind that are still to come."""
        if kind not in self._lengths:
            seen = self._learned.length(kind)
            if seen is None:
                self._lengths[kind] = self._between(*assumed_length(kind, self._given))
            else:
                apart = seen.error(self._n_rest) * self._rng.standard_t(seen.freedom, N_DRAWS)
                self._lengths[kind] = np.maximum(seen.mean + apart, 0)
        return self._lengths[kind]

    def _share(self, kind: str, size: Size) -> Amounts:
        """The share of a kind's rehearsed calls that are made; one draw for all roles: judges are asked together."""
        if kind not in self._shares:
            most = max((own.calls for (_, k), own in self._sizes.items() if k == kind), default=size.calls)
            n = max(round(most * self._scale), 1)
            self._shares[kind] = self._rng.binomial(n, self._chances[kind].drawn(self._rng, N_DRAWS)) / n
        return self._shares[kind]

    def _scaled(self, role: str, kind: str) -> float | Amounts:
        """From the sample to all rows: exact where all were rehearsed."""
        if self._sample is None:
            return self._scale
        counts = np.array([own[role, kind].calls if (role, kind) in own else 0 for own in self._sample], dtype=float)
        error = (
            float(counts.std(ddof=1)) / max(float(counts.mean()), 1e-9) / len(counts) ** 0.5 if len(counts) > 1 else 0
        )
        return np.asarray(np.maximum(self._rng.normal(self._scale, self._scale * error, N_DRAWS), 0))

    def _between(self, low: float, high: float) -> Amounts:
        return self._rng.uniform(low, high, N_DRAWS) if high > low else np.full(N_DRAWS, low)


def _width(rehearsal: Rehearsal, chances: Mapping[str, Rate], per_doc: Mapping[str, float], n: int, rows: int) -> float:
    """How wide the range of calls is once `n` episodes were played, if these turn out as expected."""
    rng = np.random.default_rng(0)
    certain = sum(s.calls for own in rehearsal.episodes.values() for (_, k), s in own.items() if k not in chances)
    total = np.full(2_000, certain / len(rehearsal.episodes) * rows)
    for kind, rate in chances.items():
        trials = max(1, round(per_doc[kind] * n))
        then = Rate(hits=round(rate.middle * trials), trials=trials)
        left = round(per_doc[kind] * (rows - n))
        total = total + trials * rate.middle + rng.binomial(left, then.drawn(rng, 2_000))
    return range_of(np.asarray(total)).width if chances else 0.0


def _token_width(run: RunEstimate) -> float:
    """How wide the widest range of a role's tokens is, in relation to its mean."""
    ranges: list[Range] = [found for role in run.roles for found in (role.input_tokens, role.output_tokens)]
    return max((found.width for found in ranges if found.mean > 0), default=0.0)


def _most_pictures(rehearsal: Rehearsal, role: str) -> float:
    sizes = [size.pictures[1] for own in rehearsal.episodes.values() for (r, _), size in own.items() if r == role]
    return sum(sizes)


def _reply_kinds(rehearsal: Rehearsal) -> list[str]:
    return list(dict.fromkeys(kind for own in rehearsal.episodes.values() for _, kind in own))


def _shown(rate: Rate, said: str) -> str:
    if rate.hits is not None:
        return f"{rate.hits} of {rate.trials} seen"
    shown = f"{rate.low:.0%}" if rate.low == rate.high else f"{rate.low:.0%} to {rate.high:.0%}"
    return f"{shown}, {said}"


def _pictures(found: RehearsedEstimate) -> str:
    unknown = [model for model, most in found.thumb.items() if most > 0 and not knows_pictures_of(model)]
    return f"; tokens of pictures assumed, no rule is known for {', '.join(unknown)}" if unknown else ""


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


__all__ = ["LEVEL", "Key", "RehearsedEstimate", "RehearsedForecast"]
