"""Slices; picking and placing by index; segments."""

import numpy

from tests.model.ops.cases.case import Case, floats, integers, raw, strings, vector

_X, _CUBE = floats(4, 3), floats(2, 3, 4)
_WORDS = numpy.array([["a", "bc"], ["", "def"], ["g", "a"]], object)
_IDS = vector(0, 0, 2, 2)

_SLICES = [
    lambda x: x[0],
    lambda x: x[:, 1],
    lambda x: x[..., -1],
    lambda x: x[:, 1:3],
    lambda x: x[1:, ::2],
    lambda x: x[:, ::-1],
    lambda x: x[:, 2:0:-1],
    lambda x: x[:, None, :, 1:],
    lambda x: x[..., None],
    lambda x: x[-1, -2:, :-1],
    lambda x: x[0:0],
    lambda x: x[1:9],
    lambda x: x[:, :],
]

_CORNERS = floats(9, 2)
_BOXES = numpy.concatenate([_CORNERS, _CORNERS + floats(9, 2, low=-1.0)], 1)
_SCORES = numpy.array([0.1, 0.9, 0.9, 0.4, -0.2, 0.8, 0.3, 0.05, 0.7], numpy.float32)


def _suppressed(form, count, *bounds, **attributes):
    """An op of a form, or, of V4, the first of its outputs."""
    names = ["iou_threshold", "score_threshold"]

    def build(boxes, scores):
        given = {"boxes": boxes, "scores": scores, "max_output_size": count}
        found = getattr(raw, form)(**given, **dict(zip(names, bounds)), **attributes)
        return list(found) if form.endswith("V4") else found

    return Case(form, build, [_BOXES, _SCORES], gradient=False)


