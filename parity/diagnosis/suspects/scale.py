"""The candidate's scores are the baseline's on another scale: a sigmoid too many, or inverted.

The counterfactual: the baseline's scores through the suspected function. The score is the share of
the mean squared difference (of the scores as they are) that is gone then. Only nine tenths or more
count, as any rising function takes some of the difference away.
"""

from typing import Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from parity.diagnosis.apart import logit, sigmoid
from parity.diagnosis.case import Case
from parity.result import ROWS, Suspect

NAME = "scores on another scale"
ENOUGH = 0.9

Function = Callable[[np.ndarray], np.ndarray]


class Scale(NamedTuple):
    """candidate = `apply`(baseline); `undo` turns the candidate's scores back."""

    name: str
    apply: Function
    undo: Function
    inside: bool  # whether `apply` takes scores between 0 and 1 alone
    rises: bool  # and so leaves the AUC as it is


def _opposite(scores: np.ndarray) -> np.ndarray:
    return 1 - scores


def _finite_logit(scores: np.ndarray) -> np.ndarray:
    """Where a sigmoid has come to 0 or 1, the nearest number that it can be undone for."""
    least = np.finfo(np.float32).eps
    return logit(np.clip(scores.astype(np.float64), least, 1 - least))


def find_scale(case: Case) -> Optional[Tuple[Scale, float]]:
    """The function that explains most, with its share; None where none explains enough."""
    rows = case.rows
    if rows is None or case.apart is None:
        return None
    old, new = rows.baseline.astype(np.float64), rows.candidate.astype(np.float64)
    weight = case.apart.weight
    before = float(weight @ (new - old) ** 2)
    shares: Dict[Scale, float] = {}
    for scale in _SCALES:
        if not scale.inside or (old.min() > 0 and old.max() < 1):
            shares[scale] = 1 - float(weight @ (new - scale.apply(old)) ** 2) / before
    best = max(shares, key=lambda scale: shares[scale])
    return (best, shares[best]) if shares[best] >= ENOUGH else None


def suspect(case: Case) -> Optional[Suspect]:
    """Asks for a sigmoid too many or too few, on either side, and for the opposite class."""
    best = find_scale(case)
    if best is None:
        return None
    scale, share = best
    rows = case.rows
    assert rows is not None  # find_scale saw them
    low, high = float(rows.candidate.min()), float(rows.candidate.max())
    return Suspect(
        NAME,
        share,
        (
            f"The candidate's scores are the baseline's with {scale.name}: that explains "
            f"{share:.1%} of their mean squared difference.",
            f"The candidate's lie between {low:.3g} and {high:.3g}, the baseline's between "
            f"{float(rows.baseline.min()):.3g} and {float(rows.baseline.max()):.3g}.",
            case.auc_in_words(scale.undo(rows.candidate), "With that undone"),
        ),
        "Write the same kind of score on both sides: the probability of a click, after one "
        "sigmoid.",
        ROWS,
    )


_SCALES = (
    Scale("a sigmoid applied once more", sigmoid, _finite_logit, False, True),
    Scale("the sigmoid left out", logit, sigmoid, True, True),
    Scale("the opposite class's probability", _opposite, _opposite, False, False),
    Scale("their sign turned", np.negative, np.negative, False, False),
)
