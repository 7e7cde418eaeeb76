"""The yardstick of a diagnosis: how far apart two models' scores are, and in what way.

The distance is the mean squared difference of a row's two scores, of their logits where all scores
lie strictly inside (0, 1). With means m, standard deviations s and correlation r of the two,

    mean (new - old)^2  =  (m_new - m_old)^2  +  (s_new - s_old)^2  +  2 s_new s_old (1 - r)
                           shift                 stretch               scatter

(Theil's decomposition, 1966). Noise of one side stretches as well: its standard deviation is larger
than the other's by the scatter. So no more than the least stretch is held for one that an affine
map makes. Where each side's noise is at most all of the scatter, the slope of such a map lies
between the two lines of regression (Frisch 1934),

    r s_new / s_old   and   s_new / (s_old r)

and the slope nearest to 1 between them is the least one. The scatter is the mean of

    residual^2,  residual = sqrt(s_new s_old) ((new - m_new) / s_new - (old - m_old) / s_old)

so that each row has a part in it. The distance does not depend on the labels, nor on the
chance in them. A share that chance alone would give any noise counts as none: of a map the 95 %
quantile of chi-square with two degrees of freedom over the rows, of chosen rows the 95 % quantile
of the share of as many rows drawn at random (Bonferroni's, where several places are looked at).

All means are weighted where there are weights.
"""

import math
from statistics import NormalDist
from typing import NamedTuple, Optional

import numpy as np

from parity.inputs.logits import logit

NEGLIGIBLE = 0.05  # share of the difference that is not worth a name
ALPHA = 0.05  # of a share that is chance alone
ROUNDING = 2e-5  # root mean square of float32 rounding in another order, on logits


