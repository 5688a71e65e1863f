"""Feedback that ships with Interbench: `simple` and `detail`, and their placebos `reask` and `mismatched`."""

from interbench_tasks import FeedbackProvider, hookimpl

from .detail import Detail
from .mismatched import Mismatched
from .reask import Reask
from .simple import Simple


@hookimpl
def interbench_feedback_providers() -> dict[str, type[FeedbackProvider]]:
    """The correctness bit alone, the bit with an explanation, and a control for each."""
    return {"detail": Detail, "simple": Simple, "reask": Reask, "mismatched": Mismatched}
