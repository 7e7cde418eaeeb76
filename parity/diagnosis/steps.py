"""From settings that differ to how much they change what training does.

Nobody can tell from settings by how much scores will differ. What can be told is by which factor r
an update of a typical parameter differs: its effect is 1 - min(r, 1 / r), 0 for equal updates, near
1 for updates of another order of magnitude. The typical parameter is the median one of the
checkpoint's slots; where no checkpoint is given, nothing tells how large gradients are, and the
effect is its upper limit, that of vanishing gradients, as the rarest ids have.
"""

from typing import Callable, Optional

from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts

UNKNOWN = 0.5  # of a difference that no formula turns into a factor: the middle of 0 and 1


def effect(ratio: float) -> float:
    """1 - min(r, 1 / r), for r >= 0."""
    return 1 - min(ratio, 1 / ratio) if ratio > 0 else 1.0


def told(case: Case, find: Callable[[Facts], Optional[float]]) -> Optional[float]:
    """A figure of either side, the baseline's if both have it."""
    for facts in (case.baseline, case.candidate):
        value = None if facts is None else find(facts)
        if value is not None:
            return value
    return None


def denominator(case: Case) -> Optional[float]:
    """Of the typical parameter: the second moment that its slot holds; None if no slot is known."""
    return told(case, lambda facts: facts.denominator)
