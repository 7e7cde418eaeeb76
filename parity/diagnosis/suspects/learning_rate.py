"""The learning rates differ.

The score is the effect (parity.diagnosis.steps) of their ratio: every update is that much larger.
"""

from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.steps import effect
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "learning rate"


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the rates, where both are known."""
    if case.models is None:
        return None
    old, new = (facts.settings.get("learning_rate") for facts in case.models)
    if old is None or new is None or old == new or not old:
        return None
    return Suspect(
        NAME,
        effect(new / old),
        (
            f"The learning rate is {old:g} in the baseline and {new:g} in the candidate, "
            f"{new / old:.3g} times as much.",
        ),
        f"Train the candidate with the learning rate {old:g}; mind what its loss is a mean over.",
        SETTINGS,
    )
