"""Text as numbers, as TensorFlow 1.15's StringToNumber reads it.

A compiled loop reads most numbers. Python reads those of more than 15 digits or a large exponent,
one at a time. All are rounded once, to the requested type. TensorFlow flushes float32 numbers below
the smallest normal one to 0.

As in TensorFlow 2.x, but not 1.15, "infinity" is read, and floating-point numbers of 32 bytes or
more. Hexadecimal numbers, which both read, are refused.
"""

from __future__ import annotations

import fractions

import numpy
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import number_text
from semisync.common.errors import BadInput, UsageError

_MOST = {torch.int32: 2**31 - 1, torch.int64: 2**63 - 1}


def string_to_number(
    strings: Strings, dtype: torch.dtype = torch.float32, where: str = "StringToNumber"
) -> torch.Tensor:
    """TensorFlow's StringToNumber to int32, int64, float32 or float64.

    Args:
        where: the source of the text, for errors.

    Raises:
        BadInput: a string is not a number of that type; the message has the first.
    """
    if dtype in _MOST:
        numbers, valid = number_text.integers(strings.data, strings.offsets, _MOST[dtype])
    elif dtype in (torch.float32, torch.float64):
        numbers, states = number_text.floats(strings.data, strings.offsets)
        valid = states != number_text.INVALID
    else:
        raise UsageError(f"numbers are read as int32, int64, float32 or float64, not {dtype}")
    if not valid.all():
        first = int(numpy.flatnonzero(~valid)[0])
        text = strings.arrow()[first].as_py()
        raise BadInput(f"{where}: {text!r}, at position {first}, is not a number of {dtype}")
    if dtype not in _MOST:
        _read_hard(strings, numpy.flatnonzero(states == number_text.HARD), numbers)
    if dtype == torch.float32:
        numbers = _single(strings, numbers)
    return torch.from_numpy(numbers).to(dtype).reshape(strings.shape)


def _read_hard(strings: Strings, hard: numpy.ndarray, numbers: numpy.ndarray) -> None:
    """Puts the numbers at the positions `hard` into `numbers`, correctly rounded."""
    if len(hard):
        texts = strings.take(torch.from_numpy(hard)).arrow().to_pylist()
        numbers[hard] = [float(text) for text in texts]


def _single(strings: Strings, numbers: numpy.ndarray) -> numpy.ndarray:
    """The numbers rounded to float32 from the text, not twice.

    A float64 halfway between two float32 may itself be rounded from a number slightly to one side,
    which decides the float32.
    """
    # The 29 bits of a float64's fraction that a float32 lacks, at exactly one half.
    middle = numbers.view(numpy.uint64) & numpy.uint64(0x1FFFFFFF) == 0x10000000
    for place in numpy.flatnonzero(middle & numpy.isfinite(numbers)).tolist():
        text = strings.arrow()[place].as_py().decode("ascii").strip()
        exact, rounded = fractions.Fraction(text), fractions.Fraction(float(numbers[place]))
        if exact != rounded:
            side = numpy.inf if exact > rounded else -numpy.inf
            numbers[place] = numpy.nextafter(numbers[place], side)
    with numpy.errstate(over="ignore"):
        single = numbers.astype(numpy.float32)
    tiny = abs(single) < numpy.finfo(numpy.float32).tiny
    single[tiny] = numpy.copysign(numpy.float32(0), single[tiny])
    return single
