"""Making tensors, and changing their shape or the order of their values."""

import numpy

from tests.model.ops.cases.case import Case, floats, integers, raw, strings, vector

_X, _Y = floats(2, 3), floats(2, 3) + 5
_CUBE = floats(2, 3, 4)
_WORDS = numpy.array([["a", "bc"], ["", "def"], ["g", "a"]], object)

CASES = [
    Case("Reshape", lambda x: raw.Reshape(tensor=x, shape=[-1, 2]), [_X]),
    Case("Reshape", lambda x: raw.Reshape(tensor=x, shape=numpy.zeros(0, "int32")), [floats(1)]),
    Case("Reshape", lambda x: raw.Reshape(tensor=x, shape=[-1, 10]), [floats(0, 5)]),
    Case("Reshape", lambda x, s: raw.Reshape(tensor=x, shape=s), [_X, vector(3, -1)]),
    Case("Reshape", lambda x: raw.Reshape(tensor=x, shape=[-1]), [_WORDS]),
    Case("IdentityN", lambda x, w: raw.IdentityN(input=[x, w]), [_X, _WORDS]),
    Case("IdentityN", lambda x: raw.IdentityN(input=[x]), [_X]),
    Case("ExpandDims", lambda x: raw.ExpandDims(input=x, axis=1), [_X]),
    Case("ExpandDims", lambda x: raw.ExpandDims(input=x, axis=-1), [_X]),
    Case("ExpandDims", lambda x: raw.ExpandDims(input=x, axis=-1), [_WORDS]),
    Case("Squeeze", lambda x: raw.Squeeze(input=x, axis=[1]), [floats(2, 1, 3)]),
    Case("Squeeze", lambda x: raw.Squeeze(input=x, axis=[0, -1]), [floats(1, 2, 1)]),
    Case("Squeeze", lambda x: raw.Squeeze(input=x, axis=[]), [floats(1, 2, 1)]),
    Case("Squeeze", lambda x: raw.Squeeze(input=x, axis=[1]), [strings("a", "b").reshape(2, 1)]),
    Case("Transpose", lambda x: raw.Transpose(x=x, perm=[2, 0, 1]), [_CUBE]),
    Case("Transpose", lambda x, p: raw.Transpose(x=x, perm=p), [_CUBE, vector(1, 0, 2)]),
    Case("Transpose", lambda x: raw.Transpose(x=x, perm=[1, 0]), [_WORDS]),
    Case("ConcatV2", lambda x, y: raw.ConcatV2(values=[x, y], axis=1), [_X, floats(2, 1)]),
    Case("ConcatV2", lambda x, y: raw.ConcatV2(values=[x, y], axis=-1), [_X, floats(2, 0)]),
    Case("ConcatV2", lambda x: raw.ConcatV2(values=[x, [[1.0, 2.0, 3.0]]], axis=0), [_X]),
    Case("ConcatV2", lambda x: raw.ConcatV2(values=[x, x], axis=1), [_WORDS]),
    Case("Concat", lambda x, y: raw.Concat(concat_dim=0, values=[x, y]), [_X, _Y]),
    Case("Pack", lambda x, y: raw.Pack(values=[x, y], axis=1), [_X, _Y]),
    Case("Pack", lambda x: raw.Pack(values=[x, 2.5], axis=0), [numpy.float32(1)]),
    Case("Pack", lambda x: raw.Pack(values=[x, x], axis=0), [_WORDS]),
    Case("Unpack", lambda x: raw.Unpack(value=x, num=3, axis=1), [_CUBE]),
    Case("Unpack", lambda x: raw.Unpack(value=x, num=3, axis=-2), [_CUBE]),
    Case("Unpack", lambda x: raw.Unpack(value=x, num=2, axis=1), [_WORDS]),
    Case("Split", lambda x: raw.Split(axis=1, value=x, num_split=3), [_X]),
    Case("Split", lambda x: raw.Split(axis=-1, value=x, num_split=2), [_CUBE]),
    Case("Split", lambda x: raw.Split(axis=1, value=x, num_split=2), [_WORDS]),
    Case("SplitV", lambda x: raw.SplitV(value=x, size_splits=[1, 2], axis=1, num_split=2), [_X]),
    Case("SplitV", lambda x: raw.SplitV(value=x, size_splits=[1, -1], axis=1, num_split=2), [_X]),
    Case("SplitV", lambda x: raw.SplitV(value=x, size_splits=[1] * 3, axis=1, num_split=3), [_X]),
    Case(
        "SplitV",
        lambda x, n: raw.SplitV(value=x, size_splits=n, axis=1, num_split=2),
        [_X, vector(2, 1)],
        gradient=False,
    ),
    Case("Tile", lambda x: raw.Tile(input=x, multiples=[2, 3]), [_X]),
    Case("Tile", lambda x: raw.Tile(input=x, multiples=[0, 1]), [_X], gradient=False),
    Case("Tile", lambda x, m: raw.Tile(input=x, multiples=m), [_X, vector(1, 2)]),
    Case("Tile", lambda x: raw.Tile(input=x, multiples=[2, 1]), [_WORDS]),
    Case("BroadcastTo", lambda x: raw.BroadcastTo(input=x, shape=[4, 2, 3]), [_X]),
    Case("Fill", lambda: raw.Fill(dims=[2, 3], value=1.5), []),
    Case("Fill", lambda: raw.Fill(dims=[2], value=7), []),
    Case("Fill", lambda d: raw.Fill(dims=d, value=numpy.int64(7)), [vector(2, 0)]),
    Case("Fill", lambda x: raw.Fill(dims=[2, 3], value=x), [numpy.float32(2)]),
    Case("Fill", lambda: raw.Fill(dims=[2], value="a"), []),
    Case("Range", lambda: raw.Range(start=0, limit=5, delta=1), []),
    Case("Range", lambda n: raw.Range(start=1, limit=n, delta=2), [numpy.int32(8)]),
    Case(
        "Range",
        lambda n: raw.Range(start=n, limit=numpy.int64(0), delta=numpy.int64(-2)),
        [numpy.int64(8)],
    ),
    Case("Range", lambda x: raw.Range(start=0.0, limit=x, delta=0.1), [numpy.float32(1)]),
    Case("LinSpace", lambda: raw.LinSpace(start=0.0, stop=2.0, num=5), []),
    Case(
        "LinSpace",
        lambda x: raw.LinSpace(start=x, stop=2.0, num=4),
        [numpy.float32(1)],
        gradient=False,
    ),
    *(
        Case(
            "OneHot",
            lambda x, axis=axis, on=on, off=off: raw.OneHot(
                indices=x, depth=4, on_value=on, off_value=off, axis=axis
            ),
            [x],
        )
        for x in (vector(0, 3, -1, 4), vector([1, 2], [3, 0]), vector(1, 9, dtype="int64"))
        for axis, on, off in ((-1, 1.0, 0.0), (0, 2.5, -1.0), (-1, 1, 0), (-1, True, False))
    ),
    Case(
        "OneHot",
        lambda x, on: raw.OneHot(indices=x, depth=3, on_value=on, off_value=0.0),
        [vector(1, 2), numpy.float32(3)],
        gradient=False,
    ),
    Case("Pad", lambda x: raw.Pad(input=x, paddings=[[0, 0], [1, 2]]), [_X]),
    Case("Pad", lambda x: raw.Pad(input=x, paddings=[[1, 0], [0, 0]]), [integers(2, 3)]),
    Case("Pad", lambda x, p: raw.Pad(input=x, paddings=p), [_X, vector([1, 0], [0, 2])]),
    Case(
        "PadV2", lambda x: raw.PadV2(input=x, paddings=[[1, 1], [0, 1]], constant_values=-1.5), [_X]
    ),
    Case(
        "PadV2",
        lambda x, v: raw.PadV2(input=x, paddings=[[1, 1], [0, 1]], constant_values=v),
        [_X, numpy.float32(3)],
        gradient=False,
    ),
    *(
        Case(
            "MirrorPad",
            lambda x, mode=mode: raw.MirrorPad(input=x, paddings=[[1, 1], [0, 2]], mode=mode),
            [_X],
        )
        for mode in ("REFLECT", "SYMMETRIC")
    ),
    Case("ReverseV2", lambda x: raw.ReverseV2(tensor=x, axis=[1]), [_CUBE]),
    Case("ReverseV2", lambda x: raw.ReverseV2(tensor=x, axis=[0, -1]), [_CUBE]),
    Case("Reverse", lambda x: raw.Reverse(tensor=x, dims=[False, True]), [_X]),
    *(
        Case(
            "ReverseSequence",
            lambda x, n, s=s, b=b: raw.ReverseSequence(
                input=x, seq_lengths=n, seq_dim=s, batch_dim=b
            ),
            [_CUBE, n],
        )
        for s, b, n in ((1, 0, vector(2, 0)), (0, 2, vector(2, 1, 0, 2, dtype="int64")))
    ),
    Case("Roll", lambda x: raw.Roll(input=x, shift=[1, -1], axis=[0, 2]), [_CUBE]),
    Case("StopGradient", lambda x: raw.StopGradient(input=x) * x, [_X]),
]
