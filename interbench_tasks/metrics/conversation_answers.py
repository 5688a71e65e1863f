"""A stand-in until the metrics of conversations are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interbench_tasks.records import EpisodeRecord


class ConversationAnswers:
    """Counts only."""

    def __init__(self, options: object) -> None:
        """No options."""

    def summary(self, record: EpisodeRecord) -> Mapping[str, Any]:
        """The identity."""
        return {
            "id": record.episode_id,
            "doc_id": record.doc_id,
            "repeat": record.repeat,
            "status": record.status,
            "category": record.category,
        }

    def contributions(self, summary: Mapping[str, Any]) -> Mapping[str, float]:
        """Nothing."""
        return {}

    def table(self, summaries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def headline(self, names: Sequence[str]) -> Sequence[str]:
        """All."""
        return names
