"""Which figures there are not, and why: log loss, NE, PCOC and ECE need probabilities."""

from typing import Tuple

import numpy as np

_SENTENCE = (
    "Log loss, NE, PCOC and ECE cannot be had: {}. They need scores strictly between 0 and 1; "
    "--baseline-logit and --candidate-logit read logits."
)


def why_no_losses(baseline: np.ndarray, candidate: np.ndarray) -> Tuple[str, ...]:
    """A sentence where a score, (n,) of either side, has no log loss."""
    sides = {"baseline": baseline, "candidate": candidate}
    reasons = [reason for side, scores in sides.items() for reason in _reasons(side, scores)]
    return (_SENTENCE.format(", and ".join(reasons)),) if reasons else ()


def why_no_counted_losses(exist: bool) -> Tuple[str, ...]:
    """The same of counts, which do not tell the score."""
    return () if exist else (_SENTENCE.format("a score is 0, 1 or outside of them"),)


def _reasons(side: str, scores: np.ndarray) -> Tuple[str, ...]:
    low, high = float(scores.min()), float(scores.max())
    if low < 0 or high > 1:
        return (f"the {side}'s scores lie between {low:.3g} and {high:.3g}",)
    edges = {edge: int(np.count_nonzero(scores == edge)) for edge in (0, 1)}
    told = [f"{count:,} are {edge} exactly" for edge, count in edges.items() if count]
    return (f"of the {side}'s scores {' and '.join(told)}",) if told else ()
