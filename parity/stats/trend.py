"""Whether the daily differences drift, or break: a slope, and a change that lasts or does not.

Both are fits of the days' differences by least squares, with the day's number or with an indicator
of the days that changed as the regressor. As the days' errors are known,

    weight   1 / max(e, e_rms)^2: no day counts as surer than a day of the root mean square error,
             so that quiet days, where nothing moved, do not rule the others
    error    that of fixed weights, sum (a_i e_i)^2 for an estimate sum a_i delta_i, and more where
             the days scatter about the fit beyond what their errors say (ratio of the weighted sum
             of squares to its expectation, where that is above 1)
    p        two-sided, Student's t with as many degrees of freedom as the residuals have

e is half the day's 90 % interval over 1.645. That is never 0: where all rows of a day see one
difference, it is the rule of three's (parity.stats.equivalence).

The change is the surest of: from a day on, for each day but the first; a single day, for each day
but the first and last. With D days 2 D - 3 places are looked at, and its p is multiplied by that
(Bonferroni), so that it holds for the search as a whole.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.stats.equivalence import half_in_errors
from parity.stats.parts import Part
from parity.stats.student import two_sided

FEWEST = 3  # days: a slope or a change leaves one degree of freedom at least
LIKELY = 0.05  # p below which words name a change


class Slope(NamedTuple):
    """AUC a day."""

    slope: float
    standard_error: float
    p: float  # of no slope


class Change(NamedTuple):
    """The surest change of the daily difference."""

    day: str  # the first one that changed
    lasts: bool  # from that day on, else that day alone
    difference: float  # of the days that changed - of the others
    standard_error: float
    p: float  # of no change anywhere, corrected for the places looked at
    places: int

    @property
    def likely(self) -> bool:
        """Whether words name it."""
        return self.p < LIKELY


class Series(NamedTuple):
    """The days that have a difference."""

    places: np.ndarray  # float64 (days,): the day's number among all
    deltas: np.ndarray
    errors: np.ndarray  # above 0
    names: Tuple[str, ...]

    @property
    def weights(self) -> np.ndarray:
        """float64 (days,)."""
        typical = math.sqrt(float(np.mean(self.errors**2)))
        return np.maximum(self.errors, typical) ** -2


def series_of(days: Sequence[Part]) -> Series:
    """Of the days in their order."""
    usable = [(i, day) for i, day in enumerate(days) if day.delta is not None]
    errors = np.array([_error(day) for _, day in usable], float)
    return Series(
        np.array([i for i, _ in usable], float),
        np.array([day.delta for _, day in usable], float),
        np.maximum(errors, np.finfo(float).eps),
        tuple(day.name for _, day in usable),
    )


def slope_of(series: Series) -> Optional[Slope]:
    """None for fewer than FEWEST days."""
    if len(series.deltas) < FEWEST:
        return None
    return Slope(*_fit(series, series.places))


def change_of(series: Series) -> Optional[Change]:
    """None for fewer than FEWEST days."""
    count = len(series.deltas)
    if count < FEWEST:
        return None
    places = [(first, True) for first in range(1, count)]
    places += [(day, False) for day in range(1, count - 1)]
    found: List[Change] = []
    for first, lasts in places:
        changed = np.zeros(count)
        changed[slice(first, None) if lasts else first] = 1
        difference, error, p = _fit(series, changed)
        found.append(
            Change(
                series.names[first],
                lasts,
                difference,
                error,
                min(1.0, p * len(places)),
                len(places),
            )
        )
    return min(found, key=lambda one: (one.p, -abs(one.difference) / one.standard_error))


def _fit(series: Series, regressor: np.ndarray) -> Tuple[float, float, float]:
    """The regressor's coefficient, its standard error and p-value; float64 (days,)."""
    design = np.stack((np.ones(len(regressor)), regressor), axis=1)
    weights = series.weights / series.weights.max()
    weighted = design.T * weights
    solve = np.linalg.solve(weighted @ design, weighted)
    coefficient = float(solve[1] @ series.deltas)
    leftover = np.eye(len(regressor)) - design @ solve
    expected = float(weights @ (leftover**2 @ series.errors**2))
    scatter = float(weights @ (leftover @ series.deltas) ** 2) / expected
    error = math.sqrt(max(1.0, scatter) * float(solve[1] ** 2 @ series.errors**2))
    return coefficient, error, two_sided(coefficient / error, len(regressor) - 2)


def _error(day: Part) -> float:
    if day.interval is None:
        return day.standard_error or 0.0
    return half_in_errors(day.interval)
