"""Sparse tensors: indices, values and a dense shape."""

import numpy

from tests.model.ops.cases.case import Case, floats, integers, raw, strings, vector

_INDICES = vector([0, 1], [0, 3], [2, 0], [3, 2], dtype="int64")
_VALUES, _SHAPE = floats(4), vector(5, 4, dtype="int64")
_WORDS = strings("a", "bc", "", "d")
_OTHER = vector([0, 1], [1, 1], dtype="int64")
_CUBE = vector([0, 1, 2], [0, 1, 0], [2, 0, 1], dtype="int64")
_CUBE_SHAPE = vector(3, 2, 4, dtype="int64")
_NOTHING = numpy.zeros((0, 2), "int64")


def _three(op, **more):
    """An op whose first arguments are a sparse tensor."""
    return lambda i, x, s: getattr(raw, op)(
        **dict(zip(_NAMES.get(op, ("indices", "values", "shape")), (i, x, s))), **more
    )


_SP = ("sp_indices", "sp_values", "sp_shape")
_NAMES = {
    "SparseReduceSum": ("input_indices", "input_values", "input_shape"),
    "SparseReduceMax": ("input_indices", "input_values", "input_shape"),
    "SparseReorder": ("input_indices", "input_values", "input_shape"),
    "SparseFillEmptyRows": ("indices", "values", "dense_shape"),
    "SparseSoftmax": _SP,
}

