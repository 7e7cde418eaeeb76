"""Suspects that compare one setting of the two models, as a table: TABLE has a row for each.

Settings alone do not tell by how much scores will differ. They give the factor r by which an update
of a typical parameter differs: its effect is 1 - min(r, 1 / r), 0 for equal updates, near 1 for
updates of another order of magnitude. The typical parameter is the median one of the checkpoint's
slots; without a checkpoint the size of gradients is not known, and the effect is its upper limit,
that of vanishing gradients, as the rarest ids have.

    setting               score
    untrained model       1, and it comes first: every other pattern follows from it
    optimizer             1: no factor tells how one optimizer's update compares with another's
    optimizer state       Adagrad: dividing by the root of the initial accumulator instead of the
                          grown one; others: UNKNOWN
    initial accumulators  an update is divided by the root of a0 + S, where S, the sum of squared
                          gradients, grows from 0 to the median accumulator's excess over a0:
                          the mean effect of the ratio of the roots over that growth
    learning rate         the ratio: every update is that much larger
    epsilon               with d the root of the second moment, an update is divided by d + epsilon
                          (RMSProp: by the root of d^2 + epsilon): the ratio of the divisors
    optimizer settings    rates of decay: the ratio of the windows 1 / (1 - x) that they average
                          over; others: UNKNOWN; the largest counts
"""

import math
import re
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts
from parity.result import SETTINGS, Suspect

SIDES = ("baseline", "candidate")
UNKNOWN = 0.5  # of a difference that no formula turns into a factor: the middle of 0 and 1
RATES = {"beta1", "beta2", "momentum", "decay", "rho"}

_GROWTH_STEPS = 100


class Difference(NamedTuple):
    """A differing setting's contribution to a Suspect."""

    score: float
    evidence: Tuple[str, ...]
    remedy: str


class Setting(NamedTuple):
    """One row of the table.

    Attributes:
        of: the setting of one side; None: not known.
        judge: from the case and both sides' settings, which are known and differ, to what that
            makes; None where it is not a suspect.
    """

    name: str
    of: Callable[[Facts], Any]
    judge: Callable[[Case, Any, Any], Optional[Difference]]

    def suspect(self, case: Case) -> Optional[Suspect]:
        """The suspect, where both models are known and differ in the setting."""
        if case.models is None:
            return None
        old, new = map(self.of, case.models)
        if old is None or new is None or old == new:
            return None
        difference = self.judge(case, old, new)
        return None if difference is None else Suspect(self.name, *difference, basis=SETTINGS)


def effect(ratio: float) -> float:
    """1 - min(r, 1 / r), for r >= 0."""
    return 1 - min(ratio, 1 / ratio) if ratio > 0 else 1.0


def _of_optimizer(name: str) -> Callable[[Facts], Optional[float]]:
    return lambda facts: facts.settings.get(name)


def _untrained(case: Case, old: int, new: int) -> Optional[Difference]:
    if old and new:
        return None
    steps = (old, new)
    fresh = int(bool(old))
    source = (case.baseline, case.candidate)[fresh]
    assert source is not None  # its step is known
    return Difference(
        1.0,
        (
            f"The {SIDES[fresh]}'s checkpoint is of global step 0, before any training "
            f"({source.source}); the {SIDES[1 - fresh]}'s is of step {steps[1 - fresh]:,}.",
        ),
        f"Score the {SIDES[fresh]} from a checkpoint that was saved after training.",
    )


def _optimizer(case: Case, old: str, new: str) -> Optional[Difference]:
    if _without_package(old) == _without_package(new):
        return None
    return Difference(
        1.0,
        (f"The baseline trains with {old}, the candidate with {new}.",),
        f"Train the candidate with {old}; migrate.torchrec.optimizers has TensorFlow's that torch "
        "and FBGEMM lack.",
    )


def _without_package(optimizer: str) -> str:
    return re.sub(r"optimizer$", "", optimizer.rpartition(".")[2].lower())


def _optimizer_state(case: Case, old: int, new: int) -> Optional[Difference]:
    if old and new:
        return None
    slots = (old, new)
    with_state = int(not old)
    facts = (case.baseline, case.candidate)[with_state]
    assert facts is not None  # its slots are known
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
    return Difference(
        score,
        tuple(evidence),
        "Carry the slots over with the weights (`semisync convert` does) before training goes on.",
    )


