"""BatchNorm's moving statistics: never updated on one side, or different ones.

Where the baseline's layer gives z = (x - m) / s of variance 1, with s^2 = variance + epsilon, the
candidate's gives z s / s' + (m - m') / s'. The expected squared difference is

    D = (s / s' - 1)^2 + ((m - m') / s')^2

and the score is D / (1 + D), with D's mean over all channels. Statistics of 0 and 1 were never
updated, or not carried over. Others also differ where the weights before them do, so that they are
a symptom.
"""

from typing import List, Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts
from parity.diagnosis.suspects.settings import UNKNOWN
from parity.result import SETTINGS, SYMPTOM, Suspect

NAME = "BatchNorm statistics"
EPSILON = 1e-3  # TensorFlow's


def suspect(case: Case) -> Optional[Suspect]:
    """Asks for layers that were never updated, then compares the layers of the same name."""
    sides = (("baseline", case.baseline), ("candidate", case.candidate))
    fresh = [(side, facts) for side, facts in sides if facts is not None and _all_initial(facts)]
    settings = _settings_in_words(case)
    score = _difference(case)
    if len(fresh) == 2:
        return None
    if fresh:
        side, facts = fresh[0]
        evidence = [
            f"All moving means are 0 and all moving variances 1 in the {side}'s "
            f"{len(facts.moving)} BatchNorm layers: they were never updated, or were left behind."
        ]
        if score is not None:
            evidence.append(_effect_in_words(score))
        remedy = (
            "Carry moving_mean and moving_variance over, and run the update ops (TensorFlow's "
            "UPDATE_OPS) while training."
        )
        best = 1.0 if score is None else score
        return Suspect(NAME, best, (*evidence, *settings), remedy, SETTINGS)
    remedy = (
        "Carry moving_mean, moving_variance and epsilon over; torch's momentum is 1 - TensorFlow's."
    )
    if score is not None:
        evidence = ["BatchNorm's moving statistics differ.", _effect_in_words(score), *settings]
        return Suspect(NAME, score, tuple(evidence), remedy, SYMPTOM)
    if settings:
        return Suspect("BatchNorm settings", UNKNOWN, tuple(settings), remedy, SETTINGS)
    return None


def _all_initial(facts: Facts) -> bool:
    return bool(facts.moving) and all(layer.initial for layer in facts.moving.values())


def _difference(case: Case) -> Optional[float]:
    """D / (1 + D) over the layers that both have; None where there are none, or all are equal."""
    if case.models is None:
        return None
    old, new = case.models
    squares = []
    for layer in sorted(set(old.moving) & set(new.moving)):
        if old.moving[layer].mean.shape != new.moving[layer].mean.shape:
            continue
        deviations = [
            np.sqrt(facts.moving[layer].variance + facts.batch_norm.get("epsilon", EPSILON))
            for facts in (old, new)
        ]
        apart = (old.moving[layer].mean - new.moving[layer].mean) / deviations[1]
        squares.append((deviations[0] / deviations[1] - 1) ** 2 + apart**2)
    if not squares:
        return None
    mean = float(np.mean(np.concatenate(squares)))
    return mean / (1 + mean) or None


def _effect_in_words(score: float) -> str:
    return (
        f"A normalised activation differs by {(score / (1 - score)) ** 0.5:.2g} standard "
        "deviations (root mean square)."
    )


def _settings_in_words(case: Case) -> List[str]:
    if case.models is None:
        return []
    old, new = (facts.batch_norm for facts in case.models)
    return [
        f"BatchNorm's {name} is {old[name]:g} in the baseline and {new[name]:g} in the candidate."
        for name in sorted(set(old) & set(new))
        if old[name] != new[name]
    ]
