"""Requirements beside AUC: how often a difference that is worth the margin passes one.

Each sample's true difference is the margin, so that one in twenty may be found EQUIVALENT. Then
groups with heavy tails, whose interval holds the truth too rarely.
"""

import functools
import itertools
from typing import Callable, Iterator, List, NamedTuple, Tuple

import numpy as np

from benchmarks.parity_coverage_parts.simulation import Table
from parity.inputs.rows import Rows
from parity.stats.calibration import (
    MeanDifference,
    loss_difference,
    losses,
    mean_difference,
    pcoc_difference,
)
from parity.stats.clusters import carried
from parity.stats.equivalence import decide
from parity.stats.gauc import WithinGroups, gauc_difference
from parity.stats.rare_failures import FEW_CARRIERS

ROWS, PREVALENCE = 20_000, 0.1
RUINED = 1e-6  # the probability that a fault gives
SPREAD = 0.004  # standard deviation of the groups' differences
ROWS_A_GROUP = 300


class Case(NamedTuple):
    """One kind of sample: draws a difference whose truth is `margin`."""

    name: str
    verified: bool  # whether a record excludes rare faults
    margin: float
    draw: Callable[[np.random.Generator], MeanDifference]


def cases() -> Iterator[Case]:
    """All of them."""
    for hits in (1, 2, 4):
        yield _ruined(hits)
    for groups in (5, 8, 40):
        for name, draw in (("GAUC", _gauc), ("PCOC", _pcoc)):
            of_groups = functools.partial(draw, groups)
            yield Case(f"{name}, {groups} groups, verified", True, 1.5 * SPREAD, of_groups)


def _ruined(hits: int) -> Case:
    """A fault that gives `hits` of ROWS, positives, nearly no probability, on average."""
    positive = np.arange(ROWS) < PREVALENCE * ROWS
    score = np.where(np.arange(ROWS) % 2 == 0, 0.05, 0.15)
    rise = float(np.log(score[positive]).mean() - np.log(RUINED))

    def draw(random: np.random.Generator) -> MeanDifference:
        candidate = score.copy()
        candidate[positive & (random.random(ROWS) < hits / positive.sum())] = RUINED
        old, new = losses(positive, score), losses(positive, candidate)
        return loss_difference(old, new, None, None)

    return Case(f"log loss, {hits} of {ROWS:,} rows ruined", False, hits * rise / ROWS, draw)


def _gauc(groups: int, random: np.random.Generator) -> MeanDifference:
    weights = np.ones(groups)
    apart = random.normal(1.5 * SPREAD, SPREAD, groups)
    return gauc_difference(
        WithinGroups(np.full(groups, 0.7), weights), WithinGroups(0.7 + apart, weights)
    )


def _pcoc(groups: int, random: np.random.Generator) -> MeanDifference:
    """All rows have the chance 0.3; the candidate's scores are too large by the group's share."""
    group = np.repeat(np.arange(groups), ROWS_A_GROUP)
    positive = np.arange(len(group)) % 10 < 3
    score = np.full(len(group), 0.3)
    larger = 1 + random.normal(1.5 * SPREAD, SPREAD, groups)[group]
    return pcoc_difference(Rows(positive, score, score * larger, group))


def passes(case: Case, samples: int, seed: int) -> List[float]:
    """The share found EQUIVALENT."""
    random = np.random.default_rng([seed, len(case.name), int(1e6 * case.margin)])
    passed = 0
    for _ in range(samples):
        found = case.draw(random)
        evidence = found.evidence._replace(floor=0.0 if case.verified else found.floor)
        passed += decide(evidence, case.margin).verdict == "EQUIVALENT"
    return [passed / samples]


PULLS = {  # what one group pulls, about a mean of 0
    "normal": lambda random, shape: random.normal(size=shape),
    "log-normal, sigma 1": lambda random, shape: random.lognormal(0, 1, shape) - np.exp(0.5),
    "log-normal, sigma 2": lambda random, shape: random.lognormal(0, 2, shape) - np.exp(2),
    "Pareto, exponent 2.1": lambda random, shape: random.pareto(2.1, shape) - 1 / 1.1,
}


def tails(case: Tuple[str, int], samples: int, seed: int) -> List[float]:
    """How often the interval of so many groups holds the truth, and a note says that it may not."""
    name, groups = case
    random = np.random.default_rng([seed, groups, len(name)])
    held = np.zeros(2)
    for _ in range(samples):
        seen = PULLS[name](random, groups)
        delta = float(seen.mean())
        pulls = (seen - delta) / groups
        found = mean_difference(delta, pulls, 1.0)
        carriers = carried(float((pulls**2).sum()), float((pulls**4).sum()))[0]
        held += found.interval.low < 0 < found.interval.high, carriers < FEW_CARRIERS
    return (held / samples).tolist()


REQUIREMENTS = Table("a margin apart in | found equivalent", list(cases()), passes, 4000)
TAILS = Table(
    "a group's pull | groups | interval holds the truth | a note doubts it",
    list(itertools.product(PULLS, (40, 300, 3000))),
    tails,
    4000,
)
