"""The interval of the difference in AUC, and faults that are too rare for it.

COVERAGE  by rows, prevalence and kind: "ties" rounds the scores, "users" has rows of one user err
          alike. Samples with fewer than two rows, or users, of a class are redrawn.
FAULTS    as many negatives as positives; the baseline ranks all rows correctly, and a hit moves a
          positive below a share of the negatives
"""

import itertools
from statistics import NormalDist
from typing import List, NamedTuple, Tuple

import numpy as np

from benchmarks.parity_coverage_parts.simulation import Table, judged, true_auc
from parity.inputs.rows import Rows
from parity.stats.clusters import holding
from parity.stats.equivalence import judge

SIGNAL = 1.0  # distance of the classes' means
NOISE = 0.5  # standard deviation of each model's own noise
WEAKER = 0.85  # the candidate's signal over the baseline's, where the models differ
ROUNDED = 0.5  # ties: scores are multiples of it
ROWS, PREVALENCES, KINDS = (500, 2000), (0.5, 0.05, 0.01), ("rows", "ties", "users")
ROWS_A_USER = 10
LEVELS = np.arange(-40, 41) * ROUNDED
MARGIN = 5e-4  # that a fault is worth


class Design(NamedTuple):
    """One kind of sample."""

    rows: int
    prevalence: float
    kind: str


def _auc(signal: float, kind: str) -> float:
    """The true AUC; for rounded scores it is summed level by level."""
    if kind != "ties":
        return true_auc(signal, NOISE)
    deviation = (1 + NOISE**2) ** 0.5
    edges = np.append(LEVELS - ROUNDED / 2, LEVELS[-1] + ROUNDED / 2)
    of_classes = [
        np.diff([NormalDist(mean, deviation).cdf(edge) for edge in edges]) for mean in (0.0, signal)
    ]
    below = np.cumsum(of_classes[0]) - of_classes[0] / 2
    return float(of_classes[1] @ below)


def _draw(design: Design, weaker: float, random: np.random.Generator) -> Rows:
    while True:
        users = np.arange(design.rows) // ROWS_A_USER
        rate: "float | np.ndarray" = design.prevalence
        own = NOISE * random.normal(size=(2, design.rows))
        if design.kind == "users":  # they differ in how often they click and in what models err by
            apart = max(2.0, 1 / rate - 2)  # at prevalence p, rates vary by p or less
            rate = random.beta(apart * rate, apart * (1 - rate), users[-1] + 1)[users]
            own = NOISE * random.normal(size=(2, users[-1] + 1))[:, users]
        positive = random.random(design.rows) < rate
        shared = random.normal(size=design.rows)
        scores = [SIGNAL * s * positive + shared + noise for s, noise in zip((1, weaker), own)]
        if design.kind == "ties":
            scores = [np.round(values / ROUNDED) * ROUNDED for values in scores]
        rows = Rows(positive, *scores, users if design.kind == "users" else None)
        if rows.rarer > 1 and (rows.clusters is None or holding(positive, users).fewer > 1):
            return rows


def coverage(design: Design, samples: int, seed: int) -> List[float]:
    """How often the interval holds the truth of equal models, and of models a margin apart, and how
    often the latter are found EQUIVALENT."""
    random = np.random.default_rng([seed, *map(_number, design)])
    gap = _auc(WEAKER * SIGNAL, design.kind) - _auc(SIGNAL, design.kind)
    found = np.zeros(3)
    for place, (weaker, truth) in enumerate(((1.0, 0.0), (WEAKER, gap))):
        for _ in range(samples):
            one = judged(_draw(design, weaker, random), abs(truth) or 1e-3)
            found[place] += one.interval.low < truth < one.interval.high
            found[2] += place and one.verdict == "EQUIVALENT"
    return (found / samples).tolist()


def faults(case: Tuple[int, float], samples: int, seed: int) -> List[float]:
    """How often a fault that moves the AUC by the margin passes, and would by the interval alone.

    Args:
        case: the number of positives, and the share of the negatives that a hit falls behind.
    """
    positives, reach = case
    random = np.random.default_rng([seed, positives, int(1000 * reach)])
    positive = np.arange(2 * positives) % 2 == 0
    baseline = positive + random.random(2 * positives) / 2
    ordered = np.sort(baseline[~positive])
    lost = ordered[int((1 - reach) * (positives - 1))] if reach < 1 else -1.0
    where = np.flatnonzero(positive)
    passed = np.zeros(2)
    for _ in range(samples):
        candidate = baseline.copy()
        candidate[where[random.random(positives) < MARGIN / reach]] = lost
        one = judged(Rows(positive, baseline, candidate), MARGIN, verified=False)
        passed += one.verdict == "EQUIVALENT", judge(one.interval, MARGIN) == "EQUIVALENT"
    return (passed / samples).tolist()


def _number(value: object) -> int:
    """A number for a seed that is the same in every run, as `hash` of a text is not."""
    return int.from_bytes(str(value).encode()[:8], "little")


COVERAGE = Table(
    "rows | prevalence | | equal models | a margin apart | found equivalent",
    list(itertools.starmap(Design, itertools.product(ROWS, PREVALENCES, KINDS))),
    coverage,
    4000,
)
FAULTS = Table(
    "positives | a hit moves its row by | passes | by the interval alone",
    list(itertools.product((400, 2000, 6200, 12_000, 40_000), (0.5, 1))),
    faults,
    1000,
)
