"""Users of very unequal size: how often models are found NOT EQUIVALENT that are not.

Two models err by user, and a few users have most of the rows. Equal models are compared at a margin
of next to nothing, where one in ten intervals may lie outside, and models that differ at a margin
of their difference, where one in twenty may. Beside it, how often the interval alone lies outside.
"""

import itertools
from typing import List, Tuple

import numpy as np

from benchmarks.parity_coverage_parts.simulation import Table, compared, true_auc
from parity.inputs.rows import Rows
from parity.stats.clusters import holding
from parity.stats.equivalence import judge

NOISE = 0.5  # standard deviation of each model's own noise, by user
WEAKER = 0.85  # the candidate's signal over the baseline's, where models differ
SMALLEST = 1e-4  # the margin of equal models
SIZES = {  # rows of a user
    "of one size": lambda random, users: np.full(users, 10),
    "log-normal, sigma 2": lambda random, users: np.exp(random.normal(1, 2, users)),
    "Pareto, exponent 0.8": lambda random, users: 2 * random.pareto(0.8, users),
}
_MOST = 3000  # rows of a user


def _sample(kind: str, users: int, weaker: float, random: np.random.Generator) -> Rows:
    while True:
        sizes = np.clip(np.ceil(SIZES[kind](random, users)), 1, _MOST).astype(int)
        user = np.repeat(np.arange(users), sizes)
        positive = random.random(len(user)) < random.choice([0.1, 0.5], users)[user]
        shared = random.normal(size=len(user))
        old, new = (
            strength * positive + shared + NOISE * random.normal(size=users)[user]
            for strength in (1.0, weaker)
        )
        if holding(positive, user).fewer > 1:
            return Rows(positive, old, new, user)


def outside(case: Tuple[str, int], samples: int, seed: int) -> List[float]:
    """Shares of NOT EQUIVALENT, of equal models and of models a margin apart, each now and by the
    interval alone."""
    kind, users = case
    random = np.random.default_rng([seed, users, len(kind)])
    gap = true_auc(1, NOISE) - true_auc(WEAKER, NOISE)
    found = np.zeros(4)
    for _ in range(samples):
        for place, (weaker, margin) in enumerate(((1.0, SMALLEST), (WEAKER, gap))):
            one = compared(_sample(kind, users, weaker, random), margin)
            found[2 * place] += one.verdict == "NOT_EQUIVALENT"
            found[2 * place + 1] += judge(one.interval, margin) == "NOT_EQUIVALENT"
    return (found / samples).tolist()


HEAVY = Table(
    "users | how many | equal models | by the interval alone | a margin apart | so by the interval",
    list(itertools.product(SIZES, (100, 300, 1000))),
    outside,
)
