"""A model's scores out of a DataFrame's column, as `parity.io.scores` has them from files."""

from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from parity.inputs.checks import NOT_BOTH_CLASSES, SUM_TO_1, Column
from semisync.common.errors import BadInput


def score_of(df: DataFrame, expression: Expression, kind: Any, column: Column) -> Expression:
    """A double: of a number, of a list of one, or of the probabilities of both classes, a list of
    two or a vector of Spark ML's, that of the positive one.

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
    """A double; raises BadInput if the column has no numbers."""
    if not isinstance(kind, T.NumericType):
        raise BadInput(f"{column} holds {kind.simpleString()} values, not numbers")
    return expression.cast("double")
