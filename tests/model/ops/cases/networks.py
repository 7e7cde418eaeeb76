"""Images, recurrent cells, Fourier transforms."""

import numpy

from tests.model.ops.cases.case import Case, floats, integers, raw, vector

_IMAGE, _VOLUME = floats(2, 5, 4, 3), floats(2, 5, 4, 3, 2)
_BOXES = vector([0, 0, 1, 1], [0.2, 0.9, 0.8, 0.1], [-0.3, 0.1, 1.2, 0.5], dtype="float32")
_X, _CS, _H = floats(2, 3), 2 * floats(2, 4), floats(2, 4)
_WEIGHTS = [floats(7, 16), floats(4), floats(4) + 1, floats(4) / 2, floats(16)]
_SEQUENCE = floats(5, 2, 3)
_NAMES = ("cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")


_ALL, _STATES = range(7), (1, 6)  # TensorFlow leaves others as they are after the sequence's end


def _lstm(op, kept=_ALL, **more):
    return lambda x, *given: [
        getattr(raw, op)(x=x, **dict(zip(_NAMES, given)), **more)[k] for k in kept
    ]


CASES = [
    *(
        Case(
            "Conv3D",
            lambda x, k, s=s, p=p: raw.Conv3D(input=x, filter=k, strides=[1, *s, 1], padding=p),
            [_VOLUME, floats(3, 2, 2, 2, 3)],
            rtol=1e-4,
        )
        for s in ((1, 1, 1), (2, 1, 3))
        for p in ("SAME", "VALID")
    ),
    *(
        Case(
            "Conv3DBackpropInputV2",
            lambda k, y, size=size, s=s, p=p: raw.Conv3DBackpropInputV2(
                input_sizes=size, filter=k, out_backprop=y, strides=[1, s, s, s, 1], padding=p
            ),
            [floats(3, 2, 2, 2, 3), y],
            rtol=1e-4,
        )
        for size, s, p, y in (
            ([2, 6, 5, 4, 2], 2, "SAME", floats(2, 3, 3, 2, 3)),
            ([2, 7, 6, 5, 2], 2, "VALID", floats(2, 3, 3, 2, 3)),
            ([2, 5, 4, 3, 2], 1, "SAME", floats(2, 5, 4, 3, 3)),
        )
    ),
    *(
        Case(
            op,
            lambda x, op=op, p=p: getattr(raw, op)(
                input=x, ksize=[1, 3, 2, 2, 1], strides=[1, 2, 1, 2, 1], padding=p
            ),
            [_VOLUME],
        )
        for op in ("AvgPool3D", "MaxPool3D")
        for p in ("SAME", "VALID")
    ),
    *(
        Case(op, lambda x, s, op=op, m=m: getattr(raw, op)(images=x, size=s, **m), [x, s])
        for x in (_IMAGE, integers(2, 3, 5, 1, dtype="uint8", low=0, high=200))
        for s in (vector(8, 3), vector(1, 7), vector(5, 4))
        for op, ways in (
            ("ResizeBilinear", ({}, {"align_corners": True}, {"half_pixel_centers": True})),
            ("ResizeNearestNeighbor", ({}, {"align_corners": True}, {"half_pixel_centers": True})),
        )
        for m in ways
    ),
    *(
        Case(
            "ResizeArea", lambda x, s: raw.ResizeArea(images=x, size=s), [_IMAGE, s], gradient=False
        )
        for s in (vector(8, 3), vector(2, 2))
    ),
    *(
        Case(
            "CropAndResize",
            lambda x, b, i, s, m=m: raw.CropAndResize(
                image=x, boxes=b, box_ind=i, crop_size=s, method=m, extrapolation_value=7.0
            ),
            [_IMAGE, _BOXES, vector(1, 0, 1), s],
            gradient=False,
        )
        for m in ("bilinear", "nearest")
        for s in (vector(3, 6), vector(1, 2))
    ),
    Case("DepthToSpace", lambda x: raw.DepthToSpace(input=x, block_size=2), [floats(2, 3, 5, 8)]),
    Case("SpaceToDepth", lambda x: raw.SpaceToDepth(input=x, block_size=2), [floats(2, 6, 4, 3)]),
    *(
        Case("LSTMBlockCell", _lstm("LSTMBlockCell", **m), [_X, _CS, _H, *_WEIGHTS], gradient=False)
        for m in (
            {},
            {"cell_clip": -1.0, "use_peephole": True},
            {"cell_clip": 0.5, "forget_bias": 0.25},
        )
    ),
    *(
        Case(
            op,
            lambda n, x, *given, op=op, m=m, kept=kept: _lstm(op, kept, seq_len_max=n, **m)(
                x, *given
            ),
            [numpy.int64(n), _SEQUENCE, _CS, _H, *_WEIGHTS],
            gradient=False,
        )
        for n, kept in ((5, _ALL), (3, _STATES), (0, _STATES))
        for op, ways in (
            ("BlockLSTM", ({}, {"cell_clip": -1.0, "use_peephole": True})),
            ("BlockLSTMV2", ({}, {"cell_clip": 0.5, "use_peephole": True})),
        )
        for m in ways
    ),
    Case(
        "BlockLSTM",
        lambda *given: _lstm("BlockLSTM", seq_len_max=numpy.int64(5), cell_clip=-1.0)(*given)[-1],
        [_SEQUENCE, _CS, _H, *_WEIGHTS],
        rtol=1e-4,
    ),
    Case(
        "GRUBlockCell",
        lambda x, h, w, v, b, c: [*raw.GRUBlockCell(x=x, h_prev=h, w_ru=w, w_c=v, b_ru=b, b_c=c)],
        [_X, _H, floats(7, 8), floats(7, 4), floats(8), floats(4)],
        gradient=False,
    ),
    *(
        Case(
            "RFFT",
            lambda x, n=n: raw.ComplexAbs(x=raw.RFFT(input=x, fft_length=[n])),
            [floats(2, 6)],
            gradient=False,
        )
        for n in (6, 4)
    ),
    Case(
        "RFFT2D",
        lambda x: raw.ComplexAbs(x=raw.RFFT2D(input=x, fft_length=[4, 3])),
        [floats(2, 6, 5)],
        gradient=False,
    ),
    *(
        Case(
            op,
            lambda x, y, op=op, f=f: getattr(raw, op)(
                input=raw.Complex(real=x, imag=y), fft_length=f
            ),
            [floats(2, 4, 5), floats(2, 4, 5)],
            gradient=False,
        )
        for op, f in (("IRFFT", [8]), ("IRFFT", [7]), ("IRFFT2D", [4, 8]))
    ),
    *(
        Case(
            op,
            lambda x, y, op=op, one=one: one(
                input=getattr(raw, op)(input=raw.Complex(real=x, imag=y))
            ),
            [floats(2, 5), floats(2, 5)],
            gradient=False,
        )
        for op in ("FFT", "IFFT")
        for one in (raw.Real, raw.Imag)
    ),
    *(
        Case(op, lambda x, y, op=op: getattr(raw, op)(input=raw.Complex(real=x, imag=y)), [_X, _X])
        for op in ("Real", "Imag")
    ),
    Case("Complex", lambda x, y: raw.Complex(real=x, imag=y), [_X, _X + 1], gradient=False),
    Case(
        "ComplexAbs", lambda x: raw.ComplexAbs(x=raw.Complex(real=x, imag=x)), [_X], gradient=False
    ),
    Case(
        "MatrixDeterminant", lambda x: raw.MatrixDeterminant(input=x), [floats(2, 3, 3)], rtol=1e-4
    ),
    *(
        Case(
            "MatrixInverse",
            lambda x, a=a: raw.MatrixInverse(input=x, adjoint=a),
            [floats(2, 3, 3) + 3 * numpy.eye(3, dtype="float32")],
            rtol=1e-4,
        )
        for a in (False, True)
    ),
]
