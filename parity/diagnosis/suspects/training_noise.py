"""Nothing but the seed: one run a side cannot tell a changed model from a changed seed.

The score is how often two runs of one pipeline would differ by as much in AUC or more, at a
standard deviation of 3e-4 between seeds, on rows like these. It is silent with several runs a side.
"""

import math
from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.suspect import CHANCE, Suspect

NAME = "training noise"
SEED_SD = 3e-4  # of the AUC; what click models on some million rows commonly show


def suspect(case: Case) -> Optional[Suspect]:
    """Asks whether the seeds' noise was measured, and whether it could be all."""
    found = case.found
    if found.training is not None or (case.rows is not None and case.apart is None):
        return None
    error = math.sqrt(found.standard_error**2 + 2 * SEED_SD**2)
    often = math.erfc(abs(found.delta) / error / math.sqrt(2))
    return Suspect(
        NAME,
        often,
        (
            "One run of each model is compared, so that nothing tells what the seed alone does.",
            f"If the AUC of a pipeline's runs has a standard deviation of {SEED_SD:g}, two runs "
            f"differ by {abs(found.delta):.2g} or more in {often:.0%} of all pairs on such rows.",
        ),
        "Train a second run of each model with another seed; --baseline and --candidate compare "
        "several.",
        CHANCE,
    )
