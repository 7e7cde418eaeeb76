"""A model's scores out of a DataFrame's column, as `parity.io.scores` reads them from files.

Also expressions of scores that are probabilities or logits, as `parity.inputs.rows` has them, over
the columns SIDES: each takes whether the baseline's scores, and the candidate's, are logits.
"""

from typing import Any, Tuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from parity.inputs.checks import NOT_BOTH_CLASSES, SUM_TO_1, Column
from semisync.common.errors import BadInput

SIDES = ("old", "new")
Logits = Tuple[bool, bool]


def score_of(df: DataFrame, expression: Expression, kind: Any, column: Column) -> Expression:
    """A double per row: a number, the value of a list of one, or the positive class's probability
    out of both classes', a list of two or a vector of Spark ML's.

    Raises:
        BadInput: a column of anything else; or lists that are not such pairs, which takes a pass
            over the rows.
    """
    if kind.typeName() == "vectorudt":
        from pyspark.ml.functions import vector_to_array

        expression, kind = vector_to_array(expression), T.ArrayType(T.DoubleType())
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType):
        first, second = (F.get(expression, F.lit(place)).cast("double") for place in (0, 1))
        one, two = (F.size(expression) == count for count in (1, 2))
        pair = (first >= 0) & (second >= 0) & (F.abs(first + second - 1) <= SUM_TO_1)
        fits = one | (two & F.coalesce(pair, F.lit(False)))
        wrong = df.where(expression.isNotNull() & ~fits).count()
        if wrong:
            raise BadInput(f"{column} in {wrong:,} rows {NOT_BOTH_CLASSES}")
        return F.when(one, first).otherwise(second)
    return number_of(expression, kind, column)


def number_of(expression: Expression, kind: Any, column: Column) -> Expression:
    """A double per row; raises BadInput if the column has no numbers."""
    if not isinstance(kind, T.NumericType):
        raise BadInput(f"{column} holds {kind.simpleString()} values, not numbers")
    return expression.cast("double")


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
    # ln(1 + e^wrong), without overflow.
    return F.greatest(wrong, F.lit(0.0)) + F.log1p(F.exp(-F.abs(wrong)))


def apart(logits: Logits) -> Expression:
    """The candidate's probability less the baseline's."""
    old, new = (probability(logits, side) for side in SIDES)
    return new - old


def as_logit(logits: Logits, side: str) -> Expression:
    """The logits of a side whose scores lie strictly inside (0, 1), or are logits."""
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
