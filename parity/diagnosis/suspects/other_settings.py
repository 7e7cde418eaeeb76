"""Other settings of the optimizer differ: momentum, decay rates, penalties.

The score is the effect (parity.diagnosis.steps) of the ratio of the windows 1 / (1 - x) that rates
of decay average over; for anything else that of an unknown difference. The largest counts.
"""

from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.steps import UNKNOWN, effect
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "optimizer settings"
ELSEWHERE = {"learning_rate", "epsilon", "initial_accumulator_value"}  # suspects of their own
RATES = {"beta1", "beta2", "momentum", "decay", "rho"}


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the settings that both sides tell."""
    if case.models is None:
        return None
    old, new = (facts.settings for facts in case.models)
    differ = {
        name: _effect(name, old[name], new[name])
        for name in sorted(set(old) & set(new) - ELSEWHERE)
        if old[name] != new[name]
    }
    if not differ:
        return None
    return Suspect(
        NAME,
        max(differ.values()),
        tuple(
            f"{name} is {old[name]:g} in the baseline and {new[name]:g} in the candidate."
            for name in sorted(differ, key=lambda name: -differ[name])
        ),
        "Train the candidate with the baseline's settings.",
        SETTINGS,
    )


def _effect(name: str, old: float, new: float) -> float:
    if name in RATES and min(old, new) >= 0 and max(old, new) < 1:
        return effect((1 - new) / (1 - old))
    return UNKNOWN
