"""A share of simulated samples, as text."""

import math


def share(value: float, samples: int) -> str:
    """With its Monte Carlo error."""
    return f"{value:.3f} ± {math.sqrt(value * (1 - value) / samples):.3f}"
