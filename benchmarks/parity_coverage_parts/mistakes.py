"""Rows that are not what they should be: of labels that do not belong to them, and of copies.

1. Labels are shuffled, or a score stands for half of the rows: two such models agree in AUC, and
   none may be found EQUIVALENT. Beside it, how often the interval alone finds them so.
2. Rows stand two or three times: the interval holds the truth too rarely, and a margin's difference
   passes too often. A warning is to say so.
"""

from typing import List

import numpy as np

from benchmarks.parity_coverage_parts.simulation import Table, compared, true_auc
from parity.inputs.rows import Rows
from parity.stats.equivalence import judge

ROWS = 2000
NOISE = 0.2  # standard deviation of each model's own noise
WEAKER = 0.93  # the candidate's signal over the baseline's, where copies are judged
WIDE = 0.03  # a margin
TIMES = {"once": 1.0, "twice": 2.0, "three times": 3.0, "half of them twice": 1.5}


def _models(random: np.random.Generator, weaker: float = 1.0) -> Rows:
    labels = random.random(ROWS) < 0.3
    shared = random.normal(size=ROWS)
    old, new = (
        strength * labels + shared + NOISE * random.normal(size=ROWS) for strength in (1, weaker)
    )
    return Rows(labels, old, new)


def useless(kind: str, samples: int, seed: int) -> List[float]:
    """Shares found EQUIVALENT at a wide margin, now and by the interval alone."""
    random = np.random.default_rng([seed, len(kind)])
    passed = np.zeros(2)
    for _ in range(samples):
        labels, old, new = _models(random)[:3]
        if kind == "shuffled labels":
            labels = random.permutation(labels)
        if kind == "one score for half of the rows":
            filled = random.random(ROWS) < 0.5
            old, new = (np.where(filled, 0.0, scores) for scores in (old, new))
        one = compared(Rows(labels, old, new), WIDE)
        passed += one.verdict == "EQUIVALENT", judge(one.interval, WIDE) == "EQUIVALENT"
    return (passed / samples).tolist()


def copied(times: str, samples: int, seed: int) -> List[float]:
    """How often the interval of models apart by the margin holds the truth, how often they are
    found EQUIVALENT, and how often a warning tells of copies."""
    random = np.random.default_rng([seed, len(times)])
    truth = true_auc(WEAKER, NOISE) - true_auc(1, NOISE)
    rows = np.arange(int(TIMES[times] * ROWS)) % ROWS
    found = np.zeros(3)
    for _ in range(samples):
        columns = (column[rows] for column in _models(random, WEAKER)[:3])
        one = compared(Rows(*columns), abs(truth))
        found += (
            one.interval.low < truth < one.interval.high,
            one.verdict == "EQUIVALENT",
            any("equal an earlier row" in warning for warning in one.warnings),
        )
    return (found / samples).tolist()


USELESS = Table(
    "models | found equivalent | by the interval alone",
    ("sound", "shuffled labels", "one score for half of the rows"),
    useless,
)
COPIES = Table(
    "each row stands | interval holds the truth | found equivalent | warned of",
    list(TIMES),
    copied,
)
