"""Scores counted into histograms: any number of rows in bounded memory, and parts that add up.

1. Fine: for each model, rows by bin of the score (parity.histogram.bins) and by label, and their
   weights if they have any. Pairs in different bins are decided as they are; pairs that share one
   count half, so the AUC is off by at most

       sum over bins of positives x negatives / (2 P Q)

   (weights in place of counts if weighted), which is certified, not estimated.
2. Joint: rows by the coarse bins of both scores and by label (parity.histogram.joint), for the
   variance.
3. Sums of the row-wise figures: log loss, its paired difference, the scores
   (parity.histogram.loss_sums); rows above each threshold of `tf.metrics.auc`
   (parity.histogram.thresholds).

All are counts and sums, so summaries of shards, days or machines add to the summary of the whole.
"""

from typing import Dict, Optional, Tuple

import numpy as np

from parity.histogram.bins import BINS, COARSE_BITS, bins_of, empty_counts
from parity.histogram.joint import Cells, Joint
from parity.histogram.loss_sums import LossSums
from parity.histogram.thresholds import AboveThresholds
from parity.inputs.rows import Rows
from semisync.common.errors import BadInput


class Summary:
    """Counts of two models' scores.

    `rows_by_bin` is int64 (model, label, BINS), `mass` the sums of weights, float64 of that shape;
    without weights they are one array.
    """

    def __init__(self, weighted: bool = False, logits: Tuple[bool, bool] = (False, False)) -> None:
        """Args: logits: whether the baseline's scores, and the candidate's, are logits."""
        self.weighted, self.logits = weighted, logits
        self.rows = 0
        self.positives = 0
        self.rows_by_bin = empty_counts((2, 2, BINS), np.int64)
        self.mass = empty_counts((2, 2, BINS), np.float64) if weighted else self.rows_by_bin
        self.joint = Joint(weighted)
        self.losses = LossSums(logits)
        self.above = [AboveThresholds(of_side) for of_side in logits]
        self.same = True  # whether both scores of every row are equal

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, self.rows - self.positives)

    def add(
        self,
        positive: np.ndarray,
        baseline: np.ndarray,
        candidate: np.ndarray,
        weights: Optional[np.ndarray] = None,
    ) -> None:
        """Counts checked rows.

        Args:
            positive: bool (n,).
            baseline, candidate: finite float32 or float64 (n,).
            weights: finite float64 (n,), above 0, if the summary is weighted, else None.
        """
        if not len(positive):
            return
        where = np.flatnonzero(positive)
        self.rows += len(positive)
        self.positives += len(where)
        label = positive.astype(np.int32)
        of_label = label * np.int32(BINS)
        coarse = []
        for model, scores in enumerate((baseline, candidate)):
            bins = bins_of(scores)
            coarse.append(bins >> COARSE_BITS)
            self.above[model].add(label, scores, bins, weights)
            places = (bins + of_label).astype(np.intp)
            # np.bincount would fill an array of all bins for every block.
            np.add.at(self.rows_by_bin[model].reshape(-1), places, 1)
            if weights is not None:
                np.add.at(self.mass[model].reshape(-1), places, weights)
        self.joint.add(positive, coarse[0], coarse[1], weights)
        rows = Rows(positive, baseline, candidate, weights=weights, logits=self.logits)
        self.losses.add(where, rows)
        self.same = self.same and np.array_equal(*rows.on_one_scale())

    def span(self) -> slice:
        """Bins from the first to the last coarse one in use by either model, at least one row."""
        cells = self.joint.cells()
        low, high = cells.bins(0)[[0, -1]]  # cells rise with the baseline's bin
        new = cells.bins(1)
        first, last = min(low, new.min()), max(high, new.max())
        return slice(int(first) << COARSE_BITS, int(last + 1) << COARSE_BITS)

    def merge(self, other: "Summary") -> None:
        """Adds another part's rows; both are weighted, or neither."""
        self.rows += other.rows
        self.positives += other.positives
        used = np.flatnonzero(other.rows_by_bin.any(axis=(0, 1)))
        self.rows_by_bin[:, :, used] += other.rows_by_bin[:, :, used]
        if self.weighted:
            self.mass[:, :, used] += other.mass[:, :, used]
        self.joint.merge(other.joint.cells())
        self.losses.merge(other.losses)
        for ours, theirs in zip(self.above, other.above):
            ours.merge(theirs)
        self.same &= other.same

    def arrays(self) -> Dict[str, np.ndarray]:
        """All state, in arrays for a file; `from_arrays` reads them."""
        used = np.flatnonzero(self.rows_by_bin.any(axis=(0, 1)))
        cells = self.joint.cells()
        held = {
            "bins": used,
            "rows": self.rows_by_bin[:, :, used],
            "keys": cells.keys,
            "cell_rows": cells.rows,
            "sums": self.losses.sums,
            "probabilities": np.array(self.losses.probabilities),
            "same": np.array(self.same),
            "above": np.stack([of_model.amounts for of_model in self.above]),
            "within": np.array([of_model.within for of_model in self.above]),
        }
        if self.weighted:
            held.update(mass=self.mass[:, :, used], squares=cells.squares)
        return held

    @classmethod
    def from_arrays(
        cls, held: Dict[str, np.ndarray], weighted: bool, logits: Tuple[bool, bool]
    ) -> "Summary":
        """The summary whose `arrays` these are.

        Raises:
            KeyError, IndexError, ValueError: `arrays` cannot have given them.
            BadInput: counts that do not add up.
        """
        summary = cls(weighted, logits)
        summary.rows_by_bin[:, :, held["bins"]] = held["rows"]
        summary.rows = int(held["rows"][0].sum())
        summary.positives = int(held["rows"][0, 1].sum())
        cells = Cells(held["keys"], held["cell_rows"], held["cell_rows"])
        if summary.weighted:
            summary.mass[:, :, held["bins"]] = held["mass"]
            cells = cells._replace(squares=held["squares"])
        summary.joint.merge(cells)
        summary.losses.sums = np.array(held["sums"], float)
        summary.losses.probabilities = bool(held["probabilities"])
        for of_model, amounts, within in zip(summary.above, held["above"], held["within"]):
            of_model.restore(amounts, bool(within))
        summary.same = bool(held["same"])
        # Both models' bins and the cells hold the same rows.
        counted = {int(cells.rows.sum()), summary.rows, int(held["rows"][1].sum())}
        if len(counted) > 1 or min(held["rows"].min(initial=0), cells.rows.min(initial=0)) < 0:
            raise BadInput("its counts do not add up")
        return summary
