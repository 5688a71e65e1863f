"""Tokens of pictures: the published examples, limits, and a range where no rule is known."""

from __future__ import annotations

import pytest

from interbench_tasks.estimating.picture_tokens import UNKNOWN, knows_pictures_of, picture_tokens


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # OpenAI's own examples: 1024 x 1024 is 4 tiles, 2048 x 4096 is scaled to 768 x 1536 and is 6.
        ("openai:gpt-4o", (1024, 1024), 765),
        ("openai:gpt-4o-2024-08-06", (2048, 4096), 1105),
        ("openai:gpt-4o", (512, 512), 255),
        ("openai:gpt-4.1", (1024, 1024), 765),
        ("openai:gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("openai:gpt-5", (1024, 1024), 70 + 4 * 140),
        ("openai:o3", (1024, 1024), 75 + 4 * 150),
        # OpenAI's own example of patches: 1024 x 1024 is 1024 of them.
        ("openai:gpt-4.1-mini", (1024, 1024), 1659),
        ("openai:gpt-4.1-nano", (1024, 1024), 2520),
        ("openai:o4-mini", (1024, 1024), 1762),
        # Anthropic's own examples: 200 x 200 about 54, 1000 x 1000 about 1334, 1092 x 1092 about 1590.
        ("anthropic:claude-sonnet-4-20250514", (200, 200), 54),
        ("anthropic:claude-sonnet-4-20250514", (1000, 1000), 1334),
        ("anthropic:claude-3-5-sonnet-20241022", (1092, 1092), 1590),
        ("anthropic:claude-opus-4-1-20250805", (4000, 3000), 1600),
        # Google's: 258 up to 384 px a side.
        ("openai:gemini-2.0-flash", (384, 384), 258),
        ("openai:gemini-1.5-pro", (100, 384), 258),
        ("openai:Qwen/Qwen2.5-VL-7B-Instruct", (280, 280), 100),
        ("qwen2_5_vl:Qwen/Qwen2-VL-7B-Instruct", (28, 28), 4),
        ("openai:qwen3-vl-8b", (320, 320), 100),
        ("simulated:gpt-4o", (1024, 1024), 0),
    ],
)
def test_published_rules(model, size, tokens):
    assert picture_tokens(model, *size) == (tokens, tokens)
    assert knows_pictures_of(model)


def test_patches_that_are_scaled_down_are_a_narrow_range():
    """OpenAI's own example: 1800 x 2400 ends at 1452 patches of at most 1536."""
    low, high = picture_tokens("openai:gpt-4.1-mini", 1800, 2400)
    assert low <= 1452 * 1.62 <= high
    assert high <= 1536 * 1.62 + 1
    assert low > 0.85 * high


def test_newer_claude_models_may_see_more_of_a_large_picture():
    low, high = picture_tokens("anthropic:claude-sonnet-5-5", 2400, 1800)
    assert (low, high) == (1600, 4784)
    small = picture_tokens("anthropic:claude-sonnet-5-5", 300, 200)
    assert small == (80, 80)


def test_gemini_tiles_a_large_picture():
    low, high = picture_tokens("openai:gemini-2.0-flash", 2048, 1536)
    assert 258 * 6 <= low <= high <= 258 * 12


@pytest.mark.parametrize(
    "model", ["openai:my-model", "llava_hf:llava-hf/llava-1.5-7b-hf", "openai:llama3.2-vision:11b"]
)
def test_a_model_without_a_rule_gets_the_documented_range(model):
    assert picture_tokens(model, 1024, 1024) == UNKNOWN
    assert not knows_pictures_of(model)


def test_low_detail_is_one_size_where_it_exists():
    assert picture_tokens("openai:gpt-4o", 4000, 4000, detail="low") == (85, 85)
    assert picture_tokens("openai:gpt-4o", 1024, 1024, detail="high") == (765, 765)
    assert picture_tokens("openai:qwen2.5-vl", 280, 280, detail="low") == (100, 100)


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (20_000, 20_000)])
@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-4o",
        "openai:gpt-4.1-mini",
        "anthropic:claude-3-haiku-20240307",
        "openai:gemini-2.5-pro",
        "x:qwen2-vl",
    ],
)
def test_odd_sizes_have_a_finite_range(model, size):
    low, high = picture_tokens(model, *size)
    assert 1 <= low <= high <= 20_000
