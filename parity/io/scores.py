"""A model's scores out of an Arrow column: numbers, or the probabilities of both classes.

sklearn's predict_proba, an Estimator's `probabilities` and Spark ML's `probability` have two
numbers for each row, of the negative class and of the positive one, which is the score. Spark ML's
are vectors: structs in Parquet and ORC.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.checks import NOT_BOTH_CLASSES, SUM_TO_1, Column
from parity.io.columns import At, in_dtype, in_lists, is_list, opened, plain, to_numbers
from semisync.common.errors import BadInput

_VECTOR = {"type", "size", "indices", "values"}


def to_scores(values: pa.ChunkedArray, column: Column) -> np.ndarray:
    """bool, integer or floating (n,): as `parity.io.columns.to_numbers`; of the probabilities of
    both classes those of the positive one.

    Raises:
        BadInput: no numbers, or several in a row that are not such a pair.
    """
    array = in_lists(_without_vectors(plain(values), column))
    if is_list(array.type) and len(array):
        lengths, flat = opened(array)
        if (lengths == 2).all():
            return _of_positive(flat, At(column, (lengths,)))
    return to_numbers(pa.chunked_array([array]), column)


def _of_positive(flat: pa.Array, at: At) -> np.ndarray:
    """float (n,), of 2 n values."""
    own = flat.type.to_pandas_dtype() if pa.types.is_floating(flat.type) else np.float64
    pairs = in_dtype(flat, own, at).reshape(-1, 2)
    wrong = ~((pairs >= 0).all(1) & (np.abs(pairs.sum(1) - 1) <= SUM_TO_1))
    if wrong.any():
        raise BadInput(f"{at.column.at(int(wrong.argmax()))} {NOT_BOTH_CLASSES}")
    return np.ascontiguousarray(pairs[:, 1])


def _without_vectors(array: pa.Array, column: Column) -> pa.Array:
    """The numbers of Spark ML's vectors as lists; other values as they are."""
    kind = array.type
    if not pa.types.is_struct(kind) or {field.name for field in kind} != _VECTOR:
        return array
    if pc.any(pc.equal(pc.struct_field(array, "type"), 0)).as_py():
        raise BadInput(f"{column} holds sparse vectors; a score is a number, or a dense one of two")
    return pc.struct_field(array, "values")
