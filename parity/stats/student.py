"""Student's t quantile for any degrees of freedom, so that a few runs do not need scipy.

With t = sqrt(df) tan(a), P(0 < T < t) = c * integral of cos(x)^(df - 1) from 0 to a, where
c = Gamma((df + 1) / 2) / (Gamma(df / 2) sqrt(pi)). The integrand is smooth, so Simpson's rule on a
thousand steps is exact to about 1e-12. Near the normal distribution the integrand is too narrow for
them, and Fisher's expansion about the normal quantile (Abramowitz & Stegun 26.7.5) is as exact.
"""

import functools
import math
from statistics import NormalDist

import numpy as np

_STEPS = 1000
_NEARLY_NORMAL = 1000  # degrees of freedom; two terms of the expansion then err by < 1e-7


def probability(angle: float, df: float) -> float:
    """P(0 < T < sqrt(df) tan(angle)), `angle` below pi / 2."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
    values = np.cos(np.linspace(0, angle, _STEPS + 1)) ** (df - 1)
    simpson = values[0] + values[-1] + 4 * values[1::2].sum() + 2 * values[2:-1:2].sum()
    return float(scale * simpson * angle / _STEPS / 3)


@functools.lru_cache(maxsize=4096)
def quantile(level: float, df: float) -> float:
    """t with P(T < t) = level, for 0.5 < level < 1 and df >= 1."""
    if df > _NEARLY_NORMAL:
        z = NormalDist().inv_cdf(level)
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if probability(middle, df) < level - 0.5:
            low = middle
        else:
            high = middle
    return math.sqrt(df) * math.tan(low)


def two_sided(t: float, df: float) -> float:
    """P(|T| > |t|)."""
    return max(0.0, 1 - 2 * probability(math.atan(abs(t) / math.sqrt(df)), df))