class Apart(NamedTuple):
    """Two models' scores on one scale, and their distance in its three parts."""

    logits: bool  # else the scores as they are
    old: np.ndarray  # float64 (n,)
    new: np.ndarray  # float64 (n,)
    weight: np.ndarray  # float64 (n,), adds up to 1
    means: np.ndarray  # float64 (old, new)
    deviations: np.ndarray
    total: float
    shift: float
    stretch: float

    @property
    def scatter(self) -> float:
        """The part of the distance that no affine map removes."""
        return max(0.0, self.total - self.shift - self.stretch)

    @property
    def nothing(self) -> bool:
        """Whether the scores differ by rounding at most."""
        size = 1.0 if self.logits else max(float(self.deviations[0]), 1e-300)
        return math.sqrt(self.total) <= ROUNDING * size

    @property
    def rows(self) -> float:
        """How many rows there are; the effective number if they are weighted (Kish 1965)."""
        return 1 / float(self.weight @ self.weight)

    @property
    def slope(self) -> float:
        """The slope of the affine map from the baseline's scores with the least stretch; 1 if it
        can be 1."""
        if not self.deviations.all():
            return 1.0
        old, new = self.old - self.means[0], self.new - self.means[1]
        correlation = float(self.weight @ (old * new)) / float(self.deviations.prod())
        if correlation <= 0:
            return 1.0
        ratio = float(self.deviations[1] / self.deviations[0])
        return min(max(1.0, ratio * correlation), ratio / correlation)

    def of(self, rows: np.ndarray) -> "Apart":
        """The distance in some rows alone, bool (n,)."""
        weight = self.weight[rows] / self.weight[rows].sum()
        return _measured(self.logits, self.old[rows], self.new[rows], weight)

    @property
    def differing(self) -> np.ndarray:
        """bool (n,): the rows whose scores differ by more than rounding."""
        size = 1.0 if self.logits else max(float(self.deviations[0]), 1e-300)
        return np.abs(self.new - self.old) > ROUNDING * size

    def recalibrated(self) -> np.ndarray:
        """float64 (n,): the candidate's scores with that map undone."""
        return (self.new - self.means[1]) / self.slope + self.means[0]

    @property
    def affine(self) -> float:
        """Share of the distance that is of that map; 0 where chance alone makes as much."""
        stretch = ((self.slope - 1) * float(self.deviations[0])) ** 2
        share = (self.shift + stretch) / self.total
        # -2 ln(0.05) is the 95 % quantile of chi-square with two degrees of freedom.
        return min(1.0, share) if share > -2 * math.log(ALPHA) / self.rows else 0.0

    def residuals(self) -> np.ndarray:
        """float64 (n,): each row's squared residual; their mean is the scatter."""
        if not self.deviations.all():  # one side is constant: all that it lacks is scatter
            return (self.new - self.old - (self.means[1] - self.means[0])) ** 2
        old = (self.old - self.means[0]) / self.deviations[0]
        new = (self.new - self.means[1]) / self.deviations[1]
        return (new - old) ** 2 * float(self.deviations.prod())

    def share(self, rows: np.ndarray, places: int = 1) -> float:
        """Share of the distance in some rows, beyond what as many rows would have by chance.

        The other rows first say how the candidate's scale maps to the baseline's. Of what differs
        then, a share s lies in a share f of the rows: (s - f) / (1 - f) is 0 where they differ as
        all do and 1 where they alone differ. What differs then may be less than the distance.

        Args:
            rows: bool (n,).
            places: among how many such sets of rows they were chosen, as the one that has most.
        """
        of_rows = float(self.weight[rows].sum())
        if not 0 < of_rows < 1:
            return 0.0
        squares = self.weight * (self.new - self._as_others(~rows)) ** 2
        differs = float(squares.sum())
        if not differs:
            return 0.0
        beyond = float(squares[rows].sum()) / differs - of_rows
        scatter = float((squares / self.weight) ** 2 @ self.weight) / differs**2 - 1
        by_chance = math.sqrt(of_rows * (1 - of_rows) * max(0.0, scatter) / max(1.0, self.rows - 1))
        if beyond <= max(NEGLIGIBLE, NormalDist().inv_cdf(1 - ALPHA / places) * by_chance):
            return 0.0
        excess = beyond / (1 - of_rows)
        return min(max(0.0, excess), 1.0) * min(1.0, differs / self.total)

    def mended(self, rows: np.ndarray) -> np.ndarray:
        """float64 (n,): the candidate's scores, with the baseline's in `rows`, bool (n,).

        The baseline's are put on the candidate's scale, by the other rows.
        """
        return np.where(rows, self._as_others(~rows), self.new)

    def _as_others(self, rows: np.ndarray) -> np.ndarray:
        """The baseline's scores, mapped as `rows`, bool (n,), show."""
        weight = self.weight[rows] / self.weight[rows].sum()
        old, new = (_moments(values[rows], weight) for values in (self.old, self.new))
        slope = new[1] / old[1] if old[1] else 1.0
        return new[0] + slope * (self.old - old[0])


def measure(
    baseline: np.ndarray, candidate: np.ndarray, weights: Optional[np.ndarray] = None
) -> Apart:
    """Measures the distance of finite scores (n,) of the same rows."""
    inside = min(baseline.min(), candidate.min()) > 0 and max(baseline.max(), candidate.max()) < 1
    old, new = (scores.astype(np.float64) for scores in (baseline, candidate))
    if inside:
        old, new = logit(old), logit(new)
    weight = np.full(len(old), 1 / len(old)) if weights is None else weights / weights.sum()
    return _measured(bool(inside), old, new, weight)


def _measured(logits: bool, old: np.ndarray, new: np.ndarray, weight: np.ndarray) -> Apart:
    moments = np.array([_moments(values, weight) for values in (old, new)])
    means, deviations = moments[:, 0], moments[:, 1]
    return Apart(
        logits,
        old,
        new,
        weight,
        means,
        deviations,
        total=float(weight @ (new - old) ** 2),
        shift=float(means[1] - means[0]) ** 2,
        stretch=float(deviations[1] - deviations[0]) ** 2,
    )


def _moments(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = float(weight @ values)
    return np.array([mean, math.sqrt(float(weight @ (values - mean) ** 2))])
