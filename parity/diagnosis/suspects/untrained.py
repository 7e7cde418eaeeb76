"""A trained model is compared with one that was never trained: the global step of a side is 0.

The score is 1, and it comes first whatever else is seen: what an untrained model scores explains
nothing of a trained one, and every other pattern follows from it.
"""

from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "untrained model"
SIDES = ("baseline", "candidate")


def suspect(case: Case) -> Optional[Suspect]:
    """Asks whether one side alone was trained, where both say."""
    if case.models is None:
        return None
    steps = [facts.step for facts in case.models]
    if None in steps or all(steps) or not any(steps):
        return None
    fresh = int(bool(steps[0]))
    return Suspect(
        NAME,
        1.0,
        (
            f"The {SIDES[fresh]}'s checkpoint is of global step 0, before any training "
            f"({case.models[fresh].source}); the {SIDES[1 - fresh]}'s is of step "
            f"{steps[1 - fresh]:,}.",
        ),
        f"Score the {SIDES[fresh]} from a checkpoint that was saved after training.",
        SETTINGS,
    )
