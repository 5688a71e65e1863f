"""Means over the judges that gave a verdict; a judge that failed is left out, and no zero."""

from collections.abc import Sequence
from statistics import fmean, median

from interbench_tasks import Verdict

from .votes import panel_verdict, scores_of, undecided, votes_from


class MeanOfValid:
    """The mean score of the judges that gave one; the label, if they give any, is that of more than half of all."""

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The mean; `undecided` where every judge failed."""
        votes = votes_from(verdicts, declared)
        scores = scores_of(votes, "mean_of_valid")
        if not scores:
            return undecided("mean_of_valid", votes)
        return panel_verdict("mean_of_valid", votes, score=fmean(scores), label=votes.label())


class MedianOfValid:
    """The median score of the judges that gave one, of an even number the mean of the two in the middle."""

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The median; `undecided` where every judge failed."""
        votes = votes_from(verdicts, declared)
        scores = scores_of(votes, "median_of_valid")
        if not scores:
            return undecided("median_of_valid", votes)
        return panel_verdict("median_of_valid", votes, score=median(scores), label=votes.label())
