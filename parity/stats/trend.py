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
difference, it is the rule of three's (parity.stats.intervals).

The change is the surest of: from a day on, for each day but the first; a single day, for each day
but the first and last. With D days there are 2 D - 3 places, and its p is multiplied by that
(Bonferroni), so that it holds for the search as a whole.

The order of the days is that of their names, where 9 comes before 10 in words as well: a file of
text says 9 in the word "9".
"""

import math
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.stats.intervals import half_in_errors, two_sided
from parity.stats.parts import Part
from semisync.common.errors import BadInput
from semisync.common.ordering import by_numbers

FEWEST = 3  # days: a slope or a change leaves one degree of freedom at least
LIKELY = 0.05  # p below which words name a change

_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
# Such as 31.01.2024, 1/31/2024 or Jan 31, 2024.
_YEAR_LAST = re.compile(
    r"([a-z]+|\d{1,2})([-/., ]+([a-z]+|\d{1,2})){1,3}[-/., ]+\d{4}\b", re.IGNORECASE
)


class Slope(NamedTuple):
    """AUC per day."""

    slope: float
    standard_error: float
    p: float  # of no slope


class Change(NamedTuple):
    """The surest change of the daily difference."""

    day: str  # the first one that changed
    lasts: bool  # from that day on, else that day alone
    difference: float  # of the days that changed - of the others
    standard_error: float
    p: float  # of no change anywhere, corrected for the number of places
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


def in_order(days: Sequence[Part]) -> List[Part]:
    """The days by what their names say, numbers in them by their size.

    Raises:
        BadInput: a date whose year comes last, so that names do not sort as days do.
    """
    for day in days:
        if _YEAR_LAST.match(day.name):
            raise BadInput(
                f"the day {day.name!r} has its year last, so that days do not sort by their names; "
                "write dates as 2024-01-31"
            )
    numbers = all(_NUMBER.fullmatch(day.name) for day in days)
    return sorted(days, key=_size if numbers else lambda day: by_numbers(day.name))


def _size(day: Part) -> float:
    return float(day.name) if "." in day.name else int(day.name)


def series_of(days: Sequence[Part]) -> Series:
    """The series of the days, in order."""
    usable = [(i, day) for i, day in enumerate(days) if day.delta is not None]
    errors = np.array([_error(day) for _, day in usable], float)
    return Series(
        np.array([i for i, _ in usable], float),
        np.array([day.delta for _, day in usable], float),
        np.maximum(errors, np.finfo(float).eps),  # weights are 1 / e^2
        tuple(day.name for _, day in usable),
    )


def slope_of(series: Series) -> Optional[Slope]:
    """The slope of the daily differences; None for fewer than FEWEST days."""
    if len(series.deltas) < FEWEST:
        return None
    slopes, errors = _fits(series, series.places[np.newaxis])
    slope, error = float(slopes[0]), float(errors[0])
    return Slope(slope, error, two_sided(slope / error, len(series.deltas) - 2))


def change_of(series: Series) -> Optional[Change]:
    """The surest change of the daily differences; None for fewer than FEWEST days."""
    count = len(series.deltas)
    if count < FEWEST:
        return None
    days = np.arange(count)
    lasting = days >= days[1:, np.newaxis]
    passing = days == days[1:-1, np.newaxis]
    differences, errors = _fits(series, np.concatenate((lasting, passing)).astype(float))
    surest = int((np.abs(differences) / errors).argmax())  # as all have the same degrees of freedom
    lasts = surest < len(lasting)
    difference, error = float(differences[surest]), float(errors[surest])
    return Change(
        day=series.names[1 + surest - (0 if lasts else len(lasting))],
        lasts=lasts,
        difference=difference,
        standard_error=error,
        p=min(1.0, two_sided(difference / error, count - 2) * len(differences)),
        places=len(differences),
    )


def _fits(series: Series, regressors: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Each regressor's coefficient and its standard error, float64 (k,), of float64 (k, days)."""
    design = np.stack((np.ones(regressors.shape), regressors), axis=-1)
    # Estimates and ratios do not depend on the scale of the weights.
    weights = series.weights / series.weights.max()
    weighted = design.swapaxes(1, 2) * weights
    solve = np.linalg.solve(weighted @ design, weighted)
    leftover = np.eye(regressors.shape[1]) - design @ solve
    variances = series.errors**2
    # The weighted sum of squares that residuals have if the days' errors are right.
    expected = leftover**2 @ variances @ weights
    scatter = (leftover @ series.deltas) ** 2 @ weights / expected
    by_errors = solve[:, 1] ** 2 @ variances
    return solve[:, 1] @ series.deltas, np.sqrt(np.maximum(1.0, scatter) * by_errors)


def _error(day: Part) -> float:
    if day.interval is None:
        return day.standard_error or 0.0
    return half_in_errors(day.interval)
