"""The ops of TensorArrays and TensorLists, on Python lists of tensors or Strings.

A function returns a new list and does not change its argument. None is an element that has not been
written.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.arrays import split, unbind
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput

Items = List[Any]


def read_list(items: Items, index: int) -> Any:
    """The value at an index."""
    if not 0 <= index < len(items):
        raise BadInput(f"value {index} of a list of {len(items)} was asked for")
    return _written(items, index)


def write_list(items: Items, index: int, value: Any) -> Items:
    """`items` with a value at an index; longer if the index is beyond the end."""
    if index < 0:
        raise BadInput(f"a value was to be written to place {index} of a list")
    items = resize_list(items, max(len(items), index + 1))
    items[index] = value
    return items


def resize_list(items: Items, count: int) -> Items:
    """`items` cut off or filled up to `count` elements."""
    return [*items[:count], *[None] * (count - len(items))]


def gather_list(
    items: Items,
    indices: Sequence[int],
    shape: Optional[Sequence[int]] = None,
    dtype: Optional[torch.dtype] = None,
) -> Any:
    """The values at some indices, stacked; shape and dtype are for an empty result."""
    return stack_list([read_list(items, index) for index in indices], shape, dtype)


def stack_list(
    items: Items, shape: Optional[Sequence[int]] = None, dtype: Optional[torch.dtype] = None
) -> Any:
    """All values, stacked; shape and dtype are for an empty list."""
    if not items:
        if shape is None:
            raise BadInput("an empty list of tensors of unknown shape cannot be stacked")
        return torch.empty((0, *shape), dtype=dtype)
    values = [_written(items, index) for index in range(len(items))]
    return Strings.stack(values) if isinstance(values[0], Strings) else torch.stack(values)


def scatter_list(items: Items, indices: Sequence[int], values: Any) -> Items:
    """`items` with the rows of `values` at some indices."""
    items = list(items)
    for index, value in zip(indices, unbind(values, 0)):
        items = write_list(items, index, value)
    return items


def concat_list(items: Items) -> Tuple[Any, Tensor]:
    """(the rows of all values, the number of rows of each), int64."""
    if not items:
        raise BadInput("an empty list of tensors cannot be joined")
    values = [_written(items, index) for index in range(len(items))]
    lengths = torch.tensor([value.shape[0] for value in values])
    strings = isinstance(values[0], Strings)
    return (Strings.concat(values) if strings else torch.cat(values)), lengths


def split_list(values: Any, lengths: Sequence[int]) -> Items:
    """The rows of `values`, lengths[i] of them in element i."""
    return list(split(values, lengths, 0))


def _written(items: Items, index: int) -> Any:
    """The value at an index; zeros like the first written value, if none was written there."""
    if items[index] is not None:
        return items[index]
    like = next((item for item in items if item is not None), None)
    if not isinstance(like, Tensor):
        raise BadInput(f"place {index} of a list of tensors was read before it was written")
    return torch.zeros_like(like)
