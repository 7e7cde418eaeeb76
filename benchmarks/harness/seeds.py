"""Differences between two modes of training, seed by seed.

They are paired: the same seed gives both modes the same initial values, batches and slow batches,
so that the common effect of a seed cancels. The 95 % interval is Student's over the seeds: it
covers the seeds and the randomness of scheduling, not the choice of the test rows.
"""

import statistics
from typing import NamedTuple, Optional

from scipy.stats import ttest_rel

MARGIN = 5e-4  # of AUC, the target


class Difference(NamedTuple):
    """Mode minus another, a mean over pairs, and its interval, None for a single seed."""

    mean: float
    low: Optional[float] = None
    high: Optional[float] = None

    @property
    def cells(self):
        """[mean, interval] as text."""
        known = self.low is not None
        interval = "{:+.5f} to {:+.5f}".format(self.low, self.high) if known else ""
        return ["{:+.5f}".format(self.mean), interval]


def paired(mode, other):
    """The Difference of two dicts of seed -> figure; only seeds in both count."""
    pairs = [(mode[seed], other[seed]) for seed in sorted(set(mode) & set(other))]
    mean = statistics.mean(one - another for one, another in pairs)
    if len(pairs) < 2:
        return Difference(mean)
    return Difference(mean, *ttest_rel(*zip(*pairs)).confidence_interval())
