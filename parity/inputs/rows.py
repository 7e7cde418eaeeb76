"""The rows of a comparison: every column checked once, rows of weight 0 left out."""

from typing import Any, NamedTuple, Optional

import numpy as np

from parity.inputs.checks import (
    Column,
    check_clusters,
    check_differences,
    check_labels,
    check_not_label,
    check_same_length,
    check_same_order,
    check_scores,
    check_weights,
)


class Rows(NamedTuple):
    """Columns of one length (n,); every weight is above 0."""

    positive: np.ndarray  # bool
    baseline: np.ndarray  # float32 or float64, finite
    candidate: np.ndarray
    clusters: Optional[np.ndarray] = None  # int64 codes from 0
    weights: Optional[np.ndarray] = None  # float64
    kept: Optional[np.ndarray] = None  # bool, per row given: has weight; None where all have

    @property
    def positives(self) -> int:
        """Rows with label 1."""
        return int(np.count_nonzero(self.positive))

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, len(self.positive) - self.positives)

    def aligned(self, values: np.ndarray, column: Column) -> np.ndarray:
        """Another column of the rows given, for the rows that are left."""
        check_same_length(self.positive if self.kept is None else self.kept, values, column)
        return values if self.kept is None else values[self.kept]

    def take(self, rows: np.ndarray) -> "Rows":
        """Those of the rows alone; a mask or row numbers."""
        return Rows(
            positive=self.positive[rows],
            baseline=self.baseline[rows],
            candidate=self.candidate[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


def checked_rows(
    labels: Any, baseline: Any, candidate: Any, clusters: Any = None, weights: Any = None
) -> Rows:
    """Checks the columns of `parity.compare`.

    Raises:
        BadInput: a column is not as above; the message names it and the first row at fault.
    """
    scores_given = {"baseline": baseline, "candidate": candidate}
    check_same_order(labels, {**scores_given, "clusters": clusters, "weights": weights})
    positive = check_labels(labels, Column("labels"))
    scores = []
    for name, values in scores_given.items():
        scores.append(check_scores(values, Column(name)))
        check_same_length(positive, scores[-1], Column(name))
        check_differences(scores[-1], Column(name))
        check_not_label(scores[-1], positive, Column(name))
    codes = weight = None
    if clusters is not None:
        codes = check_clusters(clusters, Column("clusters"))
        check_same_length(positive, codes, Column("clusters"))
    if weights is not None:
        weight = check_weights(weights, positive, Column("weights"))
    rows = Rows(positive, scores[0], scores[1], codes, weight)
    if weight is None or weight.all():
        return rows
    kept = weight > 0
    return rows.take(kept)._replace(kept=kept)
