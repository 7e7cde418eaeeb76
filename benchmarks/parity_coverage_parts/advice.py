"""Advice on rows: how often a comparison of as many rows as were advised is decided.

A sample is drawn and judged; where it is INCONCLUSIVE, and a number of rows is named, as many rows
are drawn anew and judged. The promise is four times out of five. Where a sample shows no fault and
asks for rows that would exclude one, it is kept too where they show one.
"""

from typing import Callable, Iterator, NamedTuple

import numpy as np

from benchmarks.parity_coverage_parts.shares import share
from benchmarks.tables import head
from parity.comparison import decision_fields, rows_needed, sample_of
from parity.inputs.rows import Rows
from parity.stats.clusters import holding
from parity.stats.delong import evidence_of, spread
from parity.stats.equivalence import Reason
from parity.stats.rare_failures import rare_failures
from parity.stats.roc import rank
from parity.verified import read_record
from tests.parity.records import PASSED

MOST_ROWS = 1_000_000  # that are drawn anew; what takes more is left out


class Case(NamedTuple):
    """One kind of rows."""

    name: str
    rows: int
    margin: float
    verified: bool
    draw: Callable[[int, np.random.Generator], Rows]


def cases() -> Iterator[Case]:
    """All of them."""
    yield Case("noise by row, 5% positive", 2000, 6e-3, True, _noise(0.05, 0.05))
    yield Case("noise by row, 2% positive", 1000, 2e-2, True, _noise(0.1, 0.02))
    yield Case("no fault", 4000, 5e-4, False, _faults(0.0))
    yield Case("faults worth 0.3 of the margin", 4000, 5e-4, False, _faults(1.5e-4))
    yield Case("the same, verified", 16_000, 5e-4, True, _faults(1.5e-4))
    yield Case("faults worth 0.6 of the margin, verified", 16_000, 5e-4, True, _faults(3e-4))
    yield Case("groups of like sizes", 2000, 4e-3, True, _groups(0.3))
    yield Case("groups with heavy tails, sigma 1", 5000, 2.5e-3, True, _groups(1.0))
    yield Case("groups with heavy tails, sigma 2", 50_000, 1.5e-3, True, _groups(2.0))


def _noise(size: float, prevalence: float) -> Callable[[int, np.random.Generator], Rows]:
    def draw(rows: int, random: np.random.Generator) -> Rows:
        positive = random.random(rows) < prevalence
        signal = random.normal(size=rows) + positive
        return Rows(positive, *(signal + size * random.normal(size=(2, rows))))

    return draw


def _faults(of_positives: float) -> Callable[[int, np.random.Generator], Rows]:
    """A fault takes so many positives from the best rank to the worst."""

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


class Kept(NamedTuple):
    """What became of the samples that were not decided at once."""

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
        decision, rows = _judged(case, case.rows, random)
        if decision["reason"] is None:
            continue
        undecided += 1
        if rows is None:
            continue
        times.append(rows / case.rows)
        if rows > MOST_ROWS:
            continue
        again, _ = _judged(case, rows, random)
        without = not decision["rare_failures"].carriers
        shown = without and decision["reason"] is Reason.RARE_FAULTS
        redrawn += 1
        decided += again["reason"] is None or (shown and again["rare_failures"].carriers > 0)
    return Kept(undecided, len(times), float(np.median(times or [0])), redrawn, decided)


def _judged(case: Case, count: int, random: np.random.Generator) -> tuple:
    """The decision on so many rows, and how many it asks for."""
    rows = case.draw(count, random)
    old, new = (rank(scores, rows.positive, None) for scores in (rows.baseline, rows.candidate))
    before = old.placements()
    moved, delta = new.placements() - before, new.area() - old.area()
    moves = spread(moved, delta, rows.positive, None, rows.clusters)
    evidence = evidence_of(rows, moved, delta, moves)
    rare = rare_failures(sample_of(rows, before, moves), case.margin)
    record = read_record(PASSED) if case.verified else None
    decision = decision_fields(evidence, rare, case.margin, record)
    if decision["reason"] is None:
        return decision, None
    alike = rows.clusters is None
    return decision, rows_needed(count, evidence, decision, case.margin, alike)


def print_tables(samples: int, seed: int) -> None:
    """One, in Markdown."""
    columns = "rows | not decided at once | a number named | times the rows | decided then"
    print("\n" + head(columns))
    for case in cases():
        found = kept(case, samples, seed)
        then = share(found.decided / found.redrawn, found.redrawn) if found.redrawn else ""
        print(
            f"| {case.name} | {found.undecided / samples:.2f} "
            f"| {found.named / max(1, found.undecided):.2f} | {found.median:.2g} | {then} |",
            flush=True,
        )