CASES = [
    *(
        Case(
            "SparseToDense",
            lambda i, s, x, d: raw.SparseToDense(
                sparse_indices=i, output_shape=s, sparse_values=x, default_value=d
            ),
            [i, s, x, d],
            gradient=False,
        )
        for i, s, x, d in [
            (_INDICES, _SHAPE, _VALUES, numpy.float32(-1)),
            (_INDICES, _SHAPE, numpy.float32(3), numpy.float32(-1)),
            (_INDICES, _SHAPE, _WORDS, numpy.array("none", object)),
            (vector(0, 3), vector(5), vector(7, 8), numpy.int32(0)),
            (numpy.int32(2), vector(4), numpy.int32(9), numpy.int32(0)),
            (_NOTHING, _SHAPE, floats(0), numpy.float32(1)),
        ]
    ),
    Case(
        "SparseToDense",
        lambda x: raw.SparseToDense(
            sparse_indices=_INDICES, output_shape=_SHAPE, sparse_values=x, default_value=0.0
        ),
        [_VALUES],
    ),
    Case(
        "SparseToDense",
        lambda x: raw.SparseToDense(
            sparse_indices=[2, 0, 2],
            output_shape=[4],
            sparse_values=x,
            default_value=-1.0,
            validate_indices=False,
        ),
        [_VALUES[:3]],
        gradient=False,
    ),
    *(
        Case(
            "SparseFillEmptyRows",
            lambda i, x, s, d: raw.SparseFillEmptyRows(
                indices=i, values=x, dense_shape=s, default_value=d
            ),
            [i, x, s, d],
            gradient=False,
        )
        for i, x, s, d in [
            (_INDICES, _VALUES, _SHAPE, numpy.float32(-1)),
            (_INDICES, _WORDS, _SHAPE, numpy.array("none", object)),
            (_INDICES[::-1].copy(), _VALUES, _SHAPE, numpy.float32(-1)),
            (_NOTHING, floats(0), _SHAPE, numpy.float32(-1)),
            (_NOTHING, floats(0), vector(0, 4, dtype="int64"), numpy.float32(-1)),
        ]
    ),
    Case(
        "SparseFillEmptyRows",
        lambda x: raw.SparseFillEmptyRows(
            indices=_INDICES, values=x, dense_shape=_SHAPE, default_value=0
        )[1],
        [vector(1, 2, 3, 4)],
    ),
    *(
        Case(
            "SparseReshape",
            lambda i, s, new=new: raw.SparseReshape(
                input_indices=i, input_shape=s, new_shape=numpy.array(new, "int64")
            ),
            [_INDICES, _SHAPE],
        )
        for new in ([4, 5], [-1, 2], [20], [2, -1, 2])
    ),
    Case(
        "SparseReshape",
        lambda i, s: raw.SparseReshape(
            input_indices=i, input_shape=s, new_shape=numpy.array([-1, 4])
        ),
        [_NOTHING, _SHAPE],
    ),
    *(
        Case(
            "SparseSlice",
            lambda i, x, s: raw.SparseSlice(
                indices=i, values=x, shape=s, start=numpy.array([1, 0]), size=numpy.array([2, 9])
            ),
            [_INDICES, x, _SHAPE],
            gradient=False,
        )
        for x in (_VALUES, _WORDS)
    ),
    *(
        Case(
            "SparseConcat",
            lambda i, x, s, j, y, t, axis=axis: raw.SparseConcat(
                indices=[i, j], values=[x, y], shapes=[s, t], concat_dim=axis
            ),
            [_INDICES, x, _SHAPE, _OTHER, x[:2], _SHAPE],
            gradient=False,
        )
        for axis in (0, 1, -1)
        for x in (_VALUES, _WORDS)
    ),
    *(
        Case(
            "SparseSplit",
            lambda i, x, s, n=n, axis=axis: [
                one
                for part in raw.SparseSplit(
                    split_dim=numpy.int64(axis), indices=i, values=x, shape=s, num_split=n
                )
                for one in part
            ],
            [_INDICES, _VALUES, _SHAPE],
            gradient=False,
        )
        for n, axis in ((2, 0), (2, 1))
    ),
    Case(
        "SparseReorder",
        _three("SparseReorder"),
        [_INDICES[[2, 0, 3, 1]], _VALUES, _SHAPE],
        gradient=False,
    ),
    Case("SparseReorder", _three("SparseReorder"), [_INDICES[[2, 0, 3, 1]], _WORDS, _SHAPE]),
    *(
        Case(
            op,
            _three(op, reduction_axes=axes, keep_dims=keep),
            [_CUBE, floats(3), _CUBE_SHAPE],
            gradient=False,
        )
        for op in ("SparseReduceSum", "SparseReduceMax")
        for axes in ([1], [0, -1], [0, 1, 2])
        for keep in (False, True)
    ),
    Case(
        "SparseReduceSum",
        lambda x: raw.SparseReduceSum(
            input_indices=_CUBE, input_values=x, input_shape=_CUBE_SHAPE, reduction_axes=[1]
        ),
        [floats(3)],
    ),
    Case("SparseSoftmax", _three("SparseSoftmax"), [_INDICES, _VALUES, _SHAPE], gradient=False),
    Case(
        "SparseSoftmax",
        lambda x: raw.SparseSoftmax(sp_indices=_INDICES, sp_values=x, sp_shape=_SHAPE),
        [_VALUES],
    ),
    *(
        Case(
            "SparseAdd",
            lambda i, x, j, y, t=t: raw.SparseAdd(
                a_indices=i,
                a_values=x,
                a_shape=_SHAPE,
                b_indices=j,
                b_values=y,
                b_shape=_SHAPE,
                thresh=t,
            ),
            [_INDICES, _VALUES, _OTHER, _VALUES[:2]],
            gradient=False,
        )
        for t in (0.0, 0.9)
    ),
    Case(
        "SparseTensorDenseAdd",
        lambda x, y: raw.SparseTensorDenseAdd(a_indices=_INDICES, a_values=x, a_shape=_SHAPE, b=y),
        [_VALUES, floats(5, 4)],
    ),
    *(
        Case(
            op,
            lambda x, y, op=op: getattr(raw, op)(
                sp_indices=_INDICES, sp_values=x, sp_shape=_SHAPE, dense=y
            ),
            [x, y],
            gradient=False,
        )
        for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul")
        for x, y in (
            (_VALUES, floats(5, 4) + 3),
            (_VALUES, floats(4) + 3),
            (integers(len(_VALUES)), integers(4, low=2)),
        )
    ),
    *(
        Case(
            "SparseTensorDenseMatMul",
            lambda x, y, a=a, b=b: raw.SparseTensorDenseMatMul(
                a_indices=_INDICES, a_values=x, a_shape=_SHAPE, b=y, adjoint_a=a, adjoint_b=b
            ),
            [_VALUES, y],
        )
        for a, b, y in [
            (False, False, floats(4, 3)),
            (False, True, floats(3, 4)),
            (True, False, floats(5, 3)),
            (True, True, floats(3, 5)),
        ]
    ),
]
