"""Which family a model belongs to: a judge tends to be kind to its relatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

FAMILIES: Mapping[str, str] = {
    "gpt": r"gpt|chatgpt|codex|o[134](?:$|-)",
    "claude": r"claude",
    "gemini": r"gemini|gemma|palm|bard",
    "qwen": r"qwen|qwq|qvq",
    "llama": r"llama",
    "glm": r"glm|chatglm|cogvlm",
    "doubao": r"doubao|seed",
    "deepseek": r"deepseek",
    "mistral": r"mistral|mixtral|pixtral|ministral",
    "internvl": r"internvl|internlm",
    "phi": r"phi(?:$|\d)",
    "grok": r"grok",
    "kimi": r"kimi|moonshot",
    "minicpm": r"minicpm",
    "llava": r"llava",
    "nova": r"nova",
    "command": r"command|aya",
}
"""Family -> pattern of a word that a model's name begins with. Gemma counts as Gemini's: one maker, similar data."""


def family_of(model: str) -> str | None:
    """The family of a model by its name; None where the name tells nothing.

    The backend before a colon and the address after `@` are no part of the name.

    >>> family_of("openai:gpt-5.2"), family_of("openai:Qwen/Qwen2.5-VL@http://gpt:8000/v1"), family_of("simulated:a")
    ('gpt', 'qwen', None)
    """
    name = model.partition("@")[0].rpartition(":")[2].casefold()
    words = [word for part in name.split("/") for word in (part, *re.split(r"[-_. ]", part))]
    for word in words:
        for family, pattern in FAMILIES.items():
            if re.match(pattern, word):
                return family
    return None


def related(model: str, others: Iterable[str]) -> tuple[str, ...]:
    """Those of `others` that are of the model's family, in their order; none where its family is not known.

    >>> related("openai:gpt-5-mini", ["openai:gpt-5.2", "anthropic:claude-sonnet-4-20250514"])
    ('openai:gpt-5.2',)
    """
    family = family_of(model)
    return tuple(other for other in others if family is not None and family_of(other) == family)
