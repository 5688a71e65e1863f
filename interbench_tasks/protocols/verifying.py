"""A reply against its target, by whatever verifier the task names."""

from __future__ import annotations

from collections.abc import Mapping

from interbench_tasks.hookspecs import PatientVerifier, Verifier
from interbench_tasks.records import Judgement, Reply
from interbench_tasks.redaction import redact


async def verified(
    verifier: Verifier, reply: Reply, target: str, options: Mapping[str, str]
) -> tuple[Judgement | None, str | None]:
    """The judgement of a usable reply, or why there is none: (None, None) where the reply is not usable."""
    if not reply.usable:
        return None, None
    try:
        if isinstance(verifier, PatientVerifier):
            judgement = await verifier.judge_later(reply.text, target, options)
        else:
            judgement = verifier.judge(reply.text, target, options)
    except Exception as error:  # noqa: BLE001 - a verifier may be a stranger's; a failing one is no wrong answer
        return None, redact(f"the verifier raised {error!r}")[:500]
    if not isinstance(judgement, Judgement):
        return None, f"the verifier gave no Judgement but {type(judgement).__name__}"
    return judgement, None
