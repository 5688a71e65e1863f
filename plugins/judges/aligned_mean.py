"""The label of the majority, and the mean score of the judges that chose it."""

from collections.abc import Sequence
from statistics import fmean

from interbench_tasks import Verdict

from .votes import PanelError, panel_verdict, scores_of, undecided, votes_from

SPLIT = "split"
"""The label where all judges spoke and no majority chose the same."""


class AlignedMean:
    """The label (a strategy) of more than half of all judges, and the mean score of those that chose it.

    Without a majority: `undecided` where the judges that failed could have made one; else the label is `split` and the
    score is the mean of all valid ones.
    Source: MMPCBench (arXiv 2608.29286), score of the aligned judges; `split` and what failed judges do are ours.
    """

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The aligned judges' verdict."""
        votes = votes_from(verdicts, declared)
        scores = scores_of(votes, "aligned_mean")
        if any(verdict.label is None for verdict in votes.valid):
            raise PanelError("aligned_mean needs labels, and a judge gave a score only; use mean_of_valid")
        label = votes.majority()
        if isinstance(label, str):
            aligned = sorted(v.score for v in votes.valid if v.label == label and v.score is not None)
            return panel_verdict("aligned_mean", votes, score=fmean(aligned), label=label)
        if not scores or votes.may_become():
            return undecided("aligned_mean", votes)
        return panel_verdict("aligned_mean", votes, score=fmean(scores), label=SPLIT)
