"""The optimizers' epsilons differ.

With d the root of the second moment, an update is divided by d + epsilon (by the root of d^2 +
epsilon in RMSProp). The score is the effect (parity.diagnosis.steps) of the ratio of both sides'
divisors for the typical parameter, without a checkpoint that of gradients of 0.
"""

import math
from typing import Optional

from parity.diagnosis.case import Case
from parity.diagnosis.steps import denominator, effect
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
    root = math.sqrt(moment or 0.0)
    if (case.models[0].optimizer or "").startswith("RMSProp"):
        divisors = [math.sqrt(root**2 + one) for one in (old, new)]
    else:
        divisors = [root + one for one in (old, new)]
    ratio = divisors[0] / divisors[1] if divisors[1] else math.inf
    typical = "Where gradients are small, the candidate's updates are up to"
    if moment is not None:
        typical = (
            f"For a parameter of the checkpoint's median slot (root of its moment {root:.2g})"
            " the candidate's updates are"
        )
    return Suspect(
        NAME,
        effect(ratio),
        (
            f"Epsilon is {old:g} in the baseline and {new:g} in the candidate.",
            f"{typical} {_times(ratio)}.",
        ),
        f"Set epsilon to {old:g}; mind that TensorFlow's Adam adds it before the bias correction, "
        "torch's after.",
        SETTINGS,
    )


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times as large" if math.isfinite(ratio) else "any number of times as large"
