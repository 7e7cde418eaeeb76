"""Rows of floats as 8-bit numbers, in FBGEMM's rowwise layout, as in a static int8 table.

    row   scale (float16), bias (float16), dim numbers q (uint8): dim + 4 bytes
    value q * scale + bias

1. bias is the row's smallest value as float16, scale (its largest value - bias) / 255 as float16,
   q the nearest integer to (value - bias) / scale, ties to even. A scale that would be 0, or whose
   inverse would be infinite, is 1.
2. This is FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf at 8 bits, bit for bit, with which TorchRec
   quantizes; only that scale and bias stand first, as FBGEMM's inference kernels want a row
   (TorchRec moves them when it fills one). The kernels pad rows: to 16 bytes on a GPU.
3. A row with a NaN, an infinity, or a value beyond float16 has no such form: `quantized` leaves its
   scale or bias infinite or NaN, for the caller to refuse.

Source: fbgemm/src/QuantUtils.cc, torchrec/quant/embedding_modules.py, fbgemm-gpu 1.8, torchrec 1.8
"""

from __future__ import annotations

import numpy

HEAD = 4  # bytes of a row before its numbers
GPU_ROW_ALIGNMENT = 16  # bytes
_LARGEST = 255


def quantized(values: numpy.ndarray) -> numpy.ndarray:
    """`values`, float32 [n, dim], as rows uint8 [n, dim + 4]; dim is even, as FBGEMM wants it."""
    one = numpy.float16(1)
    with numpy.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see 3.
        bias = values.min(axis=1, initial=numpy.inf).astype(numpy.float16)
        start = bias.astype(numpy.float32)
        width = values.max(axis=1, initial=-numpy.inf) - start
        scale = (width / numpy.float32(_LARGEST)).astype(numpy.float16)
        scale = numpy.where((width == 0) | (scale == 0), one, scale)
        inverse = one / scale.astype(numpy.float32)
        scale = numpy.where(numpy.isinf(inverse), one, scale)
        inverse = numpy.where(numpy.isinf(inverse), numpy.float32(1), inverse)
        exact = numpy.rint((values - start[:, None]) * inverse[:, None])
        # A NaN cast to an integer is undefined; its row is refused anyhow.
        numbers = numpy.nan_to_num(exact).clip(0, _LARGEST).astype(numpy.uint8)
    head = numpy.stack([scale, bias], axis=1).astype("<f2").view(numpy.uint8)
    return numpy.concatenate([head, numbers], axis=1)


def dequantized(rows: numpy.ndarray) -> numpy.ndarray:
    """The values of rows uint8 [n, dim + 4], float32 [n, dim]."""
    head = numpy.ascontiguousarray(rows[:, :HEAD]).view("<f2").astype(numpy.float32)
    with numpy.errstate(invalid="ignore"):
        values: numpy.ndarray = rows[:, HEAD:] * head[:, :1] + head[:, 1:]
    return values
