"""Neural networks, convolutions and pools."""

import numpy

from tests.model.ops.cases.case import Case, floats, raw, vector

_X, _IMAGE = floats(2, 3), floats(2, 7, 6, 4)
_STATISTICS = [floats(4), floats(4) + 1, floats(4) / 2, floats(4, low=0.2, high=2.0)]


def _norm(op, training):
    """The outputs that a model reads; the others are each kernel's own, for its gradient."""
    return lambda x, a, b, m, v: [
        *getattr(raw, op)(
            x=x, scale=a, offset=b, mean=m, variance=v, epsilon=0.01, is_training=training
        )[:3]
    ]


CASES = [
    Case("BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b), [_X, floats(3)]),
    Case("BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b), [_IMAGE, floats(4)]),
    Case(
        "BiasAdd",
        lambda x, b: raw.BiasAdd(value=x, bias=b, data_format="NCHW"),
        [_IMAGE, floats(7)],
    ),
    Case("BiasAddV1", lambda x, b: raw.BiasAddV1(value=x, bias=b), [_X, floats(3)]),
    Case("Softmax", lambda x: raw.Softmax(logits=x), [_X]),
    Case("LogSoftmax", lambda x: raw.LogSoftmax(logits=x), [_X]),
    Case("LRN", lambda x: raw.LRN(input=x), [_IMAGE]),
    Case(
        "LRN",
        lambda x: raw.LRN(input=x, depth_radius=1, bias=2.0, alpha=0.3, beta=0.7),
        [_IMAGE],
        rtol=1e-4,
    ),
    *(
        Case(op, _norm(op, False), [_IMAGE, *_STATISTICS], gradient=False, rtol=1e-4)
        for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    ),
    *(
        Case(
            op,
            _norm(op, True),
            [_IMAGE, *_STATISTICS[:2], vector(dtype="float32"), vector(dtype="float32")],
            gradient=False,
            rtol=1e-4,
        )
        for op in ("FusedBatchNorm", "FusedBatchNormV3")
    ),
    Case(
        "FusedBatchNormV3",
        lambda x, a, b, m, v: raw.FusedBatchNormV3(
            x=x, scale=a, offset=b, mean=m, variance=v, is_training=False
        )[0],
        [_IMAGE, *_STATISTICS],
        rtol=1e-4,
    ),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y),
        [_X, numpy.abs(_X)],
        gradient=False,
    ),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y)[0],
        [_X, numpy.abs(_X)],
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y),
        [_X, vector(2, 0)],
        gradient=False,
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)[0],
        [_X, vector(2, 0, dtype="int64")],
    ),
    *(
        Case(
            "Conv2D",
            lambda x, k, s=s, p=p, d=d: raw.Conv2D(
                input=x, filter=k, strides=[1, *s, 1], padding=p, dilations=[1, *d, 1]
            ),
            [_IMAGE, k],
            gradient=d == (1, 1),  # TensorFlow's is not there on every processor
            rtol=1e-4,
        )
        for s, d in (((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 2)))
        for p in ("SAME", "VALID")
        for k in (floats(3, 2, 4, 5), floats(2, 3, 4, 1))
    ),
    Case(
        "Conv2D",
        lambda x, k: raw.Conv2D(
            input=x,
            filter=k,
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0],
        ),
        [_IMAGE, floats(3, 2, 4, 5)],
        rtol=1e-4,
    ),
    *(
        Case(
            "DepthwiseConv2dNative",
            lambda x, k, s=s, p=p: raw.DepthwiseConv2dNative(
                input=x, filter=k, strides=[1, s, s, 1], padding=p
            ),
            [_IMAGE, floats(3, 2, 4, m)],
            rtol=1e-4,
        )
        for s in (1, 2)
        for p in ("SAME", "VALID")
        for m in (1, 2)
    ),
    *(
        Case(
            "Conv2DBackpropInput",
            lambda k, y, size=size, s=s, p=p: raw.Conv2DBackpropInput(
                input_sizes=size, filter=k, out_backprop=y, strides=[1, s, s, 1], padding=p
            ),
            [floats(3, 2, 4, 5), y],
            rtol=1e-4,
        )
        for size, s, p, y in [
            ([2, 6, 6, 4], 2, "SAME", floats(2, 3, 3, 5)),
            ([2, 7, 5, 4], 2, "SAME", floats(2, 4, 3, 5)),
            ([2, 7, 6, 4], 2, "VALID", floats(2, 3, 3, 5)),
            ([2, 8, 6, 4], 2, "VALID", floats(2, 3, 3, 5)),
            ([2, 5, 4, 4], 1, "SAME", floats(2, 5, 4, 5)),
        ]
    ),
    *(
        Case(
            op,
            lambda x, op=op, name=name, k=k, s=s, p=p: getattr(raw, op)(
                **{name: x}, ksize=[1, *k, 1], strides=[1, *s, 1], padding=p
            ),
            [_IMAGE],
        )
        for op, name in (("MaxPool", "input"), ("AvgPool", "value"))
        for k, s in (((2, 2), (2, 2)), ((3, 2), (1, 2)))
        for p in ("SAME", "VALID")
    ),
    *(
        Case(
            op,
            lambda x, op=op, name=name, k=k: getattr(raw, op)(
                **{"input": x, "block_shape": [2, 3], name: k}
            ),
            [x],
        )
        for op, name, x, k in [
            ("SpaceToBatchND", "paddings", _IMAGE, [[0, 1], [1, 2]]),
            ("BatchToSpaceND", "crops", floats(12, 3, 2, 4), [[0, 1], [1, 2]]),
            ("BatchToSpaceND", "crops", floats(6, 3, 2), [[0, 0], [0, 0]]),
        ]
    ),
    Case(
        "SpaceToBatchND",
        lambda x: raw.SpaceToBatchND(input=x, block_shape=[2], paddings=[[1, 0]]),
        [floats(2, 3, 4)],
    ),
    Case(
        "MaxPool",
        lambda x: raw.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID"),
        [numpy.ones((1, 3, 3, 1), "float32")],
    ),
]