def _accumulators(case: Case, old: float, new: float) -> Optional[Difference]:
    if min(old, new) < 0:
        return None
    grown = case.first_known(_growth)
    sums = np.zeros(1)
    if grown is not None:
        sums = grown * np.arange(1, _GROWTH_STEPS + 1) / _GROWTH_STEPS
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
    return Difference(
        float(np.mean([effect(float(ratio)) for ratio in ratios])),
        tuple(evidence),
        f"Begin the candidate's accumulators at {old:g} (FBGEMM: fill momentum1, the rows that are "
        "not trained yet too), or load the checkpoint's.",
    )


def _growth(facts: Facts) -> Optional[float]:
    """The sum of squared gradients of the median trained parameter."""
    initial = facts.settings.get("initial_accumulator_value")
    if facts.denominator is None or initial is None:
        return None
    return max(facts.denominator - initial, 0.0) or None


def _learning_rate(case: Case, old: float, new: float) -> Optional[Difference]:
    if not old:
        return None
    return Difference(
        effect(new / old),
        (
            f"The learning rate is {old:g} in the baseline and {new:g} in the candidate, "
            f"{new / old:.3g} times as much.",
        ),
        f"Train the candidate with the learning rate {old:g}; mind what its loss is a mean over.",
    )


def _epsilon(case: Case, old: float, new: float) -> Optional[Difference]:
    moment = case.first_known(lambda facts: facts.denominator)
    root = math.sqrt(moment or 0.0)
    assert case.models is not None  # their epsilons are known
    first, second = case.models
    divisors = _divisor(first, second, root, old), _divisor(second, first, root, new)
    ratio = divisors[0] / divisors[1] if divisors[1] else math.inf
    times = f"{ratio:.3g}" if math.isfinite(ratio) else "any number of"
    typical = "Where gradients are small, the candidate's updates are up to"
    if moment is not None:
        typical = (
            f"For a parameter of the checkpoint's median slot (root of its moment {root:.2g})"
            " the candidate's updates are"
        )
    return Difference(
        effect(ratio),
        (
            f"Epsilon is {old:g} in the baseline and {new:g} in the candidate.",
            f"{typical} {times} times as large.",
        ),
        f"Set epsilon to {old:g}; mind that TensorFlow's Adam adds it before the bias correction, "
        "torch's after.",
    )


def _divisor(facts: Facts, others: Facts, root: float, epsilon: float) -> float:
    """What divides an update, given the root of the moment; without a name it is the other model's
    optimizer."""
    under_root = facts.epsilon_under_root
    if facts.optimizer is None:
        under_root |= others.epsilon_under_root
    return math.sqrt(root**2 + epsilon) if under_root else root + epsilon


def _others(case: Case, old: Mapping[str, float], new: Mapping[str, float]) -> Optional[Difference]:
    """The settings known on both sides that have no row of their own."""
    effects = {
        name: _effect_of_other(name, old[name], new[name])
        for name in sorted(set(old) & set(new) - _OWN_ROW)
        if old[name] != new[name]
    }
    if not effects:
        return None
    return Difference(
        max(effects.values()),
        tuple(
            f"{name} is {old[name]:g} in the baseline and {new[name]:g} in the candidate."
            for name in sorted(effects, key=lambda name: -effects[name])
        ),
        "Train the candidate with the baseline's settings.",
    )


def _effect_of_other(name: str, old: float, new: float) -> float:
    if name in RATES and min(old, new) >= 0 and max(old, new) < 1:
        return effect((1 - new) / (1 - old))
    return UNKNOWN


UNTRAINED = Setting("untrained model", lambda facts: facts.step, _untrained)

_OWN_ROW = {"learning_rate", "epsilon", "initial_accumulator_value"}

TABLE = (
    Setting("optimizer", lambda facts: facts.optimizer, _optimizer),
    Setting("optimizer state", lambda facts: facts.slots, _optimizer_state),
    Setting("initial accumulators", _of_optimizer("initial_accumulator_value"), _accumulators),
    Setting("learning rate", _of_optimizer("learning_rate"), _learning_rate),
    Setting("epsilon", _of_optimizer("epsilon"), _epsilon),
    Setting("optimizer settings", lambda facts: facts.settings, _others),
)
