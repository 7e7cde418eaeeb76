"""Compiling a function once per machine.

1. The first call compiles; the result is kept beside the source, or in the user's cache, and where
   neither can be written each process compiles again.
2. numba notices that a kept function is out of date by its own file alone. These functions call
   one another across files, so the name under which each is kept has a digest of all of them.
3. Arithmetic on uint64 must not meet a signed integer, which would make it float64: `u` wraps a
   literal.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
from typing import Any, Callable, Optional

import numpy

from semisync.common.distribution import install_command
from semisync.common.errors import MissingExtra

try:
    import numba
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingExtra(
        f"strings need numba ({error}): {install_command('torch')}, or pip install numba"
    ) from error

u = numpy.uint64


def _digest() -> str:
    sources = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


_DIGEST = _digest()


def compiled(function: Optional[Callable] = None, **options: Any) -> Any:
    """`function`, compiled at its first call.

    Args:
        options: of numba.njit, with which this is a decorator.
    """
    if function is None:
        return functools.partial(compiled, **options)
    function.__qualname__ += "_" + _DIGEST
    try:
        return numba.njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(function, nogil=True, **options)


def inlined(function: Callable) -> Any:
    """`function`, compiled into its callers."""
    return numba.njit(function, inline="always")


def _address(typing_context, array):
    """The address of an array's first element, int64.

    Functions that take an address rather than an array are called without counting references,
    which would cost more than hashing a short string. The caller keeps the array.
    """

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


address: Any = intrinsic(_address)


def _load(bits: int) -> Any:
    """A load of `bits` at an address, wherever it is aligned, as a uint64."""

    def load(typing_context, place):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            loaded = builder.load(pointer, align=1)
            return loaded if bits == 64 else builder.zext(loaded, ir.IntType(64))

        return types.uint64(types.int64), generate

    return intrinsic(load)


load8 = _load(8)
load32 = _load(32)
load64 = _load(64)


def _at(kind: Any) -> Any:
    """The array of a shape at an address; the caller keeps that memory alive."""

    def cast(typing_context, place):
        pointer = types.CPointer(kind)

        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(types.int64), generate

    pointer_at: Any = intrinsic(cast)

    def at(place, shape):
        return numba.carray(pointer_at(place), shape)

    return inlined(at)


int64_at = _at(types.int64)
float32_at = _at(types.float32)


def _trailing(typing_context, number):
    """The number of trailing zero bits; 64 for 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing)


@inlined
def bytes_that_are(eight, pattern):
    """The highest bit of each byte of eight that is the pattern's.

    Source: https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord
    """
    differ = eight ^ pattern
    low = u(0x7F7F7F7F7F7F7F7F)
    return ~(((differ & low) + low) | differ | low)
