"""GAUC: how well a model ranks within each group, which is what a page of one user's items sees.

    GAUC = sum over groups of (impressions x AUC within the group) / impressions,
           over the groups that hold both classes

(Zhu et al. 2017.) Groups of one class have no AUC and are left out, not counted as 0.5 as
TorchRec does. With weights, impressions are the group's weight.

The difference D of two models is paired: a group g pulls it by psi_g = n_g (d_g - D) / sum n_g, d_g
being its own difference, and its variance is n / (n - 1) sum psi_g^2 over the n groups.
"""

from typing import NamedTuple, Optional

import numpy as np

from parity.stats.calibration import MeanDifference, mean_difference
from parity.stats.sorting import sortable_bits


class WithinGroups(NamedTuple):
    """The groups that hold both classes, in the order of their codes."""

    areas: np.ndarray  # float64 (groups,): AUC within each
    weights: np.ndarray  # float64 (groups,): impressions

    @property
    def gauc(self) -> Optional[float]:
        """The mean of `areas` by weight; None without a group."""
        return float(np.average(self.areas, weights=self.weights)) if len(self.areas) else None


def within_groups(
    positive: np.ndarray,
    scores: np.ndarray,
    groups: np.ndarray,
    weights: Optional[np.ndarray] = None,
) -> WithinGroups:
    """Each group's own AUC, of checked rows.

    Args:
        positive: bool (n,).
        scores: float32 or float64 (n,), finite.
        groups: int (n,) codes from 0.
        weights: float64 (n,) above 0, or None.
    """
    bits = sortable_bits(scores)
    order = np.lexsort((bits, groups))  # by group, then by score
    group, bits, label = groups[order], bits[order], positive[order]
    weight = np.ones(len(order)) if weights is None else weights[order]
    new_group = np.concatenate(([True], group[1:] != group[:-1]))
    starts = np.flatnonzero(new_group)
    runs = np.flatnonzero(new_group | np.concatenate(([True], bits[1:] != bits[:-1])))

    of_runs = [np.add.reduceat(np.where(rows, weight, 0.0), runs) for rows in (label, ~label)]
    first_run = np.searchsorted(runs, starts)
    positives, negatives = (np.add.reduceat(amounts, first_run) for amounts in of_runs)
    before = np.cumsum(of_runs[1]) - of_runs[1] / 2  # of all groups; less the sum before its own
    earlier = np.repeat(np.cumsum(negatives) - negatives, np.diff(np.append(first_run, len(runs))))
    won = np.add.reduceat(of_runs[0] * (before - earlier), first_run)

    both = (positives > 0) & (negatives > 0)
    share = (positives + negatives)[both]
    return WithinGroups(won[both] / (positives * negatives)[both], share)


def gauc_difference(
    old: Optional[WithinGroups], new: Optional[WithinGroups]
) -> Optional[MeanDifference]:
    """The difference in GAUC; None unless two groups hold both classes."""
    if old is None or new is None or len(old.areas) < 2:
        return None
    apart, share = new.areas - old.areas, old.weights / old.weights.sum()
    delta = float(apart @ share)
    return mean_difference(delta, share * (apart - delta), 1.0, share)
