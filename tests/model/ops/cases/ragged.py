"""Ragged tensors, and sets."""

import numpy

from tests.model.ops.cases.case import Case, floats, raw, strings, vector

_SPLITS = vector(0, 2, 2, 5, dtype="int64")
_INNER = vector(0, 1, 3, 3, 4, 7, dtype="int64")
_WORDS = strings("a", "b", "c", "d", "e")
_SETS = vector([[3, 1, 3], [0, 2, 2]], [[5, 5, 5], [1, 2, 3]])
_OTHERS = vector([[1, 4], [2, 2]], [[5, 6], [7, 8]])
_INDICES = vector([0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0], dtype="int64")
_SHAPE = vector(2, 2, 4, dtype="int64")


def _dense(kinds, shape, default):
    return lambda values, *parts: raw.RaggedTensorToTensor(
        shape=numpy.array(shape, "int64"),
        values=values,
        default_value=default,
        row_partition_tensors=list(parts),
        row_partition_types=kinds,
    )


CASES = [
    *(
        Case(
            "RaggedRange",
            lambda x, y, z: raw.RaggedRange(starts=x, limits=y, deltas=z),
            [numpy.array(one) for one in given],
            gradient=False,
        )
        for given in (
            (vector(0, 5, 8), vector(3, 5, 0), vector(1, 1, -3)),
            (vector(0, 5, 8), numpy.int32(9), numpy.int32(2)),
            (floats(2, low=0, high=1), floats(2) + 5, numpy.float32(0.75)),
            (numpy.int64(2), numpy.int64(7), numpy.int64(2)),
        )
    ),
    *(
        Case(
            "RaggedGather",
            lambda s, x, i: raw.RaggedGather(
                params_nested_splits=[s], params_dense_values=x, indices=i, OUTPUT_RAGGED_RANK=1
            ),
            [_SPLITS, x, vector(2, 0, 1, 2)],
            gradient=False,
            shapes=["all", "ranks"],
        )
        for x in (floats(5), floats(5, 2), _WORDS)
    ),
    *(
        Case(
            "RaggedTensorToSparse",
            lambda x, *s: raw.RaggedTensorToSparse(rt_nested_splits=list(s), rt_dense_values=x),
            [x, *splits],
            gradient=False,
        )
        for x, splits in (
            (floats(5), [_SPLITS]),
            (floats(5, 2), [_SPLITS]),
            (_WORDS, [_SPLITS]),
            (floats(7), [_SPLITS, _INNER]),
            (floats(0), [vector(0, 0, 0, dtype="int64")]),
        )
    ),
    *(
        Case("RaggedTensorToTensor", _dense(kinds, shape, default), [x, *parts], gradient=False)
        for kinds, shape, default, x, parts in (
            (["ROW_SPLITS"], -1, 9.0, floats(5), [_SPLITS]),
            (["ROW_SPLITS"], [4, 2], 9.0, floats(5), [_SPLITS]),
            (["ROW_SPLITS"], [-1, -1, 2], 9.0, floats(5, 2), [_SPLITS]),
            (["ROW_SPLITS"], -1, [1.0, 2.0], floats(5, 2), [_SPLITS]),
            (["ROW_SPLITS"] * 2, [-1, 4, -1], 0.0, floats(7), [_SPLITS, _INNER]),
            (["ROW_SPLITS"], -1, "?", _WORDS, [_SPLITS]),
            (
                ["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
                [-1, -1],
                0.0,
                floats(5),
                [numpy.int64(4), vector(0, 0, 2, 2, 2, dtype="int64")],
            ),
            (
                ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"],
                -1,
                0.0,
                floats(4),
                [numpy.int64(3), vector(0, 0, 2), vector(0, 1, 1, 2)],
            ),
        )
        if len({one.dtype for one in parts}) == 1
    ),
    *(
        Case(
            "DenseToDenseSetOperation",
            lambda x, y, o=o: raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation=o),
            [x, y],
        )
        for o in ("a-b", "b-a", "intersection", "union")
        for x, y in ((_SETS, _OTHERS), (_SETS[0].astype("int64"), _OTHERS[1].astype("int64")))
    ),
    Case(
        "DenseToSparseSetOperation",
        lambda x, i, y, s: raw.DenseToSparseSetOperation(
            set1=x, set2_indices=i, set2_values=y, set2_shape=s, set_operation="a-b"
        ),
        [_SETS, _INDICES, vector(1, 0, 9, 5), _SHAPE],
    ),
    Case(
        "SparseToSparseSetOperation",
        lambda i, x, s, y: raw.SparseToSparseSetOperation(
            set1_indices=i,
            set1_values=x,
            set1_shape=s,
            set2_indices=i,
            set2_values=y,
            set2_shape=s,
            set_operation="union",
        ),
        [_INDICES, vector(1, 0, 9, 5), _SHAPE, vector(1, 3, 0, 4)],
    ),
]
