"""Rows of a column in the shape of their consumer."""

import functools
import operator
from typing import Iterator, Optional, Sequence, Tuple

Shape = Sequence[Optional[int]]  # rows first; None: any size


def fitted(shape: Optional[Shape], size: Tuple[int, ...]) -> Optional[Tuple[int, ...]]:
    """The size that rows of `size` have in an input of `shape`; None if they do not fit.

    Rows fit as they are, with one more dimension of size 1, or, if the input has three dimensions
    or more, as flat row-major lists. A `shape` of None fits all.
    """
    if shape is None:
        return size
    return next((one for one in _candidates(shape, size) if _fits(shape, one)), None)


def _candidates(shape: Shape, size: Tuple[int, ...]) -> Iterator[Tuple[int, ...]]:
    yield size
    yield (*size, 1)
    if len(shape) > 2 >= len(size):
        each = size[1] if len(size) == 2 else 1
        known = functools.reduce(operator.mul, (one for one in shape[1:] if one is not None), 1)
        if known and each % known == 0 and sum(one is None for one in shape[1:]) <= 1:
            row = tuple(each // known if one is None else one for one in shape[1:])
            if functools.reduce(operator.mul, row, 1) == each:
                yield (size[0], *row)


def _fits(shape: Shape, size: Tuple[int, ...]) -> bool:
    return len(shape) == len(size) and all(k in (None, n) for k, n in zip(shape, size))
