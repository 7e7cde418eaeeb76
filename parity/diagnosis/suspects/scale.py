"""The candidate's scores are the baseline's on another scale: a sigmoid too many, or inverted.

The counterfactual: the baseline's scores through the suspected function. The score is the share of
the mean squared difference (of the scores as they are) that this removes. Only nine tenths or more
count, as any rising function takes some of the difference away. Where no function explains
all rows, a sigmoid too many or too few is looked for in a part of them: in those rows whose scores
it brings nearer to each other, if the candidate's vary with it there.
"""

from typing import Callable, NamedTuple, Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.inputs.logits import logit, sigmoid
from parity.result import ROWS, Suspect

NAME = "scores on another scale"
ENOUGH = 0.9

Function = Callable[[np.ndarray], np.ndarray]


class Scale(NamedTuple):
    """candidate = `apply`(baseline); `undo` turns the candidate's scores back."""

    name: str
    apply: Function
    undo: Function
    inside: bool  # whether `apply` takes scores between 0 and 1 alone
    rises: bool  # and so leaves the AUC as it is, applied to all rows


class Scaled(NamedTuple):
    """The rows, bool (n,), that a scale explains, and its share of the squared differences."""

    scale: Scale
    rows: np.ndarray
    share: float

    @property
    def keeps_ranks(self) -> bool:
        """Whether the AUC stays as it is."""
        return self.scale.rises and bool(self.rows.all())

    def undone(self, candidate: np.ndarray) -> np.ndarray:
        """float64 (n,): the candidate's scores without it."""
        mended = candidate.astype(np.float64)
        mended[self.rows] = self.scale.undo(candidate[self.rows])
        return mended


def _opposite(scores: np.ndarray) -> np.ndarray:
    return 1 - scores


def _finite_logit(scores: np.ndarray) -> np.ndarray:
    """The logit, of a sigmoid that rounds to 0 or 1 that of a float32's epsilon inside (0, 1)."""
    least = np.finfo(np.float32).eps
    return logit(np.clip(scores.astype(np.float64), least, 1 - least))


def find_scale(case: Case) -> Optional[Scaled]:
    """The function that explains most, of all rows or else of a part; None if none does enough."""
    rows = case.rows
    if rows is None or case.apart is None:
        return None
    old, new = rows.baseline.astype(np.float64), rows.candidate.astype(np.float64)
    weight, near = case.apart.weight, (new - old) ** 2
    everywhere, of_a_part = [], []
    for scale in _SCALES:
        if scale.inside and not (old.min() > 0 and old.max() < 1):
            continue
        far = (new - scale.apply(old)) ** 2
        everywhere.append(Scaled(scale, np.ones(len(far), bool), _share(weight, far, near)))
        if scale.rises:  # in a part, only a sigmoid too many or too few is looked for
            part = far < near
            if _follows(weight[part], scale.apply(old[part]), far[part]):
                left = np.minimum(far, near)
                of_a_part.append(Scaled(scale, part, _share(weight, left, near)))
    for found in (everywhere, of_a_part):
        best = max(found, key=lambda scaled: scaled.share, default=None)
        if best is not None and best.share >= ENOUGH:
            return best
    return None


def _follows(weight: np.ndarray, expected: np.ndarray, squares: np.ndarray) -> bool:
    """Whether scores that are so far from those expected vary with them: one score does not."""
    if not len(weight):
        return False
    mean = float(np.average(expected, weights=weight))
    return float(weight @ squares) <= (1 - ENOUGH) * float(weight @ (expected - mean) ** 2)


def _share(weight: np.ndarray, left: np.ndarray, before: np.ndarray) -> float:
    return 1 - float(weight @ left) / float(weight @ before)


def suspect(case: Case) -> Optional[Suspect]:
    """Asks for a sigmoid too many or too few, on either side, and for the opposite class."""
    best = find_scale(case)
    if best is None:
        return None
    rows = case.rows
    assert rows is not None  # find_scale saw them
    low, high = float(rows.candidate.min()), float(rows.candidate.max())
    where = ""
    if not best.rows.all():
        where = f"In {case.rows_in_words(best.rows)}, "
    told = f"the candidate's scores are the baseline's with {best.scale.name}: that explains "
    told = (where + told)[0].upper() + (where + told)[1:]
    return Suspect(
        NAME,
        best.share,
        (
            f"{told}{best.share:.1%} of their mean squared difference.",
            f"The candidate's lie between {low:.3g} and {high:.3g}, the baseline's between "
            f"{float(rows.baseline.min()):.3g} and {float(rows.baseline.max()):.3g}.",
            case.auc_in_words(best.undone(rows.candidate), "With that undone"),
        ),
        "Write the same kind of score on both sides, in all rows: the probability of a click, "
        "after one sigmoid.",
        ROWS,
    )


_SCALES = (
    Scale("a sigmoid applied once more", sigmoid, _finite_logit, False, True),
    Scale("the sigmoid left out", logit, sigmoid, True, True),
    Scale("the opposite class's probability", _opposite, _opposite, False, False),
    Scale("their sign turned", np.negative, np.negative, False, False),
)
