"""Shapes, and what is computed from them in Python's own numbers."""

import tensorflow as tf

from tests.model.ops.cases.case import Case, floats, integers, raw, strings

_X = floats(2, 3, 4)


def _of(build):
    """`build` of the vector of sizes of x."""
    return lambda x: build(raw.Shape(input=x))


CASES = [
    Case("Shape", lambda x: raw.Shape(input=x), [_X]),
    Case("Shape", lambda x: raw.Shape(input=x, out_type="int64"), [_X]),
    Case("Shape", lambda x: raw.Shape(input=x), [strings("a", "b")]),
    Case("ShapeN", lambda x, y: raw.ShapeN(input=[x, y]), [_X, floats(5)], gradient=False),
    Case("Size", lambda x: raw.Size(input=x), [_X]),
    Case("Rank", lambda x: raw.Rank(input=x), [_X]),
    *(
        Case("Shape", _of(build), [_X])
        for build in [
            lambda s: s[0],
            lambda s: s[-1],
            lambda s: s[1:],
            lambda s: s[:-1],
            lambda s: s[::-1],
            lambda s: s[0] * s[1] + 1 - s[2] // 2,
            lambda s: tf.maximum(s[0], 3) % 2 + tf.minimum(s[1], 1) - tf.negative(s[0]),
            lambda s: tf.stack([s[0], 7, s[2]]),
            lambda s: tf.concat([s[:1], [4], s[1:]], 0),
            lambda s: tf.reduce_prod(s[1:]),
            lambda s: tf.reduce_sum(s, 0) + tf.reduce_max(s) - tf.reduce_min(s),
            lambda s: tf.reduce_prod(s, keepdims=True)[0],
            lambda s: tf.cast(s[0], tf.int64),
            lambda s: tf.cast(s[0], tf.float32) / 3.0,
            lambda s: tf.equal(s[0], 2),
            lambda s: tf.logical_and(s[0] > 1, tf.logical_not(s[1] >= s[2])),
            lambda s: tf.logical_or(s[0] < 1, tf.not_equal(s[1], s[2])),
            lambda s: s[0] <= s[1],
            lambda s: raw.Select(condition=s[0] > 1, x=s[1], y=s[2]),
            lambda s: raw.SelectV2(condition=s[0] > 7, t=s[1], e=s[2]),
            lambda s: tf.unstack(s, num=3)[1] + s[0],
            lambda s: tf.expand_dims(s[0], 0),
            lambda s: tf.squeeze(tf.expand_dims(s[0], 0)),
            lambda s: tf.reshape(s[0], [1]),
            lambda s: tf.reshape(s[0:1], []),
            lambda s: tf.ones_like(s)[0] + tf.zeros_like(s)[1] + s[0],
            lambda s: tf.reverse(s, [0]) + s[0] - s[0],
            lambda s: tf.slice(s, [1], [2])[0] + s[0],
            lambda s: tf.slice(s, [1], [-1])[0] + s[0],
            lambda s: tf.range(s[0] + 1),
            lambda s: s[0] * s,
            lambda s: s * tf.constant([1, 2, 3]) + s[0],
        ]
    ),
    Case("Gather", lambda x: raw.Gather(params=raw.Shape(input=x), indices=[0, 2]), [_X]),
    Case("GatherV2", lambda x: raw.GatherV2(params=raw.Shape(input=x), indices=1, axis=0), [_X]),
    Case("Reshape", lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), [_X]),
    Case("Reshape", lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [12]], 0)), [_X]),
    Case("Transpose", lambda x: tf.transpose(x), [_X]),
    Case(
        "Transpose", lambda x: raw.Transpose(x=x, perm=tf.rank(x) - 1 - tf.range(tf.rank(x))), [_X]
    ),
    Case("Sum", lambda x: tf.compat.v1.reduce_sum(x), [_X]),
    Case("Fill", lambda x: tf.zeros([tf.shape(x)[0], 3]), [_X]),
    Case("Tile", lambda x: tf.tile(x, [1, tf.shape(x)[0], 1]), [_X]),
    Case("Range", lambda x: tf.range(0, tf.shape(x)[1], 2), [_X]),
    Case("Cast", lambda x: x * tf.cast(tf.size(x), tf.float32), [_X]),
    Case("MatMul", lambda x, w: tf.tensordot(x, w, 1), [_X, floats(4, 5)]),
    Case("Less", lambda n: tf.sequence_mask(n, tf.shape(n)[0]), [integers(4, low=0, high=4)]),
    Case("StridedSlice", lambda x: x[:, : tf.shape(x)[0]], [_X]),
    Case("StridedSlice", lambda x: x[:, tf.shape(x)[1] - 1], [_X]),
]
