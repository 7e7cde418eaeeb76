"""Nothing but chance: one run per side cannot tell a changed model from a changed seed.

The score is how often equal models would differ by as much in AUC on as many rows, by the choice of
the rows alone: the two-sided p-value of no difference. One run per side cannot show what the seed
adds to that, so no figure stands for it; it can only make such differences more common. With
several runs per side, this is not a suspect.
"""

from typing import Optional

from parity.diagnosis.case import Case
from parity.result import CHANCE, Suspect

NAME = "training noise"


def suspect(case: Case) -> Optional[Suspect]:
    """Asks whether the seeds' noise was measured, and whether chance could be all."""
    comparison = case.comparison
    if comparison.training is not None or (case.rows is not None and case.apart is None):
        return None
    often, delta = comparison.p_difference, abs(comparison.delta)
    return Suspect(
        NAME,
        often,
        (
            "One run of each model is compared, so that nothing tells what the seed alone does.",
            f"The choice of the rows alone makes equal models differ by {delta:.2g} or "
            f"more in {often:.0%} of all samples like this one; two seeds differ more often still.",
        ),
        "Train a second run of each model with another seed; --baseline and --candidate compare "
        "several.",
        CHANCE,
    )
