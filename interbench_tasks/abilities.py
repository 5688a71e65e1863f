"""What a question about a conversation can test, by its code."""

from __future__ import annotations

from collections.abc import Mapping

ABILITIES: Mapping[str, str] = {
    "IE": "information extraction",
    "CR": "cross-turn reasoning",
    "IU": "information update",
    "IM": "image management",
    "MR": "memory recall",
    "AR": "answer refusal",
}
"""Code -> name, in the order of the paper's Table 3. Source: MMRC (arXiv 2502.11903v2), section 3."""
REFUSAL = "AR"
"""The ability whose questions nothing in the conversation answers."""
PICTURES = "IM"
"""The ability whose answers name pictures."""
