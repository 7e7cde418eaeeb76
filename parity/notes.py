"""Sentences on the limits of a comparison: its few rows, and its missing figures.

Warnings, of a mix-up that a good verdict can rest on, are in parity.doubts.
"""

from typing import NamedTuple, Optional, Tuple

import numpy as np

from parity.stats.equivalence import Evidence
from parity.stats.intervals import observations_to_resolve, resolution

FEW = 40  # the standard error from fewer rows of a class, or clusters, is itself rough

_NO_LOSSES = (
    "Log loss, NE, PCOC and ECE are not available: {}. They need scores strictly between 0 and 1; "
    "--baseline-logit and --candidate-logit read logits."
)


def notes_on_unmoved(evidence: Evidence) -> Tuple[str, ...]:
    """A note where the standard error is 0 although the models rank differently."""
    if not evidence.reach:
        return ()
    return (
        "The standard error is 0 although the models rank differently; the interval is the rule of "
        f"three's for {_count(evidence.observations)} that all see the same difference.",
    )


def notes_on_few(observations: float, margin: float) -> Tuple[str, ...]:
    """The limits of so few observations (parity.stats.delong)."""
    notes = []
    if observations < FEW:
        notes.append(
            f"The standard error rests on {_count(observations)} and is itself rough; {FEW} or "
            "more are advised."
        )
    if resolution(observations) >= margin:
        notes.append(
            f"However alike the models rank them, {_count(observations)} cannot vouch for less "
            f"than +-{resolution(observations):.2g}; this margin takes "
            f"{observations_to_resolve(margin):,} or more."
        )
    return tuple(notes)


def _count(observations: float) -> str:
    return (
        f"{observations:,.0f} observations (rows of the rarer class, or clusters that hold it, as "
        "many as count alike)"
    )


class Extent(NamedTuple):
    """The least and the largest of one side's scores, and how many are exactly 0 and 1."""

    low: float
    high: float
    zeros: int
    ones: int

    @classmethod
    def of(cls, scores: np.ndarray) -> "Extent":
        """The extent of scores (n,)."""
        edges = (int(np.count_nonzero(scores == edge)) for edge in (0, 1))
        return cls(float(scores.min()), float(scores.max()), *edges)


def why_no_losses(baseline: Optional[Extent], candidate: Optional[Extent]) -> Tuple[str, ...]:
    """A sentence where a score of either side has no log loss; None stands for a side of logits."""
    sides = {"baseline": baseline, "candidate": candidate}
    reasons = [text for side, extent in sides.items() if extent for text in _reasons(side, extent)]
    return (_NO_LOSSES.format(", and ".join(reasons)),) if reasons else ()


def why_no_counted_losses(exist: bool) -> Tuple[str, ...]:
    """`why_no_losses` for counts, which do not keep the scores."""
    return () if exist else (_NO_LOSSES.format("a score is 0, 1 or outside of them"),)


def _reasons(side: str, extent: Extent) -> Tuple[str, ...]:
    low, high, *edges = extent
    if low < 0 or high > 1:
        return (f"the {side}'s scores lie between {low:.3g} and {high:.3g}",)
    shares = [f"{count:,} are {edge} exactly" for edge, count in enumerate(edges) if count]
    return (f"of the {side}'s scores {' and '.join(shares)}",) if shares else ()
