"""The rows that contribute most to the difference of the AUCs.

The difference is the mean over either class of the rows' placement differences d. Split evenly
between the classes, a row's share of it is w d / (2 x weight of its class): the shares add up to
the difference.
"""

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from parity.inputs.rows import Rows, checked_rows
from parity.stats.roc import rank
from semisync.common.errors import UsageError


class WorstRow(NamedTuple):
    """One row and its share of the difference."""

    row: int  # from 0, in the order given
    label: int
    baseline: float
    candidate: float
    share: float  # of the difference, in units of AUC
    columns: Optional[Dict[str, Any]] = None  # of the file, to know the row by


def worst_rows(
    labels: Any,
    baseline: Any,
    candidate: Any,
    count: int = 20,
    weights: Any = None,
    logits: Iterable[str] = (),
) -> Tuple[WorstRow, ...]:
    """The rows with the largest shares on the side of the difference, largest first.

    Args:
        labels, baseline, candidate, weights, logits: as for `parity.compare`.
        count: how many rows at most; rows that pull the other way are never among them.

    Returns:
        A tuple of `WorstRow`: row (from 0), label, both scores, and the row's share of the
        difference.

    Raises:
        BadInput: as `parity.compare`.
        UsageError: a count below 0.

    Examples:
        >>> worst = parity.worst_rows(labels, baseline, candidate, count=3)
        >>> len(worst), worst[0].share == max((row.share for row in worst), key=abs)
        (3, True)
    """
    if count < 0:
        raise UsageError(f"the count of rows is {count}; 0 or more is expected")
    rows = checked_rows(labels, baseline, candidate, None, weights, logits)
    positive = rows.positive
    old, new = (rank(scores, positive, rows.weights) for scores in (rows.baseline, rows.candidate))
    share = (new.placements() - old.placements()) / 2
    weight = np.ones(len(share)) if rows.weights is None else rows.weights
    of_positives = float(weight[positive].sum())
    share *= weight / np.where(positive, of_positives, float(weight.sum()) - of_positives)
    towards = share if share.sum() >= 0 else -share
    order = np.argsort(-towards, kind="stable")[:count]
    given = np.arange(len(share)) if rows.kept is None else np.flatnonzero(rows.kept)
    return tuple(picked(order[towards[order] > 0], rows, given, share))


def picked(
    chosen: np.ndarray, rows: Rows, numbers: np.ndarray, share: np.ndarray
) -> List[WorstRow]:
    """The rows at the indices `chosen`; numbers and share are of all of `rows`, each (n,)."""
    held = rows.take(chosen)
    old, new = held.probabilities(0), held.probabilities(1)
    return [
        WorstRow(
            row=int(numbers[i]),
            label=int(held.positive[at]),
            baseline=float(old[at]),
            candidate=float(new[at]),
            share=float(share[i]),
        )
        for at, i in enumerate(chosen)
    ]
