"""What more than half of the declared judges say."""

from collections.abc import Sequence

from interbench_tasks import Verdict

from .votes import panel_verdict, undecided, votes_from


class StrictMajority:
    """The label, or where judges give none the score, of more than half of all judges that were asked.

    A judge that failed counts as asked: of three, 1 to 1 with one failed is undecided, since the third vote could have
    decided. With labels and scores, the score is the mean of the judges that chose the label.
    Source: MMPCBench (arXiv 2608.29286), majority of three judges; what failed judges do is ours.
    """

    def combine(self, verdicts: Sequence[Verdict], declared: int) -> Verdict:
        """The majority's verdict; `undecided` where there is none."""
        votes = votes_from(verdicts, declared)
        vote = votes.majority()
        if vote is None:
            return undecided("strict_majority", votes)
        if not isinstance(vote, str):
            return panel_verdict("strict_majority", votes, score=vote, label=None)
        chose = [verdict for verdict in votes.valid if verdict.label == vote]
        scores = sorted(verdict.score for verdict in chose if verdict.score is not None)
        score = sum(scores) / len(scores) if len(scores) == len(chose) else None
        return panel_verdict("strict_majority", votes, score=score, label=vote)
