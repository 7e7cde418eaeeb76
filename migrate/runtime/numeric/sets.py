"""Sets of numbers, one per row along the last axis of a tensor; and unique values in the order of
their first occurrence, where torch.unique sorts them.

Source: tensorflow/core/kernels/set_kernels.cc
"""

from __future__ import annotations

import math
from typing import Any, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.gathering import places_of
from migrate.runtime.numeric.sparse import Sparse, indices_of
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput

_CHOSEN = {
    "a-b": lambda first, second: first & ~second,
    "b-a": lambda first, second: second & ~first,
    "intersection": lambda first, second: first & second,
    "union": lambda first, second: first | second,
}


def unique(x: Any, counts: bool = False, dtype: str = "int32") -> Tuple[Any, ...]:
    """(values, indices into them[, counts]) of a vector of numbers or Strings."""
    first, inverse = first_places(x)
    number = getattr(torch, dtype)
    found = (x[first], inverse.to(number))
    if not counts:
        return found
    return (*found, torch.bincount(inverse, minlength=len(first)).to(number))


def list_diff(x: Any, y: Any, dtype: str = "int32") -> Tuple[Any, Tensor]:
    """(values of x that are not in y, their positions in x)."""
    if isinstance(x, Strings):
        inside = torch.from_numpy(numpy.isin(x.numpy(), y.numpy()))
    else:
        inside = torch.isin(x, y)
    return x[~inside], (~inside).nonzero().reshape(-1).to(getattr(torch, dtype))


def first_places(x: Any) -> Tuple[Tensor, Tensor]:
    """The positions of first occurrences, ascending, and each value's number among these."""
    if isinstance(x, Strings):
        codes = torch.tensor(x.arrow().dictionary_encode().indices.to_numpy(), dtype=torch.int64)
        count = int(codes.max()) + 1 if len(codes) else 0
    else:
        values, codes = torch.unique(x, return_inverse=True)
        count = len(values)
    places = torch.arange(len(codes), device=codes.device)
    first = torch.full((count,), len(codes), device=codes.device)
    first, order = first.scatter_reduce(0, codes, places, "amin").sort()
    # From numbers in the order of values to numbers in the order of occurrence.
    return first, order.argsort()[codes]


def dense_sets(first: Tensor, second: Tensor, operation: str) -> Sparse:
    """(indices, values, shape) of `operation` on each pair of rows' sets, in ascending order."""
    return _operate(_of_dense(first), _of_dense(second), first, operation)


def dense_and_sparse_sets(
    first: Tensor, indices: Tensor, values: Tensor, shape: Any, operation: str
) -> Sparse:
    """As `dense_sets`, with the second sets in a sparse tensor."""
    return _operate(_of_dense(first), _of_sparse(indices, values, shape), values, operation)


def sparse_sets(
    indices: Tensor,
    values: Tensor,
    shape: Any,
    indices2: Tensor,
    values2: Tensor,
    shape2: Any,
    operation: str,
) -> Sparse:
    """As `dense_sets`, with both in sparse tensors."""
    pairs = _of_sparse(indices, values, shape), _of_sparse(indices2, values2, shape2)
    return _operate(*pairs, values, operation)


_Rows = Tuple[Tensor, Sequence[int]]


def _of_dense(x: Tensor) -> _Rows:
    """(row, value) of each value, and the number of rows on each axis."""
    rows = torch.arange(math.prod(x.shape[:-1])).repeat_interleave(x.shape[-1])
    return torch.stack([rows, x.reshape(-1).long()], 1), list(x.shape[:-1])


def _of_sparse(indices: Tensor, values: Tensor, shape: Any) -> _Rows:
    sizes = integers(shape)[:-1]
    rows = places_of(indices[:, :-1], sizes)
    if (rows >= math.prod(sizes)).any():
        raise BadInput(f"a set has an index outside of its rows, {sizes}")
    return torch.stack([rows, values.long()], 1), sizes


def _operate(first: _Rows, second: _Rows, like: Tensor, operation: str) -> Sparse:
    sizes = first[1]
    if list(sizes) != list(second[1]):
        raise BadInput(f"sets of {sizes} rows and of {second[1]} differ in shape")
    both = torch.cat([first[0], second[0]])
    pairs, which = torch.unique(both, dim=0, return_inverse=True)
    none = torch.zeros(len(pairs), dtype=torch.bool)
    of_first = none.index_fill(0, which[: len(first[0])], True)
    of_second = none.index_fill(0, which[len(first[0]) :], True)
    rows, values = pairs[_CHOSEN[operation](of_first, of_second)].unbind(1)
    counts = torch.bincount(rows, minlength=math.prod(sizes))
    places = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
    indices = torch.cat([indices_of(rows, sizes), places.unsqueeze(1)], 1)
    longest = int(counts.max()) if len(counts) else 0
    return indices, values.to(like.dtype), torch.tensor([*sizes, longest])
