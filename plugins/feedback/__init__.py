"""Feedback that ships with Interbench: `simple` and `detail`."""

from interbench_tasks import FeedbackProvider, hookimpl

from .detail import Detail
from .simple import Simple


@hookimpl
def interbench_feedback_providers() -> dict[str, type[FeedbackProvider]]:
    """The correctness bit alone, and the bit with an explanation."""
    return {"simple": Simple, "detail": Detail}
