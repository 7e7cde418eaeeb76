"""Several training runs per side, of one against two or three as well.

Each run's seed gives it a signal of its own. How often the interval holds the true difference of
the pipelines' mean AUCs, for equal pipelines and for such as are a margin apart, and how often the
latter are found EQUIVALENT.
"""

from statistics import NormalDist
from typing import List, Tuple

import numpy as np

import parity
from benchmarks.parity_coverage_parts.shares import share
from benchmarks.tables import head, row
from tests.parity.records import PASSED

ROWS = 2000
NOISE = 0.2  # standard deviation of each run's own noise by row
SEEDS = 0.02  # standard deviation of the signal between runs
WEAKER = 0.85  # the candidate's mean signal over the baseline's, where pipelines differ
DESIGNS = ((2, 1), (3, 1), (2, 2), (3, 3))


def _runs(
    random: np.random.Generator, labels: np.ndarray, shared: np.ndarray, signal: float, count: int
) -> List[np.ndarray]:
    return [
        random.normal(signal, SEEDS) * labels + shared + NOISE * random.normal(size=ROWS)
        for _ in range(count)
    ]


def _true_auc(signal: float) -> float:
    """Mean over seeds: the signal's spread adds to that of the two rows' difference."""
    return NormalDist().cdf(signal / (2 * (1 + NOISE**2) + SEEDS**2) ** 0.5)


def kept(design: Tuple[int, int], samples: int, seed: int) -> np.ndarray:
    """float64 (3,): coverage of equal pipelines, of others, and the others' share of EQUIVALENT."""
    random = np.random.default_rng([seed, *design])
    gap = _true_auc(WEAKER) - _true_auc(1.0)
    found = np.zeros(3)
    for _ in range(samples):
        for place, (signal, truth) in enumerate(((1.0, 0.0), (WEAKER, gap))):
            labels, shared = random.random(ROWS) < 0.3, random.normal(size=ROWS)
            sides = (
                _runs(random, labels, shared, strength, count)
                for strength, count in zip((1.0, signal), design)
            )
            one = parity.compare_runs(labels, *sides, margin=abs(gap), verified=PASSED)
            found[place] += one.interval.low < truth < one.interval.high
        found[2] += one.verdict == "EQUIVALENT"
    return found / samples


def print_tables(samples: int, seed: int) -> None:
    """One, in Markdown."""
    print("\n" + head("runs | equal pipelines | a margin apart | found equivalent"))
    for design in DESIGNS:
        cells = (share(value, samples) for value in kept(design, samples, seed))
        print(row(f"{design[0]} against {design[1]}", *cells), flush=True)
