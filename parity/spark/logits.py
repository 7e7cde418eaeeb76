"""Expressions of scores that are probabilities or logits, as `parity.inputs.rows` has them.

Each takes whether the baseline's scores, and the candidate's, are logits; of the columns SIDES.
"""

from typing import Tuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

SIDES = ("old", "new")

Logits = Tuple[bool, bool]


def probability(logits: Logits, side: str) -> Expression:
    """The scores of a side: of logits their sigmoid, without overflow."""
    if not logits[SIDES.index(side)]:
        return F.col(side)
    small = F.exp(-F.abs(side))
    return F.when(F.col(side) >= 0, F.lit(1.0)).otherwise(small) / (1 + small)


def loss(logits: Logits, side: str) -> Expression:
    """Each row's log loss, in nats."""
    if not logits[SIDES.index(side)]:
        return -F.when(F.col("p") == 1, F.log(side)).otherwise(F.log1p(-F.col(side)))
    wrong = F.when(F.col("p") == 1, -F.col(side)).otherwise(F.col(side))
    return F.greatest(wrong, F.lit(0.0)) + F.log1p(F.exp(-F.abs(wrong)))


def apart(logits: Logits) -> Expression:
    """The candidate's probability less the baseline's."""
    old, new = (probability(logits, side) for side in SIDES)
    return new - old


def as_logit(logits: Logits, side: str) -> Expression:
    """Of scores strictly inside (0, 1), or of logits."""
    if logits[SIDES.index(side)]:
        return F.col(side)
    return F.log(side) - F.log1p(-F.col(side))


def logits_apart(logits: Logits) -> Expression:
    """The candidate's logit less the baseline's, of scores as for `as_logit`."""
    if any(logits):
        return as_logit(logits, "new") - as_logit(logits, "old")
    old, new = F.col("old"), F.col("new")
    return F.log(new / old) - (F.log1p(-new) - F.log1p(-old))


def on_one_scale(logits: Logits, side: str, probabilities: bool) -> Expression:
    """The scores of a side; as logits where the other side alone has logits, and these are
    `probabilities`, from 0 to 1."""
    if logits[0] == logits[1] or logits[SIDES.index(side)] or not probabilities:
        return F.col(side)
    inner = as_logit(logits, side)
    ends = F.when(F.col(side) <= 0, F.lit(float("-inf"))).when(
        F.col(side) >= 1, F.lit(float("inf"))
    )
    return ends.otherwise(inner)
