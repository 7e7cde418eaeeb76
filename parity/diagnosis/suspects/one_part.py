"""One slice or one day, or the days from one on, carry the difference.

The score is the share of the distance in the rows of the part beyond its share of the rows.
"""

from typing import Optional, Tuple

import numpy as np

from parity.diagnosis.case import Case
from parity.result import SYMPTOM, Suspect

NAME = "one part of the rows"


def suspect(case: Case) -> Optional[Suspect]:
    """Takes the part with the largest share."""
    apart = case.apart
    if apart is None:
        return None
    squares = apart.weight * apart.residuals()
    places = sum(
        len(np.unique(values)) * (2 if column == case.day else 1)
        for column, values in case.parts.items()
    )
    best: Tuple[float, str, Optional[np.ndarray]] = (0.0, "", None)
    for column, values in case.parts.items():
        name, rows = _fullest(column, values, column == case.day, apart.weight, squares)
        share = apart.share(rows, places)
        if best[2] is None or share * (1 - rows.mean()) > best[0] * (1 - best[2].mean()):
            best = (share, name, rows)
    share, name, chosen = best
    if chosen is None or not share:
        return None
    return Suspect(
        NAME,
        share,
        (
            f"{name} has {chosen.mean():.1%} of the rows, and {share:.0%} of the difference "
            "between the scores beyond that.",
            case.auc_in_words(apart.mended(chosen), "With the baseline's scores on those rows"),
        ),
        f"Compare the features of rows of {name} as each side reads them.",
        SYMPTOM,
    )


def _fullest(
    column: str, values: np.ndarray, is_day: bool, weight: np.ndarray, squares: np.ndarray
) -> Tuple[str, np.ndarray]:
    """The value, or the days from one on, with most of the scatter beyond its share of the rows."""
    distinct, code = np.unique(values, return_inverse=True)
    of_rows = np.bincount(code, weight, len(distinct))
    scatter = np.bincount(code, squares / max(float(squares.sum()), 1e-300), len(distinct))
    beyond = scatter - of_rows
    best = int(np.argmax(beyond))
    if is_day and len(distinct) > 2:
        later = np.cumsum(beyond[::-1])[::-1][1:-1]
        first = int(np.argmax(later)) + 1
        if later[first - 1] > beyond[best]:
            return f"{column} {distinct[first]} and later", code >= first
    return f"{column} {distinct[best]}", code == best
