"""One side's model came without its optimizer's state, so that training goes on from fresh slots.

The score, for Adagrad, is the effect (parity.diagnosis.steps) of dividing by the root of the
initial accumulator instead of the grown one; for others it is that of an unknown difference.
"""

import math
from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.steps import UNKNOWN, effect
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "optimizer state"
SIDES = ("baseline", "candidate")


def suspect(case: Case) -> Optional[Suspect]:
    """Asks whether one side alone has slots."""
    if case.models is None:
        return None
    slots = [facts.slots for facts in case.models]
    if None in slots or all(slots) or not any(slots):
        return None
    with_state = int(not slots[0])
    facts = case.models[with_state]
    score, initial = UNKNOWN, facts.settings.get("initial_accumulator_value")
    evidence = [
        f"The {SIDES[with_state]}'s files hold {facts.optimizer}'s state of {slots[with_state]} "
        f"variables, the {SIDES[1 - with_state]}'s hold none."
    ]
    if initial and facts.denominator:
        ratio = math.sqrt(facts.denominator / initial)
        score = effect(ratio)
        evidence.append(
            f"From fresh accumulators of {initial:g} the median parameter's next update is "
            f"{ratio:.3g} times as large as from its own."
        )
    return Suspect(
        NAME,
        score,
        tuple(evidence),
        "Carry the slots over with the weights (`semisync convert` does) before training goes on.",
        SETTINGS,
    )
