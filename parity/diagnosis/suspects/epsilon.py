"""The optimizers' epsilons differ.

With d the root of the second moment, an update is divided by d + epsilon (by the root of d^2 +
epsilon in RMSProp). The score is the effect (parity.diagnosis.steps) of the ratio of both sides'
divisors for the typical parameter.
"""

import math
from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.steps import GRADIENT, denominator, effect
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "epsilon"


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the divisors, where both epsilons are known."""
    if case.models is None:
        return None
    old, new = (facts.settings.get("epsilon") for facts in case.models)
    if old is None or new is None or old == new:
        return None
    moment = denominator(case)
    square = GRADIENT**2 if moment is None else moment
    if (case.models[0].optimizer or "").startswith("RMSProp"):
        ratio = math.sqrt((square + old) / (square + new))
    else:
        ratio = (math.sqrt(square) + old) / (math.sqrt(square) + new)
    typical = (
        f"with gradients of {GRADIENT:g}" if moment is None else "of the checkpoint's median slot"
    )
    return Suspect(
        NAME,
        effect(ratio),
        (
            f"Epsilon is {old:g} in the baseline and {new:g} in the candidate.",
            f"For a parameter {typical} (root of the second moment {math.sqrt(square):.2g}) the "
            f"candidate's updates are {ratio:.3g} times as large.",
        ),
        f"Set epsilon to {old:g}; mind that TensorFlow's Adam adds it before the bias correction, "
        "torch's after.",
        SETTINGS,
    )
