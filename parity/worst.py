"""The rows that pull the difference of the AUCs hardest towards what was found.

The difference is the mean over either class of the rows' placement differences d. Split evenly
between the classes, a row's share of it is w d / (2 x weight of its class): the shares add up to
the difference.
"""

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from parity.checks import Column, check_labels, check_same_length, check_scores, check_weights
from parity.ranking import rank


class WorstRow(NamedTuple):
    """One row and its share of the difference."""

    row: int  # from 0, in the order given
    label: int
    baseline: float
    candidate: float
    share: float  # of the difference, in units of AUC


def worst_rows(
    labels: Any, baseline: Any, candidate: Any, count: int = 20, weights: Any = None
) -> Tuple[WorstRow, ...]:
    """The rows with the largest shares on the side of the difference, largest first.

    Args:
        labels, baseline, candidate, weights: as for `parity.compare`.
        count: how many rows at most; rows that pull the other way are never among them.
    """
    positive = check_labels(labels, Column("labels"))
    scores = []
    for values, name in ((baseline, "baseline"), (candidate, "candidate")):
        checked = check_scores(values, Column(name))
        check_same_length(positive, checked, Column(name))
        scores.append(checked)
    weight: Optional[np.ndarray] = None
    if weights is not None:
        weight = check_weights(weights, positive, Column("weights"))
    old, new = (rank(values, positive, weight) for values in scores)
    share = (new.placements() - old.placements()) / 2
    heavy = np.ones(len(share)) if weight is None else weight
    share *= heavy
    of_positives = float(heavy[positive].sum())
    share /= np.where(positive, of_positives, float(heavy.sum()) - of_positives)
    towards = share if share.sum() >= 0 else -share
    order = np.argsort(-towards, kind="stable")[:count]
    return tuple(
        WorstRow(
            int(i), int(positive[i]), float(scores[0][i]), float(scores[1][i]), float(share[i])
        )
        for i in order
        if towards[i] > 0
    )
