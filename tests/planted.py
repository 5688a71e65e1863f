"""What must come out of a run against a planted server, computed apart from all of our own code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.servers.planted_brain import PlantedBrain, PlantedItem


@dataclass(frozen=True)
class Expected:
    """Counts of one run; `corrected` by arm, over the test set."""

    n: int
    right: int
    invalid: int
    asked_provider: int
    test: int
    corrected: dict[str, int]

    @property
    def requests(self) -> int:
        """Round 0, the provider's tries, and per test item one feedback call and one round in two arms."""
        return self.n + self.asked_provider + 3 * self.test


def expected_of(
    brain: PlantedBrain,
    items: Iterable[PlantedItem],
    *,
    receiver: str,
    provider: str,
    recorded: dict[str, str] | None = None,
) -> Expected:
    """The counts that `brain` planted for arms `detail` and `simple`, one round.

    Args: recorded = item -> outcome of a recorded first answer, which stands for the receiver's own round 0.
    """
    firsts = {item.id: (recorded[item.id] if recorded else brain.expected(item.id, receiver, 0)) for item in items}
    wrong = [item for item, outcome in firsts.items() if outcome == "wrong"]
    test = [item for item in wrong if brain.expected(item, provider, 0) == "right"]
    corrected = {
        arm: sum(brain.expected(item, receiver, 1, arm=arm) == "right" for item in test) for arm in ("detail", "simple")
    }
    outcomes = list(firsts.values())
    return Expected(
        n=len(outcomes),
        right=outcomes.count("right"),
        invalid=outcomes.count("invalid"),
        asked_provider=len(wrong),
        test=len(test),
        corrected=corrected,
    )


def assert_metrics(metrics: dict, expected: Expected) -> None:
    """Every headline metric equals the planted counts exactly."""
    assert metrics["n"]["value"] == expected.n
    assert metrics["n_failed"]["value"] == 0
    assert metrics["n_invalid"]["value"] == expected.invalid
    assert metrics["n_negative"]["value"] == expected.n - expected.right
    assert metrics["n_test"]["value"] == expected.test
    assert metrics["accuracy"]["count"] == expected.right
    assert metrics["accuracy"]["value"] == expected.right / expected.n
    for arm, corrected in expected.corrected.items():
        assert metrics[f"correction_rate.{arm}"]["count"] == corrected
        assert metrics[f"correction_rate.{arm}"]["n"] == expected.test
        assert metrics[f"accuracy_after.{arm}"]["value"] == (expected.right + corrected) / expected.n
        assert metrics[f"correction_rate_on_negatives.{arm}"]["value"] == corrected / (expected.n - expected.right)
    solved = metrics["provider_solve_rate_on_negatives"]
    assert (solved["count"], solved["n"]) == (expected.test, expected.asked_provider)
