"""One side's scores are rounded: to half precision, to a few digits, to 8 bits.

The counterfactual: the finer side's scores at the nearest value that the coarser side ever has. The
score is the share of the distance that this removes. Scores count as coarse where there are at most
a quarter as many distinct values as on the other side.
"""

from typing import Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.inputs.logits import logit
from parity.result import ROWS, Suspect

NAME = "rounded scores"
FEWER = 4  # times as few distinct values


def suspect(case: Case) -> Optional[Suspect]:
    """Rounds the side with more distinct scores as the other one is."""
    rows, apart = case.rows, case.apart
    if rows is None or apart is None:
        return None
    distinct = [np.unique(scores) for scores in (rows.baseline, rows.candidate)]
    coarse = int(len(distinct[1]) <= len(distinct[0]))  # which side, 1 for the candidate
    grid = distinct[coarse]
    if len(grid) * FEWER > len(distinct[1 - coarse]):
        return None
    fine = (rows.candidate, rows.baseline)[coarse]
    rounded = _nearest(fine.astype(np.float64), grid.astype(np.float64))
    values = logit(rounded) if apart.logits else rounded
    left = float(apart.weight @ (values - (apart.new if coarse else apart.old)) ** 2)
    share = 1 - left / apart.total
    if share <= 0:
        return None
    sides = ("baseline", "candidate")
    side = (case.comparison.baseline, case.comparison.candidate)[coarse]
    evidence = [
        f"The {sides[coarse]}'s scores have {len(grid):,} distinct values, the "
        f"{sides[1 - coarse]}'s {len(distinct[1 - coarse]):,}; {side.tied_pairs:,} pairs of a "
        "positive and a negative row are tied.",
        f"Rounding the {sides[1 - coarse]}'s to the same values removes {share:.1%} of the "
        "difference between the scores.",
    ]
    if coarse:
        evidence.append(case.auc_in_words(rows.baseline, "Without the rounding, at best,"))
    return Suspect(
        NAME,
        share,
        tuple(evidence),
        f"Write the {sides[coarse]}'s scores as float32 from the last layer on, with all digits.",
        ROWS,
    )


def _nearest(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The value of the sorted grid that is nearest to each value."""
    if len(grid) == 1:
        return np.full(len(values), grid[0])
    middles = (grid[1:] + grid[:-1]) / 2
    return grid[np.searchsorted(middles, values)]
