"""Logits, their probabilities and their log losses, without overflow.

A logit keeps digits that its probability lost: in float64 that is 1.0 from a logit of 36.7 on, in
float32 from 16.7 on, and 0.0 far below. So logits are ranked as they are, and

    log loss = ln(1 + e^-z) of a positive row, ln(1 + e^z) of a negative one (softplus)
"""

import numpy as np


def logit(probabilities: np.ndarray) -> np.ndarray:
    """ln p / (1 - p), for 0 < p < 1; -inf of 0 and inf of 1."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities) - np.log1p(-probabilities)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow, float64 (n,)."""
    small = np.exp(-np.abs(logits), dtype=np.float64)
    return np.where(logits >= 0, 1.0, small) / (1 + small)


def losses_of(positive: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """float64 (n,): each row's log loss, of bool (n,) labels and logits (n,), in nats."""
    wrong = np.where(positive, -logits, logits).astype(np.float64, copy=False)
    return np.maximum(wrong, 0) + np.log1p(np.exp(-np.abs(wrong)))
