"""Whether the score of a row depends on chance, or on the rows that it is scored with.

The rows of one batch are scored once more, and then in two batches. What differs by more than float
arithmetic in another order can explain is told: the file holds what one run gave.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional

import numpy as np

_ROUNDING = 2e-5  # of the largest score

_CAUSES = {
    "chance": (
        "scored twice in the same way",
        "dropout or another random op is at work: feed what turns training off (--feed)",
    ),
    "batch": (
        "scored in two batches instead of one",
        "BatchNorm in training mode does so: feed what turns training off (--feed), or keep to one "
        "--batch-size on both sides",
    ),
}


class Instability(NamedTuple):
    """depends_on: "chance" or "batch". Of `rows`, `differ` got another score, by `largest` at
    most."""

    depends_on: str
    rows: int
    differ: int
    largest: float

    def in_words(self) -> str:
        """A sentence with what to do."""
        how, remedy = _CAUSES[self.depends_on]
        return (
            f"{self.differ:,} of the first {self.rows:,} rows get another score when they are "
            f"{how}, by up to {self.largest:.3g}; {remedy}"
        )

    def to_json(self) -> Dict[str, Any]:
        """For the file's metadata."""
        return self._asdict()


def find_instability(
    scores: np.ndarray, rescore: Callable[[int, int], np.ndarray]
) -> Optional[Instability]:
    """What the scores of a batch depend on besides their rows; None where on nothing.

    Args:
        scores: (rows,) as the batch was scored.
        rescore: scores the rows from one number to another anew, as a batch of their own.
    """
    rows = len(scores)
    found = _compared("chance", scores, rescore(0, rows))
    if found is not None or rows < 2:
        return found
    cut = max(1, rows // 3)  # uneven, so that no half equals the other
    return _compared("batch", scores, np.concatenate([rescore(0, cut), rescore(cut, rows)]))


def _compared(depends_on: str, scores: np.ndarray, others: np.ndarray) -> Optional[Instability]:
    apart = np.abs(scores.astype(np.float64) - others)
    differ = apart > _ROUNDING * float(np.abs(scores).max())
    if not differ.any():
        return None
    return Instability(depends_on, len(scores), int(differ.sum()), float(apart.max()))
