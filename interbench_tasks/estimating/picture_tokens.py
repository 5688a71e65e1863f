"""How many input tokens a picture takes, by the published rules of the model's family; a range where they leave one.

Sources: OpenAI, "Images and vision", calculating costs (tiles of 512 px, or patches of 32 px with a factor);
Anthropic, "Vision", evaluate image size (width x height / 750 after scaling to 1,568 px and about 1,600 tokens; newer
models take up to 2,576 px); Google, "Understand and count tokens" (258 up to 384 px, else tiles); Qwen2-VL and
Qwen2.5-VL, model cards (patches of 28 px, Qwen3-VL 32 px, at most 16,384).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

Range = tuple[int, int]
"""Fewest and most tokens."""
UNKNOWN: Range = (256, 2880)
"""Where no rule is known for the model: from one encoder tile of 256 to five of 576 (LLaVA's highest)."""
LOW_DETAIL = 85


@dataclass(frozen=True, slots=True)
class _Family:
    name: re.Pattern[str]
    """Of the model, without its backend; the first family that fits counts."""
    tokens: Callable[[int, int], Range]


def picture_tokens(model: str, width: int, height: int, *, detail: str | None = None) -> Range:
    """Fewest and most input tokens of one picture, in pixels as it is sent.

    Args: model = as shown in results; detail = OpenAI's `low`, `high` or `auto`, where one is sent.

    >>> picture_tokens("openai:gpt-4o-2024-08-06", 1024, 1024)
    (765, 765)
    >>> picture_tokens("anthropic:claude-sonnet-4-20250514", 1000, 1000)
    (1334, 1334)
    """
    if model.startswith("simulated"):
        return 0, 0
    bare = model.rpartition("/")[2].rpartition(":")[2].lower()
    if detail == "low" and bare.startswith("gpt-4"):
        return LOW_DETAIL, LOW_DETAIL
    for family in _FAMILIES:
        if family.name.search(bare):
            return family.tokens(width, height)
    return UNKNOWN


def knows_pictures_of(model: str) -> bool:
    """Whether a rule is known for the model's pictures."""
    bare = model.rpartition("/")[2].rpartition(":")[2].lower()
    return model.startswith("simulated") or any(family.name.search(bare) for family in _FAMILIES)


def _tiles(base: int, tile: int) -> Callable[[int, int], Range]:
    """OpenAI: into 2,048 x 2,048, then the shorter side to 768, then tiles of 512."""

    def tokens(width: int, height: int) -> Range:
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        found = base + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
        return found, found

    return tokens


def _patches(factor: float, *, most: int = 1536) -> Callable[[int, int], Range]:
    """OpenAI: patches of 32 px, scaled down to at most `most` of them."""

    def tokens(width: int, height: int) -> Range:
        n = math.ceil(width / 32) * math.ceil(height / 32)
        found = math.ceil(min(n, most) * factor)
        return (found if n <= most else math.ceil(found * 0.9)), found  # scaled down it fills most of the budget

    return tokens


def _anthropic(width: int, height: int, *, longest: int = 1568, most: int = 1600) -> int:
    scale = min(1.0, longest / max(width, height))
    return min(most, math.ceil(width * scale * height * scale / 750))


def _claude(width: int, height: int) -> Range:
    found = _anthropic(width, height)
    return found, found


def _newer_claude(width: int, height: int) -> Range:
    return _anthropic(width, height), _anthropic(width, height, longest=2576, most=4784)


def _gemini(width: int, height: int) -> Range:
    """One tile; or tiles of 768 px, or of 2/3 of the shorter side (256 to 768 px), of at most 3,072 px in all."""
    if max(width, height) <= 384:
        return 258, 258
    scale = min(1.0, 3072 / max(width, height))
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    side = min(768, max(256, min(width, height) * 2 // 3))
    counts = [math.ceil(width / size) * math.ceil(height / size) for size in (768, side)]
    return 258 * min(counts), 258 * max(counts)


def _qwen(patch: int) -> Callable[[int, int], Range]:
    def tokens(width: int, height: int) -> Range:
        found = max(4, min(16_384, max(1, round(width / patch)) * max(1, round(height / patch))))
        return found, found

    return tokens


_FAMILIES = (
    _Family(re.compile(r"^gpt-4o-mini"), _tiles(2833, 5667)),
    _Family(re.compile(r"^gpt-4\.1-mini|^gpt-5-mini"), _patches(1.62)),
    _Family(re.compile(r"^gpt-4\.1-nano|^gpt-5-nano"), _patches(2.46)),
    _Family(re.compile(r"^o4-mini"), _patches(1.72)),
    _Family(re.compile(r"^(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-4-turbo)"), _tiles(85, 170)),
    _Family(re.compile(r"^gpt-5($|-chat|-\d{4})"), _tiles(70, 140)),
    _Family(re.compile(r"^o[13]($|-pro|-\d{4})"), _tiles(75, 150)),
    _Family(re.compile(r"^claude-(3|(opus|sonnet|haiku)-4($|-[0-6]($|-|@)|-2025))"), _claude),
    _Family(re.compile(r"^claude-"), _newer_claude),
    _Family(re.compile(r"^gemini-(1\.5|2)"), _gemini),
    _Family(re.compile(r"qwen2(\.5)?-?vl"), _qwen(28)),
    _Family(re.compile(r"qwen3-?vl"), _qwen(32)),
)
