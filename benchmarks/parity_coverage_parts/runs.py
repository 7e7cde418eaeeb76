"""Several training runs per side, of one against two or three as well.

Each run's seed gives it a signal of its own. How often the interval holds the true difference of
the pipelines' mean AUCs, for equal pipelines and for such as are a margin apart, and how often the
latter are found EQUIVALENT: of a lone run only where its spread is stated.
"""

from typing import List, NamedTuple, Tuple

import numpy as np

import parity
from benchmarks.parity_coverage_parts.simulation import Table, true_auc
from tests.parity.records import PASSED

ROWS = 2000
NOISE = 0.2  # standard deviation of each run's own noise by row
SEEDS = 0.02  # standard deviation of the signal between runs
WEAKER = 0.85  # the candidate's mean signal over the baseline's, where pipelines differ
UNEQUAL = 6  # times as far as the other side's runs, a lone run's


class Design(NamedTuple):
    """One kind of comparison."""

    runs: Tuple[int, int]
    unequal: bool = False  # whether the lone run's pipeline spreads UNEQUAL times as far
    stated: bool = False  # whether that is stated

    @property
    def name(self) -> str:
        """The name in the table."""
        text = f"{self.runs[0]} against {self.runs[1]}"
        text += ", spreads of six to one" if self.unequal else ""
        return text + (", stated" if self.stated else "")


DESIGNS = (
    *(Design(runs) for runs in ((2, 1), (3, 1))),
    *(Design((3, 1), unequal, stated) for unequal, stated in ((True, False), (True, True))),
    *(Design(runs) for runs in ((2, 2), (3, 3))),
)


def _runs(
    random: np.random.Generator,
    labels: np.ndarray,
    shared: np.ndarray,
    signal: Tuple[float, float],
    count: int,
) -> List[np.ndarray]:
    """The scores of `count` runs.

    Args:
        signal: its mean, and its standard deviation between runs.
    """
    return [
        random.normal(*signal) * labels + shared + NOISE * random.normal(size=ROWS)
        for _ in range(count)
    ]


def _spread_of_aucs(signal: float, seeds: float) -> float:
    """Standard deviation of the AUC between seeds, of many."""
    signals = np.random.default_rng(0).normal(signal, seeds, 100_000)
    return float(np.std([true_auc(one, NOISE) for one in signals]))


def kept(design: Design, samples: int, seed: int) -> List[float]:
    """Coverage of equal pipelines, of others, and the others' share of EQUIVALENT."""
    random = np.random.default_rng([seed, *design.runs])
    spreads = SEEDS, SEEDS * (UNEQUAL if design.unequal else 1)
    baseline = true_auc(1.0, NOISE, spreads[0])
    gaps = [true_auc(signal, NOISE, spreads[1]) - baseline for signal in (1.0, WEAKER)]
    margin, stated = abs(gaps[1]), None
    if design.stated:
        stated = _spread_of_aucs(1.0, spreads[1])
    found = np.zeros(3)
    for _ in range(samples):
        for place, (signal, truth) in enumerate(zip((1.0, WEAKER), gaps)):
            labels, shared = random.random(ROWS) < 0.3, random.normal(size=ROWS)
            sides = (
                _runs(random, labels, shared, of_side, count)
                for of_side, count in zip(zip((1.0, signal), spreads), design.runs)
            )
            one = parity.compare_runs(
                labels, *sides, margin=margin, verified=PASSED, seed_sd=stated
            )
            found[place] += one.interval.low < truth < one.interval.high
        found[2] += one.verdict == "EQUIVALENT"
    return (found / samples).tolist()


RUNS = Table("runs | equal pipelines | a margin apart | found equivalent", DESIGNS, kept)