CASES = [
    *(Case("StridedSlice", build, [_CUBE]) for build in _SLICES),
    *(Case("StridedSlice", build, [_WORDS]) for build in (_SLICES[0], _SLICES[1], _SLICES[5])),
    Case("StridedSlice", lambda x, n: x[:, :n], [_CUBE, numpy.int32(2)]),
    Case("StridedSlice", lambda x, n: x[:, n], [_CUBE, numpy.int32(2)]),
    Case(
        "StridedSlice",
        lambda x, b, e: raw.StridedSlice(
            input=x, begin=b, end=e, strides=[1, 2], shrink_axis_mask=1
        ),
        [_CUBE, vector(1, 0), vector(2, 3)],
    ),
    Case(
        "StridedSlice",
        lambda x, b, e, s: raw.StridedSlice(input=x, begin=b, end=e, strides=s, end_mask=1),
        [_CUBE, vector(0, 2), vector(0, 0), vector(1, -1)],
        shapes=["none"],
    ),
    Case("Slice", lambda x: raw.Slice(input=x, begin=[0, 1, 0], size=[-1, 2, 4]), [_CUBE]),
    Case("Slice", lambda x: raw.Slice(input=x, begin=[1, 0, 2], size=[1, -1, -1]), [_CUBE]),
    Case("Slice", lambda x: raw.Slice(input=x, begin=[0, 0, 0], size=[-1, 3, 4]), [_CUBE]),
    Case(
        "Slice", lambda x, b: raw.Slice(input=x, begin=b, size=[1, 2, 2]), [_CUBE, vector(1, 0, 2)]
    ),
    Case("Slice", lambda x: raw.Slice(input=x, begin=[1, 0], size=[2, 1]), [_WORDS]),
    *(
        Case(
            "GatherV2", lambda x, i, axis=axis: raw.GatherV2(params=x, indices=i, axis=axis), [x, i]
        )
        for x, i, axis in [
            (_X, vector(3, 0, 3), 0),
            (_X, vector([1, 2], [0, 0]), 0),
            (_X, vector([1, 2], [0, 0], dtype="int64"), 1),
            (_CUBE, vector([1, 2], [0, 0]), -1),
            (_CUBE, vector(1, 1), 1),
            (_X, numpy.int32(2), 1),
            (floats(5), vector([1, 2], [0, 0]), 0),
            (_X, numpy.zeros((0, 2), "int32"), 0),
            (_WORDS, vector([1, 2], [0, 0]), 0),
            (_WORDS, vector(1, 0), 1),
        ]
    ),
    Case("GatherV2", lambda x: raw.GatherV2(params=x, indices=2, axis=0), [_X]),
    Case("GatherV2", lambda x: raw.GatherV2(params=x, indices=2, axis=1), [_X]),
    Case("GatherV2", lambda x: raw.GatherV2(params=x, indices=[2, 0], axis=1), [_X]),
    *(
        Case(
            "GatherV2",
            lambda x, i, axis=axis: raw.GatherV2(params=x, indices=i, axis=axis, batch_dims=1),
            [_CUBE, i],
        )
        for i, axis in [(vector([1, 2], [0, 0]), 1), (vector([3], [1]), 2), (vector(1, 0), 1)]
    ),
    Case("Gather", lambda x, i: raw.Gather(params=x, indices=i), [_X, vector(1, 3)]),
    *(
        Case(
            "GatherNd",
            lambda x, i: raw.GatherNd(params=x, indices=i),
            [x, i],
            gradient=i.shape[-1] > 0,
        )
        for x, i in [
            (_CUBE, vector([0, 2], [1, 1])),
            (_CUBE, vector([[0, 2, 3]], [[1, 1, 0]], dtype="int64")),
            (_CUBE, vector([1], [0])),
            (_CUBE, numpy.zeros((2, 0), "int32")),
            (_CUBE, numpy.zeros((0, 2), "int32")),
            (_WORDS, vector([1], [0])),
            (_WORDS, vector([1, 1], [0, 1])),
        ]
    ),
    *(
        Case("ScatterNd", lambda i, x, s=s: raw.ScatterNd(indices=i, updates=x, shape=s), [i, x])
        for i, x, s in [
            (vector([0], [2], [0]), _X[:3], [5, 3]),
            (vector([[0, 1]], [[2, 0]]), floats(2, 1), [3, 2]),
            (numpy.zeros((0, 1), "int32"), floats(0, 3), [2, 3]),
        ]
    ),
    Case(
        "ScatterNd",
        lambda i, x, s: raw.ScatterNd(indices=i, updates=x, shape=s),
        [vector([1], [0]), _X[:2], vector(3, 3)],
    ),
    Case(
        "TensorScatterAdd",
        lambda x, i, y: raw.TensorScatterAdd(tensor=x, indices=i, updates=y),
        [_X, vector([1], [1]), floats(2, 3)],
    ),
    Case(
        "TensorScatterUpdate",
        lambda x, i, y: raw.TensorScatterUpdate(tensor=x, indices=i, updates=y),
        [strings("a", "b", "c", "d").reshape(2, 2), vector([1]), strings("x", "yz").reshape(1, 2)],
    ),
    Case(
        "TensorScatterUpdate",
        lambda x, i, y: raw.TensorScatterUpdate(tensor=x, indices=i, updates=y),
        [_X, vector([1], [3]), floats(2, 3)],
    ),
    *(
        Case(op, lambda x, op=op, t=t: getattr(raw, op)(x=x, out_idx=t), [x], gradient=False)
        for op in ("Unique", "UniqueWithCounts")
        for t in ("int32", "int64")
        for x in (
            vector(5, 3, 5, -1, 3),
            floats(3),
            numpy.zeros(0, "int64"),
            strings("b", "a", "b"),
        )
    ),
    *(
        Case(
            op,
            lambda x, op=op: getattr(raw, op)(x=x, axis=[0]),
            [vector(5, 3, 5, -1)],
            shapes=["all"],
        )
        for op in ("UniqueV2", "UniqueWithCountsV2")
    ),
    Case(
        "ComputeAccidentalHits",
        lambda x, y: raw.ComputeAccidentalHits(true_classes=x, sampled_candidates=y, num_true=2),
        [numpy.array([[4, 7], [1, 1], [9, 4]]), vector(7, 4, 2, 7, 1).astype("int64")],
        gradient=False,
    ),
    *(
        Case("ListDiff", lambda x, y: raw.ListDiff(x=x, y=y), [x, y], gradient=False)
        for x, y in [(vector(1, 2, 2, 5), vector(5, 1)), (strings("a", "b", "c"), strings("b"))]
    ),
    *(
        Case(
            "DynamicPartition",
            lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=3),
            [x, p],
        )
        for x, p in [(_X, vector(0, 2, 0, 2)), (strings("a", "b"), vector(1, 1))]
    ),
    *(
        Case(
            op,
            lambda i, x, j, y, op=op: getattr(raw, op)(indices=[i, j], data=[x, y]),
            [i, x, j, y],
            gradient=op == "DynamicStitch",
        )
        for op in ("DynamicStitch", "ParallelDynamicStitch")
        for i, x, j, y in [
            (vector(0, 3), _X[:2], vector(2, 1), _X[2:]),
            (numpy.int32(1), _X[0], vector([0], [2]), floats(2, 1, 3)),
            (vector(1), strings("a"), vector(0), strings("b")),
        ]
    ),
    Case(
        "DynamicStitch",
        lambda i, x, y: raw.DynamicStitch(indices=[i, i], data=[x, y]),
        [vector(1, 0), _X[:2], _X[2:]],
        gradient=False,
    ),
    Case("InvertPermutation", lambda x: raw.InvertPermutation(x=x), [vector(2, 0, 1)]),
    *(
        Case(
            op,
            lambda x, v, op=op, t=t: getattr(raw, op)(sorted_inputs=x, values=v, out_type=t),
            [vector([1, 2, 2, 5], [0, 0, 1, 3]), vector([2, 0, 9], [0, 1, 2])],
        )
        for op in ("LowerBound", "UpperBound")
        for t in ("int32", "int64")
    ),
    Case("Where", lambda x: raw.Where(condition=x), [_CUBE > 0]),
    Case("Where", lambda x: raw.Where(condition=x), [vector(0, 1.5, numpy.nan, dtype="float32")]),
    Case("Where", lambda x: raw.Where(condition=x), [numpy.zeros((0, 2), bool)]),
    *(
        Case(op, lambda x, i, op=op: getattr(raw, op)(data=x, segment_ids=i), [x, i])
        for op in ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
        for x, i in [(_X, _IDS), (_X, vector(0, 1, 1, 3, dtype="int64")), (floats(0, 3), vector())]
        if op != "SegmentProd" or len(i)
    ),
    Case("SegmentSum", lambda x, i: raw.SegmentSum(data=x, segment_ids=i), [integers(4, 3), _IDS]),
    Case("SegmentMax", lambda x, i: raw.SegmentMax(data=x, segment_ids=i), [integers(4, 3), _IDS]),
    Case(
        "SegmentMean", lambda x, i: raw.SegmentMean(data=x, segment_ids=i), [integers(4, 3), _IDS]
    ),
    *(
        Case(
            op, lambda x, i, op=op: getattr(raw, op)(data=x, segment_ids=i, num_segments=4), [x, i]
        )
        for op in (
            "UnsortedSegmentSum",
            "UnsortedSegmentProd",
            "UnsortedSegmentMax",
            "UnsortedSegmentMin",
        )
        for x, i in [
            (_X, vector(2, 0, -1, 2)),
            (_X, vector([0, 1, 2], [2, 2, 2], [-1, 0, 0], [2, 0, 1])),
            (integers(4, 3), vector(2, 0, -1, 2)),
            (floats(0, 3), vector()),
        ]
    ),
    *(
        Case(
            op,
            lambda x, i, s, op=op: getattr(raw, op)(data=x, indices=i, segment_ids=s),
            [_X, vector(3, 0, 3), s],
        )
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
        for s in (vector(0, 0, 2), vector(0, 1, 2))
    ),
    *(
        Case(
            op,
            lambda x, i, s, op=op: getattr(raw, op)(
                data=x, indices=i, segment_ids=s, num_segments=5
            ),
            [_X, vector(3, 0, 3), vector(0, 0, 2)],
        )
        for op in (
            "SparseSegmentSumWithNumSegments",
            "SparseSegmentMeanWithNumSegments",
            "SparseSegmentSqrtNWithNumSegments",
        )
    ),
    _suppressed("NonMaxSuppression", 4, 0.25),
    _suppressed("NonMaxSuppression", 20, 1.0),
    _suppressed("NonMaxSuppressionV2", 3, 0.1),
    _suppressed("NonMaxSuppressionV3", 9, 0.3, 0.2),
    _suppressed("NonMaxSuppressionV3", 9, 0.3, 2.0),
    _suppressed("NonMaxSuppressionV3", 0, 0.3, float("-inf")),
    _suppressed("NonMaxSuppressionV4", 9, 0.05, 0.2, pad_to_max_output_size=True),
    _suppressed("NonMaxSuppressionV4", 2, 0.5, float("-inf"), pad_to_max_output_size=True),
    _suppressed("NonMaxSuppressionV4", 9, 0.05, 0.2),
]
