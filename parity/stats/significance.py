"""p-values of a difference, from its interval, so that they never contradict the verdict.

The interval reaches half its width beyond the estimate; the normal distribution of which that is
the quantile gives

    p of equivalence   of "the difference is the margin or more, either way", the larger of two
                       one-sided tests (Schuirmann 1987): below (1 - confidence) / 2 exactly where
                       the interval lies inside the margin
    p of difference    of "there is none", two-sided
"""

import math
from statistics import NormalDist
from typing import Tuple


def p_of_equivalence(
    delta: float, interval: Tuple[float, float], margin: float, confidence: float
) -> float:
    """In units of chance; arguments as of `parity.result.Comparison`."""
    return _below((abs(delta) - margin) / _error(delta, interval, confidence))


def p_of_difference(delta: float, interval: Tuple[float, float], confidence: float) -> float:
    """Likewise."""
    return 2 * _below(-abs(delta) / _error(delta, interval, confidence))


def _error(delta: float, interval: Tuple[float, float], confidence: float) -> float:
    half = max(interval[1] - delta, delta - interval[0])
    return half / NormalDist().inv_cdf((1 + confidence) / 2)


def _below(z: float) -> float:
    """The normal distribution function, with the tail that 1 + erf rounds away."""
    return math.erfc(-z / math.sqrt(2)) / 2
