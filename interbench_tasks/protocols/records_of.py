"""The record of an episode, begun: what every protocol takes over from the episode and its roles."""

from __future__ import annotations

from interbench_tasks.hookspecs import Roles
from interbench_tasks.records import Episode, EpisodeRecord, RoleName
from interbench_tasks.task_roles import role_key


def begun_record(episode: Episode, protocol: str, models: dict[str, str]) -> EpisodeRecord:
    """A record without turns. Args: models = role -> model name, from `models_of`."""
    return EpisodeRecord(
        task="",
        protocol=protocol,
        episode_id=episode.id,
        doc_id=episode.doc_id,
        repeat=episode.repeat,
        category=episode.category,
        cluster=episode.cluster,
        target=episode.target,
        options=episode.options,
        questions=episode.questions,
        system=episode.system,
        models=models,
    )


def models_of(roles: Roles, *others: RoleName) -> dict[str, str]:
    """Role -> model name: the receiver, then those of the other roles that the protocol asks, where they are there."""
    models = {"receiver": roles.receiver.name}
    for role in others:
        if role == "notetaker":
            models |= {role: roles.notetaker.name} if roles.notetaker is not None else {}
        else:
            several = roles.providers if role == "provider" else roles.judges
            models |= {role_key(role, label): client.name for label, client in several.items()}
    return models
