"""Reductions, running sums, the largest values."""

import numpy

from tests.model.ops.cases.case import Case, bools, floats, integers, raw, vector

_X, _N = floats(2, 3, 4), integers(2, 3, 4)
_TIES = vector(2, 1, 2, 0, 1, dtype="float32")
_EMPTY = floats(2, 0)
_REDUCTIONS = {"Sum": _X, "Mean": _X, "Max": _X, "Min": _X, "Prod": _X, "All": bools(2, 3, 4)}
_REDUCTIONS.update({"Any": bools(2, 3, 4), "EuclideanNorm": _X})
_AXES = [0, [1], [-1], [0, 2], [0, 1, 2], numpy.zeros(0, "int32")]


def _reduction(op, axes, keep):
    return lambda x: getattr(raw, op)(input=x, axis=axes, keep_dims=keep)


CASES = [
    *(
        Case(op, _reduction(op, axes, keep), [x], rtol=1e-4)
        for op, x in _REDUCTIONS.items()
        for axes in _AXES
        for keep in (False, True)
    ),
    *(Case(op, _reduction(op, [1], False), [_N]) for op in ("Sum", "Mean", "Max", "Min", "Prod")),
    *(Case(op, _reduction(op, [1, 2], True), [_N]) for op in ("Sum", "Mean", "Max", "Prod")),
    *(
        Case(op, _reduction(op, [1], False), [_EMPTY], gradient=False)
        for op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm")
    ),
    *(Case(op, _reduction(op, [1], False), [integers(2, 0)]) for op in ("Sum", "Max", "Min")),
    *(Case(op, _reduction(op, [0], False), [_TIES]) for op in ("Max", "Min")),
    Case("Sum", lambda x, axes: raw.Sum(input=x, axis=axes), [_X, vector(0, 2)], shapes=["none"]),
    Case(
        "Max",
        lambda x: raw.Max(input=x, axis=raw.Range(start=0, limit=raw.Rank(input=x), delta=1)),
        [_X],
    ),
    *(
        Case(
            op,
            lambda x, op=op, t=t, axis=axis: getattr(raw, op)(
                input=x, dimension=axis, output_type=t
            ),
            [x],
        )
        for op in ("ArgMax", "ArgMin")
        for t in ("int32", "int64")
        for axis in (0, -1)
        for x in (_X, _TIES, _N)
    ),
    *(
        Case(
            op,
            lambda x, op=op, axis=axis, e=exclusive, r=reverse: getattr(raw, op)(
                x=x, axis=axis, exclusive=e, reverse=r
            ),
            [x],
            rtol=1e-4,
        )
        for op in ("Cumsum", "Cumprod")
        for exclusive in (False, True)
        for reverse in (False, True)
        for axis in (1,)
        for x in (_X, _N, floats(2, 0))
    ),
    Case("TopKV2", lambda x: raw.TopKV2(input=x, k=3), [_TIES]),
    Case("TopKV2", lambda x, k: raw.TopKV2(input=x, k=k), [_X, numpy.int32(2)]),
    Case("TopKV2", lambda x: raw.TopKV2(input=x, k=2), [_N]),
    *(
        Case(op, lambda x, y, op=op: getattr(raw, op)(predictions=x, targets=y, k=2), [x, y])
        for op in ("InTopK", "InTopKV2")
        for x, y in [
            (floats(3, 5), vector(0, 1, 4)),
            (floats(3, 5), vector(-1, 5, 2)),
            (vector([1, 1, 1], [1, numpy.nan, 2], dtype="float32"), vector(2, 2)),
        ]
    ),
    *(
        Case(
            "DenseBincount",
            lambda x, w, binary=binary: raw.DenseBincount(
                input=x, size=4, weights=w, binary_output=binary
            ),
            [x, w],
            gradient=False,
        )
        for x in (vector(1, 5, 0, 1), vector([1, 1], [3, 7], [0, 0]))
        for w, binary in ((floats(*x.shape), False), (floats(0), False), (floats(0), True))
    ),
    Case(
        "Bincount",
        lambda x: raw.Bincount(arr=x, size=4, weights=numpy.zeros(0, "float32")),
        [vector(1, 1, 3, 7)],
    ),
    Case(
        "Bincount",
        lambda x, w: raw.Bincount(arr=x, size=4, weights=w),
        [vector(1, 1, 3), floats(3)],
        gradient=False,
    ),
    Case("L2Loss", lambda x: raw.L2Loss(t=x), [_X]),
]
