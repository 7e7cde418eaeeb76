"""The rows of a comparison: every column checked once, rows of weight 0 left out."""

from typing import Any, Iterable, NamedTuple, Optional, Tuple

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
from parity.inputs.logits import logit, sigmoid
from semisync.common.errors import UsageError

SIDES = ("baseline", "candidate")


class Rows(NamedTuple):
    """Columns of one length (n,); every weight is above 0."""

    positive: np.ndarray  # bool
    baseline: np.ndarray  # float32 or float64, finite; the ranking scores
    candidate: np.ndarray
    clusters: Optional[np.ndarray] = None  # int64 codes from 0
    weights: Optional[np.ndarray] = None  # float64
    kept: Optional[np.ndarray] = None  # bool, per row given: has weight; None where all have
    logits: Tuple[bool, bool] = (False, False)  # whether baseline, candidate hold logits

    @property
    def positives(self) -> int:
        """Rows with label 1."""
        return int(np.count_nonzero(self.positive))

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, len(self.positive) - self.positives)

    @property
    def scores(self) -> Tuple[np.ndarray, np.ndarray]:
        """The scores of the baseline and the candidate, as they are ranked."""
        return self.baseline, self.candidate

    def probabilities(self, model: int) -> np.ndarray:
        """The scores of the baseline (0) or the candidate (1), (n,): of logits their sigmoid."""
        return sigmoid(self.scores[model]) if self.logits[model] else self.scores[model]

    def fits(self, *models: int) -> bool:
        """Whether all scores have a log loss: they lie strictly inside (0, 1), or are logits."""
        return all(
            self.logits[m] or (self.scores[m].min() > 0 and self.scores[m].max() < 1)
            for m in models or (0, 1)
        )

    def on_one_scale(self) -> Tuple[np.ndarray, np.ndarray]:
        """Both scores, (n,) each; as logits where one side has logits, the other probabilities."""
        old, new = self.scores
        if self.logits == (True, False) and new.min() >= 0 and new.max() <= 1:
            return old, logit(new)
        if self.logits == (False, True) and old.min() >= 0 and old.max() <= 1:
            return logit(old), new
        return old, new

    def aligned(self, values: np.ndarray, column: Column) -> np.ndarray:
        """Another column of the rows given, for the rows that are left."""
        check_same_length(self.positive if self.kept is None else self.kept, values, column)
        return values if self.kept is None else values[self.kept]

    def take(self, rows: np.ndarray) -> "Rows":
        """A selection of the rows; by a mask or row numbers."""
        return Rows(
            positive=self.positive[rows],
            baseline=self.baseline[rows],
            candidate=self.candidate[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
            weights=None if self.weights is None else self.weights[rows],
            logits=self.logits,
        )


def of_sides(logits: Iterable[str]) -> Tuple[bool, bool]:
    """Whether the baseline's scores, and the candidate's, are among those that are named.

    Raises:
        UsageError: another side is named.
    """
    named = (logits,) if isinstance(logits, str) else tuple(logits)
    for side in named:
        if side not in SIDES:
            raise UsageError(f"logits names {side!r}; 'baseline', 'candidate' or both are expected")
    return SIDES[0] in named, SIDES[1] in named


def checked_rows(
    labels: Any,
    baseline: Any,
    candidate: Any,
    clusters: Any = None,
    weights: Any = None,
    logits: Iterable[str] = (),
) -> Rows:
    """Checks the columns of `parity.compare`.

    Raises:
        BadInput: a column is not as above; the message names it and the first row at fault.
        UsageError: `logits` names another side.
    """
    held = of_sides(logits)
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
    given = Rows(positive, scores[0], scores[1], codes, weight)
    rows = given._replace(logits=held)
    if weight is None or weight.all():
        return rows
    kept = weight > 0
    return rows.take(kept)._replace(kept=kept)
