"""Slices that torch's indexing lacks: backward steps, bounds in tensors, checked bounds."""

from __future__ import annotations

from typing import Any, List, Sequence

import torch

from migrate.runtime.numeric.axes import integers
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput


def strided_slice(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    """TensorFlow's StridedSlice with computed bounds; bit k of a mask is for the k-th of them."""
    key: List[Any] = []
    bounds = zip(integers(begin), integers(end), integers(strides))
    for axis, (first, last, step) in enumerate(bounds):
        bit = 1 << axis
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(first)
        else:
            start, stop = (None if begin_mask & bit else first), (None if end_mask & bit else last)
            key.append(slice(start, stop, step))
    return sliced(x, key)


def sliced(x: Any, key: Sequence[Any]) -> Any:
    """x[key], where a slice may go backwards."""
    if isinstance(x, Strings):
        return x[tuple(key)]
    if not any(one is ... for one in key):
        key = [*key, ...]
    given = sum(one is not None and one is not ... for one in key)
    axis, plain = 0, []
    for one in key:
        if one is ...:
            axis += x.ndim - given
        elif one is not None:
            # torch refuses a negative step.
            if isinstance(one, slice) and (one.step or 1) < 0:
                places = range(*one.indices(x.shape[axis]))
                x = x.index_select(axis, torch.tensor(places, dtype=torch.int64, device=x.device))
                one = slice(None)
            axis += 1
        plain.append(one)
    return x[tuple(plain)]


def checked_slice(x: Any, begin: Any, size: Any) -> Any:
    """`size` values from `begin` on, along each axis, or -1 for the rest.

    Raises:
        BadInput: there are fewer.
    """
    key = []
    for axis, (first, count) in enumerate(zip(integers(begin), integers(size))):
        last = x.shape[axis] if count == -1 else first + count
        if not 0 <= first <= last <= x.shape[axis]:
            raise BadInput(
                f"{count} values from {first} on were asked for, along axis {axis} of a tensor of "
                f"shape {list(x.shape)}"
            )
        key.append(slice(first, last))
    return x[tuple(key)] if key else x
