"""Advice on rows: how often a comparison of as many rows as were advised is decided.

A sample is drawn and judged; where it is INCONCLUSIVE, and a number of rows is named, as many rows
are drawn anew and judged. The promise is four times out of five. Where a sample shows no fault and
asks for rows that would exclude one, it is kept too where they show one.
"""

from typing import Any, Callable, List, NamedTuple

import numpy as np

from benchmarks.parity_coverage_parts.simulation import Table, judged, share
from parity.comparison import rows_needed
from parity.inputs.rows import Rows
from parity.stats.clusters import holding
from parity.stats.equivalence import Reason

MOST_ROWS = 1_000_000  # that are drawn anew; what takes more is left out


class Case(NamedTuple):
    """One kind of rows."""

    name: str
    rows: int
    margin: float
    verified: bool
    draw: Callable[[int, np.random.Generator], Rows]


def _noise(size: float, prevalence: float) -> Callable[[int, np.random.Generator], Rows]:
    def draw(rows: int, random: np.random.Generator) -> Rows:
        positive = random.random(rows) < prevalence
        signal = random.normal(size=rows) + positive
        return Rows(positive, *(signal + size * random.normal(size=(2, rows))))

    return draw


def _faults(of_positives: float) -> Callable[[int, np.random.Generator], Rows]:
    """Rows in which a fault takes a share of the positives from the best rank to the worst."""

    def draw(rows: int, random: np.random.Generator) -> Rows:
        positive = random.random(rows) < 0.5
        baseline = positive + random.random(rows) / 2
        hit = positive & (random.random(rows) < of_positives)
        return Rows(positive, baseline, np.where(hit, -1.0, baseline))

    return draw


def _groups(sigma: float) -> Callable[[int, np.random.Generator], Rows]:
    """Groups of log-normal sizes, each of which the models err by."""

    def draw(rows: int, random: np.random.Generator) -> Rows:
        while True:
            sizes = np.maximum(1, random.lognormal(np.log(10), sigma, rows)).astype(int)
            group = np.repeat(np.arange(rows), sizes)[:rows]
            positive = random.random(rows) < 0.3
            signal = random.normal(size=rows) + positive
            own = 0.1 * random.normal(size=(2, group[-1] + 1))[:, group]
            if holding(positive, group).fewer > 1:
                return Rows(positive, *(signal + own), group)

    return draw


CASES = (
    Case("noise by row, 5% positive", 2000, 6e-3, True, _noise(0.05, 0.05)),
    Case("noise by row, 2% positive", 1000, 2e-2, True, _noise(0.1, 0.02)),
    Case("no fault", 4000, 5e-4, False, _faults(0.0)),
    Case("faults worth 0.3 of the margin", 4000, 5e-4, False, _faults(1.5e-4)),
    Case("the same, verified", 16_000, 5e-4, True, _faults(1.5e-4)),
    Case("faults worth 0.6 of the margin, verified", 16_000, 5e-4, True, _faults(3e-4)),
    Case("groups of like sizes", 2000, 4e-3, True, _groups(0.3)),
    Case("groups with heavy tails, sigma 1", 5000, 2.5e-3, True, _groups(1.0)),
    Case("groups with heavy tails, sigma 2", 50_000, 1.5e-3, True, _groups(2.0)),
)


class Kept(NamedTuple):
    """Counts of the samples that were not decided at once."""

    undecided: int
    named: int  # with a number of rows
    median: float  # of that, in times the rows
    redrawn: int  # anew
    decided: int  # of those


def kept(case: Case, samples: int, seed: int) -> Kept:
    """Whether the advice keeps its promise."""
    random = np.random.default_rng([seed, case.rows, len(case.name)])
    undecided = redrawn = decided = 0
    times = []
    for _ in range(samples):
        drawn = case.draw(case.rows, random)
        one = judged(drawn, case.margin, case.verified)
        if one.reason is None:
            continue
        undecided += 1
        alike = drawn.clusters is None
        rows = rows_needed(case.rows, one.evidence, vars(one), case.margin, alike)
        if rows is None:
            continue
        times.append(rows / case.rows)
        if rows > MOST_ROWS:
            continue
        again = judged(case.draw(rows, random), case.margin, case.verified)
        without = not one.rare_failures.carriers and one.reason is Reason.RARE_FAULTS
        redrawn += 1
        decided += again.reason is None or (without and again.rare_failures.carriers > 0)
    return Kept(undecided, len(times), float(np.median(times or [0])), redrawn, decided)


def _cells(case: Case, samples: int, seed: int) -> List[Any]:
    found = kept(case, samples, seed)
    then = share(found.decided / found.redrawn, found.redrawn) if found.redrawn else ""
    shares = found.undecided / samples, found.named / max(1, found.undecided)
    return [*map("{:.2f}".format, shares), f"{found.median:.2g}", then]


ADVICE = Table(
    "rows | not decided at once | a number named | times the rows | decided then", CASES, _cells
)
