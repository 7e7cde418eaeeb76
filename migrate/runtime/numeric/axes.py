"""Axes and sizes as TensorFlow's ops take them: numbers, tuples, or tensors."""

from __future__ import annotations

from typing import Any, List

from torch import Tensor


def integers(values: Any) -> List[int]:
    """A number, a tuple or list of numbers, or a tensor of either, as a list."""
    if isinstance(values, Tensor):
        values = values.tolist()
    return [values] if isinstance(values, int) else list(values)


def axes(values: Any, rank: int) -> List[int]:
    """The axes of a tensor of that rank, counted from the front, each once."""
    found = integers(values)
    return list(dict.fromkeys(axis + rank if axis < 0 else axis for axis in found))


def on_axis(axis: int, rank: int, index: Any) -> Any:
    """An index that is `index` on one axis, and all of any other."""
    key: List[Any] = [slice(None)] * rank
    key[axis] = index
    return tuple(key)


def beside(size: int, rank: int, axis: int = 0) -> List[int]:
    """A shape of that rank whose axes have the size 1, except for one."""
    shape = [1] * rank
    shape[axis] = size
    return shape
