"""Feedback that ships with Interbench: `simple`, `detail` and their placebos `reask`, `mismatched`; `hierarchical`."""

from interbench_tasks import FeedbackProvider, hookimpl

from .detail import Detail
from .hierarchical import Hierarchical
from .mismatched import Mismatched
from .reask import Reask
from .simple import Simple


@hookimpl
def interbench_feedback_providers() -> dict[str, type[FeedbackProvider]]:
    """The correctness bit alone, the bit with an explanation, a control for each, and feedback in three levels."""
    return {
        "detail": Detail,
        "simple": Simple,
        "reask": Reask,
        "mismatched": Mismatched,
        "hierarchical": Hierarchical,
    }
