"""Where all rows see the same difference, so that the standard error is 0 and says nothing.

Two models that rank every row alike are such a case, and so are few rows that one model ranks right
and the other wrong. What then is known is in `parity.stats.equivalence.unmoved_interval`.
"""

from typing import NamedTuple, Optional

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.delong import Spread
from parity.stats.ordering import tie_groups

ROUNDING = 1e-14  # placement differences that differ at all do so by 1 / (2 rows) or more


class Unmoved(NamedTuple):
    """How far the ranks moved although the difference did not vary."""

    ranks: float  # by which the mid-rank of some row differs at most; 0 if all are ranked alike
    reach: float  # how far a placement may move, of `unmoved_interval`


def unmoved(rows: Rows, moved: np.ndarray, found: Spread) -> Optional[Unmoved]:
    """None where the rows' differences vary, as the clusters' sums of them do.

    Args:
        moved: float64 (n,), candidate's placement - baseline's.
        found: their spread.
    """
    alike = float(np.ptp(moved)) <= ROUNDING
    if not alike and (found.clustered is None or found.clustered > 1e-9 * found.independent):
        return None
    old, new = (tie_groups(scores).mid_ranks() for scores in (rows.baseline, rows.candidate))
    ranks = float(np.abs(new - old).max())
    # A row of the rarer class passes at most 2 `ranks` rows of the other.
    return Unmoved(ranks, min(1.0, 2 * ranks / (len(moved) - rows.rarer)) if alike else 1.0)
