"""Panel rules that ship with Interbench: what several judges' verdicts come to."""

from interbench_tasks import PanelRule, hookimpl

from .aligned_mean import AlignedMean
from .strict_majority import StrictMajority
from .valid import MeanOfValid, MedianOfValid


@hookimpl
def interbench_panel_rules() -> dict[str, type[PanelRule]]:
    """The majority of all declared judges, means of those that gave a verdict, and the mean of those that agree."""
    return {
        "strict_majority": StrictMajority,
        "mean_of_valid": MeanOfValid,
        "median_of_valid": MedianOfValid,
        "aligned_mean": AlignedMean,
    }
