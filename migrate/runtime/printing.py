"""Numbers as text, as TensorFlow's AsString prints them.

The format is printf's: %<fill><width>.<precision> and d, f, e (scientific) or g (shortest). Bools
are "true" and "false" whatever the width. Compiled loops print integers, and floating-point numbers
as %f; Python prints %e, %g, more than 18 digits after the point, and columns with a number beyond
2 ** 63, about 3 million numbers per second.
Source: tensorflow/core/kernels/as_string_op.cc
"""

from __future__ import annotations

import math

import numpy
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import decimal, fixed_point
from semisync.common.errors import UsageError

_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_FLAGS = ("", "0", "-", "+", " ", "#")


def as_string(
    values: torch.Tensor,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Strings:
    """TensorFlow's AsString of integers, floating-point numbers or bools.

    Args:
        precision: digits after the point, -1: 6.
        width: the least number of bytes, filled by `fill`: "" or " " on the left, "0" after the
            sign, "-" with blanks on the right, "+" on the left with a sign.
    """
    if fill not in _FLAGS:
        raise UsageError(f"fill is {fill!r}; one of {', '.join(map(repr, _FLAGS))} was expected")
    if scientific and shortest:
        raise UsageError("a number is printed as scientific or as shortest, not both")
    floating = values.dtype in _FLOATS
    if not floating and (scientific or shortest or precision >= 0):
        raise UsageError(f"scientific, shortest and precision are not for {values.dtype}")
    flag = ord(fill) if fill else 0
    shape, flat = values.shape, values.reshape(-1).cpu()
    if values.dtype == torch.bool:
        return Strings.of([b"false", b"true"]).take(flat.to(torch.int64)).reshape(shape)
    if values.dtype in _INTEGERS:
        integers = flat.to(torch.int64).contiguous().numpy()
        data, offsets = decimal.integers(integers, max(width, 0), flag)
        return Strings(data, offsets, shape)
    if not floating:
        raise UsageError(f"integers, floats or bools were expected, not {values.dtype}")
    floats = flat.to(torch.float64).contiguous().numpy()
    if values.dtype == torch.float32:  # TensorFlow's threads flush subnormal numbers to 0
        floats = floats * (abs(floats) >= torch.finfo(torch.float32).tiny)
    digits = 6 if precision < 0 else precision
    fixed = not scientific and not shortest and fill != "#" and digits <= fixed_point.MOST_DIGITS
    if fixed and not (numpy.isfinite(floats) & (abs(floats) >= fixed_point.LARGEST)).any():
        data, offsets = fixed_point.fixed(floats, digits, max(width, 0), flag)
        return Strings(data, offsets, shape)
    size = str(width) if width >= 0 else ""
    form = f"%{chr(flag) if flag else ''}{size}.{digits}" + "feg"[scientific + 2 * shortest]
    printed = [_printed(value, form, flag, width) for value in floats.tolist()]
    return Strings.of(printed).reshape(shape)


def _printed(value: float, form: str, flag: int, width: int) -> str:
    """printf(form, value), whose NaNs have a sign and are not filled with zeros."""
    if math.isfinite(value):
        return form % value
    sign = "-" if math.copysign(1.0, value) < 0 else {ord("+"): "+", ord(" "): " "}.get(flag, "")
    word = sign + ("nan" if math.isnan(value) else "inf")
    return word.ljust(width) if flag == ord("-") else word.rjust(width)
