"""Faults too rare to have hit one of a sample's rows.

1. **The floor.** A fault that hits a share f of the rows of one class leaves all n of them alone
   with probability (1 - f)^n, so a sample without a hit excludes, with 95 % confidence, only
   f >= -ln(0.05) / n, the rule of three (Hanley & Lippman-Hand 1983).
2. **The reach.** The AUC is the mean placement V over either class (parity.stats.roc). A fault
   takes a row's placement to 0 or 1 at worst, so it moves the AUC by f r at most, where r is the
   largest max(V, 1 - V) of the class. The largest hidden move is

       floor = max over classes of r_c (-ln 0.05) / n_c

   The rarer class decides. A fault that hits both classes is missed with probability of about
   exp(-f_p P - f_n Q) and moves the AUC by r (f_p + f_n) at most; subject to f_p P + f_n Q < 3.0
   that is largest where it hits the smaller class alone.
3. **The allowance.** Where a handful of rows carry the standard error, the normal interval is too
   narrow on the far side: one hit in n rows gives 1 + 1.645, but a Poisson count of 1 does not
   exclude 4.74. The difference is at most -ln(0.05) = 3.0 hits, and exactly that without any.
   So the verdict asks that the interval, with -ln(0.05) more rows such as those that carry it
   (`step` of parity.stats.delong.Spread) on either side, lies inside the margin, or outside of it.
   Where many rows carry it that is next to nothing.

n is `observations` of parity.stats.delong: clusters that hold the class where rows come in
clusters. The verdict that asks for floor and allowance is `decide` of parity.stats.equivalence.
Other evidence may stand for the floor: the record of a complete verification of the converted model
(parity.verified), which leaves no row of a table for a fault to be in.
"""

import math
from typing import NamedTuple, Optional, Tuple

import numpy as np

from parity.stats.equivalence import Reason
from parity.stats.intervals import HITS, unseen
from parity.stats.rows_needed import FEW_CARRIERS, rows_to_count


class RareFailures(NamedTuple):
    """The AUC's possible move by faults that the sample need not show."""

    observations: float  # rows, or clusters, of the class that decides
    share: float  # of the class: a fault that hits fewer may hit none of them
    reach: float  # of the AUC, if it hit all
    floor: float  # share x reach
    rows_to_exclude: Optional[int]  # that bring the floor below the margin, if one can be named
    carriers: float  # rows or clusters that carry the standard error
    allowance: float  # for those, beyond the interval, in units of AUC


class Sample(NamedTuple):
    """The inputs of a floor and an allowance; pairs are of negatives and positives."""

    rows: int
    observations: Tuple[float, float]  # effective numbers of rows or clusters
    reaches: Tuple[float, float]
    carriers: float
    step: float
    alike: bool = True  # parity.stats.rows_needed.Basis


def rare_failures(sample: Sample, margin: float) -> RareFailures:
    """The floor of the class for which it is larger."""
    floors = [unseen(n) * reach for n, reach in zip(sample.observations, sample.reaches)]
    worst = int(floors[1] >= floors[0])
    observations, reach = sample.observations[worst], sample.reaches[worst]
    needed = math.floor(HITS * reach / margin) + 1
    return RareFailures(
        observations=observations,
        share=unseen(observations),
        reach=reach,
        floor=floors[worst],
        rows_to_exclude=rows_to_count(sample.rows, observations, needed, sample.alike),
        carriers=sample.carriers,
        allowance=HITS * sample.step,
    )


def reaches(positive: np.ndarray, placements: np.ndarray) -> Tuple[float, float]:
    """The largest move of a placement of either class, negatives first: bool (n,), float64 (n,)."""
    of_classes = (placements[~positive], placements[positive])
    negatives, positives = (max(float(v.max()), 1 - float(v.min())) for v in of_classes)
    return negatives, positives


def notes_on_carriers(rare: RareFailures, reason: Optional[Reason]) -> Tuple[str, ...]:
    """Sentences where few rows or clusters carry the standard error, or prevent a verdict."""
    sentences = []
    if 0 < rare.carriers < FEW_CARRIERS or reason is Reason.CARRIERS:
        sentences.append(
            f"About {max(1, round(rare.carriers))} rows, or clusters, carry the standard error, "
            "which is rough then: the interval may hold the truth less often than it says."
        )
    if reason is Reason.CARRIERS:
        sentences.append(
            f"Three more rows like them would move the AUC by {rare.allowance:.2g}, and a sample "
            "often misses as many; with that on either side the interval lies across an edge of "
            "the margin."
        )
    return tuple(sentences)
