"""How many rows lie above each threshold of `tf.metrics.auc` (parity.stats.tf1_auc), from counts.

The fine bins decide all rows but those near a threshold, which are compared with it as they come.
So the figure is that of rows in memory, to the last row.
"""

import functools
from typing import NamedTuple, Optional

import numpy as np

from parity.histogram.bins import BINS, bins_of
from parity.inputs.logits import logit, sigmoid
from parity.stats.tf1_auc import THRESHOLDS, area_above, thresholds

_INNER = THRESHOLDS - 2  # the outermost have all scores between them


class _Cuts(NamedTuple):
    """The inner thresholds, and the bins near them: a float32 sigmoid may round across an edge."""

    scores: np.ndarray  # float32 (_INNER,)
    last: np.ndarray  # int32 (_INNER,): the last bin near each
    nearby: np.ndarray  # uint8 (BINS,): which threshold is near a bin, from 1; 0 where none is


@functools.lru_cache(maxsize=2)
def _cuts(logits: bool) -> _Cuts:
    scores = thresholds()[1:-1]
    bins = bins_of(logit(scores.astype(np.float64)) if logits else scores)
    nearby = np.zeros(BINS, np.uint8)
    for step in (-1, 0, 1):
        nearby[bins + step] = np.arange(1, _INNER + 1)
    return _Cuts(scores, bins + 1, nearby)


class AboveThresholds:
    """One model's rows above each inner threshold, of those whose bin is near it.

    `amounts` holds their number, or weight, float64 (label, _INNER).
    """

    def __init__(self, logits: bool) -> None:
        self._logits, self._cuts = logits, _cuts(logits)
        self.amounts = np.zeros((2, _INNER))
        self.within = True  # whether all scores are probabilities, 0 and 1 among them

    def add(
        self,
        label: np.ndarray,
        scores: np.ndarray,
        bins: np.ndarray,
        weights: Optional[np.ndarray],
    ) -> None:
        """Adds rows: int (n,) 0 or 1, float (n,), int32 (n,) of `bins_of`, float64 (n,) or None."""
        if not self._logits:
            self.within = self.within and bool(scores.min() >= 0 and scores.max() <= 1)
        if not self.within:
            return
        near = self._cuts.nearby[bins]
        rows = np.flatnonzero(near)
        cut = near[rows].astype(np.intp) - 1
        shown = sigmoid(scores[rows]) if self._logits else scores[rows]
        above = shown.astype(np.float32) > self._cuts.scores[cut]  # tf.metrics.auc compares float32
        rows, cut = rows[above], cut[above]
        np.add.at(self.amounts, (label[rows], cut), 1 if weights is None else weights[rows])

    def restore(self, amounts: np.ndarray, within: bool) -> None:
        """Takes another's amounts; raises ValueError where they are of another shape."""
        self.amounts, self.within = np.array(amounts, float).reshape(2, _INNER), within

    def merge(self, other: "AboveThresholds") -> None:
        """Adds another part's rows."""
        self.amounts = self.amounts + other.amounts
        self.within &= other.within

    def area(self, bins: np.ndarray, mass: np.ndarray) -> Optional[float]:
        """`tf1_compat_auc`; None unless all scores lie in [0, 1].

        Args:
            bins: int (n,), rising: those in use.
            mass: (label, n): rows, or their weights.
        """
        if not self.within:
            return None
        upto = np.searchsorted(bins, self._cuts.last, side="right")
        amounts = []
        for of_class, near in zip(mass, self.amounts):
            before = np.concatenate(([0], np.cumsum(of_class)))
            above = np.concatenate((before[-1:], before[-1] - before[upto] + near, [0]))
            amounts.append(np.concatenate(([0], -np.diff(above), [0])))
        return area_above(amounts[1], amounts[0])
