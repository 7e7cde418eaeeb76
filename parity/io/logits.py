"""Logits as scores: read as their probabilities in float64.

A float32 probability is 1.0 exactly from a logit of 16.7 on and has no log loss; in float64 it is
below 1 up to a logit of 36.7, and above 0 down to one of -745.
"""

from typing import Any, Optional

import numpy as np

from parity.diagnosis.apart import sigmoid
from semisync.common.errors import UsageError

ROLES = ("baseline_score", "candidate_score")


def probabilities(logits: np.ndarray) -> np.ndarray:
    """float64 (n,), of finite logits (n,)."""
    return sigmoid(logits.astype(np.float64))


def choose_columns(args: Any) -> None:
    """Takes --baseline-logit and --candidate-logit for the columns of scores.

    Raises:
        UsageError: a side has both a score and a logit.
    """
    for side in ("baseline", "candidate"):
        logit: Optional[str] = getattr(args, f"{side}_logit")
        if logit is not None and getattr(args, f"{side}_score") is not None:
            raise UsageError(f"give either --{side}-score or --{side}-logit, not both")
        if logit is not None:
            setattr(args, f"{side}_score", logit)
