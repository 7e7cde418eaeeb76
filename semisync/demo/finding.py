"""The AUC that the demo's modes lose or gain against exact synchronous training, in words.

The differences are paired on the same held-out rows (DeLong); their intervals cover which rows were
held out, not the seed.
"""

from typing import Any, Dict, NamedTuple

import numpy as np

import parity

CONFIDENCE = 0.95
EXACT = "sync"  # exact global batches, the mode that the others are measured against


class Difference(NamedTuple):
    """In AUC, with its interval at CONFIDENCE."""

    delta: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval excludes 0, else 0."""
        return (self.low > 0) - (self.high < 0)

    def __str__(self) -> str:
        return f"{self.delta:+.4f}, {self.low:+.4f} to {self.high:+.4f}"


def difference(labels: np.ndarray, baseline: np.ndarray, candidate: np.ndarray) -> Difference:
    """The candidate's AUC minus the baseline's; all (n,), of the same rows."""
    if np.array_equal(baseline, candidate):
        return Difference(0.0, 0.0, 0.0)
    with parity.at_confidence(CONFIDENCE):
        compared = parity.compare(labels, baseline, candidate)
    return Difference(compared.delta, *compared.interval)


def sentence(modes: Dict[str, Dict[str, Any]]) -> str:
    """The table's finding, whichever mode wins.

    Args:
        modes: figures by mode, with `batches_per_second`, and `minus_sync` but for sync.
    """
    pace = {name: mode["batches_per_second"] for name, mode in modes.items()}

    def times(mode: str) -> str:
        exact, fast = (
            pace[mode] / pace[other] if pace[other] else 0.0 for other in (EXACT, "async")
        )
        return (
            f"{exact:.2f} times as fast as exact synchronous training and {fast:.2f} times as fast"
        )

    minus = {name: Difference(**modes[name]["minus_sync"]) for name in modes if name != EXACT}
    ours, theirs = minus["semi-sync"], minus["async"]
    return (
        f"With the same hyperparameters, semi-sync ran {times('semi-sync')} as asynchronous "
        f"training; balanced, which bounds the mean staleness, {times('balanced')}. Against exact "
        f"synchronous training, semi-sync {_verdict(ours)}, balanced "
        f"{_verdict(minus['balanced'])} and asynchronous training {_verdict(theirs)}: "
        f"{_meaning(ours, theirs)} The intervals, of 95 %, cover which rows were held out, not the "
        "seed: another run gives somewhat other AUCs."
    )


def _verdict(difference: Difference) -> str:
    words = {1: "gains AUC", 0: "shows no difference in AUC beyond chance", -1: "loses AUC"}
    return f"{words[difference.sign]} ({difference})"


def _meaning(ours: Difference, theirs: Difference) -> str:
    if ours.sign >= 0:
        if theirs.sign < 0:
            return "semi-sync keeps what asynchronous training loses."
        return "on this log AUC is no reason to leave asynchronous training."
    if theirs.sign < 0 and ours.delta > theirs.delta:
        kept = 1 - ours.delta / theirs.delta
        return f"semi-sync keeps {kept:.0%} of what asynchronous training loses."
    return "semi-sync is the worse choice for AUC on this log."
