"""How large a task's prompts are: texts and pictures of a sample of its rows, read but not sent."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from interbench_tasks.config import CommonOptions
from interbench_tasks.errors import DataError
from interbench_tasks.estimating.picture_tokens import picture_tokens
from interbench_tasks.items import ItemReader
from interbench_tasks.records import Episode
from interbench_tasks.rows import DataSet

MOST_ROWS = 200
"""Rows that are read; a larger data set is judged by a sample of them."""
WIDE_CHARACTERS_PER_TOKEN = 1.4
"""Characters beyond Latin-1 (Chinese, Japanese, ...): one token is about this many."""
CHARACTERS_PER_TOKEN = 4.0
"""Of other text: what OpenAI and Google give as a rule of thumb."""
TEXT_RANGE = (0.8, 1.35)
"""How far a tokenizer's count may be from the rule: formulas and rare languages take more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """Mean sizes of a task's prompts, in tokens."""

    n_rows: int
    """Rows that were read, of `n_total`."""
    n_total: int
    n_broken: int
    """Of those, rows that cannot become a question."""
    question: float
    """The first message's text, system prompt included, by the rule of thumb."""
    quoted: float
    """Question and options as a feedback prompt quotes them, by the rule of thumb."""
    pictures: Mapping[str, tuple[float, float]]
    """Model -> fewest and most tokens of a question's pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturedModel:
    """A model that is shown the pictures."""

    name: str
    detail: str | None = None
    """OpenAI's `image_detail`."""


def prompt_sizes(
    data: DataSet, options: CommonOptions, models: Sequence[PicturedModel], *, rows: Sequence[int]
) -> PromptSizes:
    """The mean sizes over a sample of `rows`.

    Raises: DataError where none of the sampled rows can become a question.
    """
    reader = ItemReader(data, options)
    chosen = sorted(sampled(rows, MOST_ROWS))
    texts: list[tuple[float, float]] = []
    pictures: dict[str, list[tuple[int, int]]] = {model.name: [] for model in models}
    broken: DataError | None = None
    for doc_id in chosen:
        try:
            episode = reader.episode(doc_id, 0)
        except DataError as error:
            broken = error
            continue
        texts.append(_text_sizes(episode))
        for model in models:
            pictures[model.name].append(_picture_sizes(episode, model))
    if not texts:
        raise broken or DataError(f"{data.source}: no rows to estimate")
    question, quoted = np.mean(texts, axis=0)
    return PromptSizes(
        n_rows=len(chosen),
        n_total=len(rows),
        n_broken=len(chosen) - len(texts),
        question=float(question),
        quoted=float(quoted),
        pictures={name: _mean_pair(found) for name, found in pictures.items()},
    )


def sampled(rows: Sequence[int], n: int) -> list[int]:
    """The first `n` of the rows in a seeded random order: a larger sample holds every smaller one."""
    shuffled = list(rows)
    random.Random("estimate").shuffle(shuffled)
    return shuffled[:n]


def text_tokens(text: str) -> float:
    """Tokens of a text, by the rule of thumb.

    >>> text_tokens("Which shape comes next?"), round(text_tokens("图片"), 1)
    (5.75, 1.4)
    """
    wide = sum(ord(character) > 0xFF for character in text)
    return wide / WIDE_CHARACTERS_PER_TOKEN + (len(text) - wide) / CHARACTERS_PER_TOKEN


def _text_sizes(episode: Episode) -> tuple[float, float]:
    options = "\n".join(episode.options.values())
    return text_tokens(episode.question.text + (episode.system or "")), text_tokens(
        f"{episode.raw_question}\n{options}"
    )


def _picture_sizes(episode: Episode, model: PicturedModel) -> tuple[int, int]:
    sizes = [picture_tokens(model.name, p.width, p.height, detail=model.detail) for p in episode.question.pictures]
    return sum(low for low, _ in sizes), sum(high for _, high in sizes)


def _mean_pair(pairs: Sequence[tuple[int, int]]) -> tuple[float, float]:
    low, high = np.mean(pairs, axis=0)
    return float(low), float(high)
