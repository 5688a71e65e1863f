"""Feedback that ships with Interbench: `simple` and `detail`."""

from interbench_tasks.plugins.feedback.detail import Detail
from interbench_tasks.plugins.feedback.simple import Simple

from interbench_tasks import FeedbackProvider, hookimpl


@hookimpl
def interbench_feedback_providers() -> dict[str, type[FeedbackProvider]]:
    """The correctness bit alone, and the bit with an explanation."""
    return {"simple": Simple, "detail": Detail}
