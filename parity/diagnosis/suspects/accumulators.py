"""Adagrad's (or Ftrl's) accumulators began elsewhere: TensorFlow's at 0.1, torch's at 0.

An update is divided by the root of a0 + S, where S, the sum of squared gradients, grows from 0 to
what the checkpoint's median accumulator holds beyond a0. The score is the mean over that growth of
the effect (parity.diagnosis.steps) of the ratio of the two roots; without a checkpoint that of the
first update in the limit of small gradients, which is the largest.
"""

import math
from typing import Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts
from parity.diagnosis.steps import effect, told
from parity.diagnosis.suspect import SETTINGS, Suspect

NAME = "initial accumulators"
_STEPS = 100


def suspect(case: Case) -> Optional[Suspect]:
    """Compares the initial accumulators, where both are known."""
    if case.models is None:
        return None
    old, new = (facts.settings.get("initial_accumulator_value") for facts in case.models)
    if old is None or new is None or old == new or min(old, new) < 0:
        return None
    grown = told(case, _grown)
    sums = np.zeros(1) if grown is None else grown * np.arange(1, _STEPS + 1) / _STEPS
    with np.errstate(divide="ignore"):
        ratios = np.sqrt((old + sums) / (new + sums))
    first = f"{math.sqrt(old / new):.3g}" if new else "any number of"
    evidence = [
        f"Accumulators begin at {old:g} in the baseline and at {new:g} in the candidate: where "
        f"gradients are small, a first update is {first} times as large."
    ]
    if grown is not None:
        evidence.append(
            f"The median accumulator has grown by {grown:.2g}, where the candidate's updates are "
            f"still {ratios[-1]:.3g} times as large; rare ids' are nearer to the first."
        )
    return Suspect(
        NAME,
        float(np.mean([effect(float(ratio)) for ratio in ratios])),
        tuple(evidence),
        f"Begin the candidate's accumulators at {old:g} (FBGEMM: fill momentum1, the rows that are "
        "not trained yet too), or load the checkpoint's.",
        SETTINGS,
    )


def _grown(facts: Facts) -> Optional[float]:
    """The sum of squared gradients of the median trained parameter."""
    initial = facts.settings.get("initial_accumulator_value")
    if facts.denominator is None or initial is None:
        return None
    return max(facts.denominator - initial, 0.0) or None
