"""Arithmetic on sparse tensors: products, sums, reductions to dense ones."""

from __future__ import annotations

import math
from typing import Any, List, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import axes as listed
from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.gathering import gather_nd, places_of
from migrate.runtime.numeric.segments import unsorted_segment_max, unsorted_segment_sum
from migrate.runtime.numeric.sparse import indices_of


def sparse_matmul(
    indices: Tensor,
    values: Tensor,
    shape: Any,
    y: Tensor,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Tensor:
    """The product of a sparse matrix and a dense one; adjoint: that one is transposed."""
    rows, columns = indices.unbind(1)
    count = int(shape[0])
    if adjoint_a:
        rows, columns, count = columns, rows, int(shape[1])
    y = y.mT if adjoint_b else y
    terms = values.unsqueeze(1) * y.index_select(0, columns)
    return torch.zeros(count, y.shape[1], dtype=y.dtype, device=y.device).index_add(0, rows, terms)


def sparse_reduce_sum(
    indices: Tensor, values: Tensor, shape: Any, axes: Any, keepdim: bool = False
) -> Tensor:
    """The sum along axes, dense."""
    groups, sizes, result = _groups(indices, shape, axes, keepdim)
    return unsorted_segment_sum(values, groups, math.prod(sizes)).reshape(result)


def sparse_reduce_max(
    indices: Tensor, values: Tensor, shape: Any, axes: Any, keepdim: bool = False
) -> Tensor:
    """The largest of the present values along axes, dense; 0 where there is none."""
    groups, sizes, result = _groups(indices, shape, axes, keepdim)
    found = unsorted_segment_max(values, groups, math.prod(sizes))
    met = torch.zeros_like(found, dtype=torch.bool).index_fill(0, groups, True)
    return torch.where(met, found, 0).reshape(result)


def sparse_softmax(indices: Tensor, values: Tensor, shape: Any) -> Tensor:
    """The softmax of the present values along the last axis; values of the result."""
    outer = integers(shape)[:-1]
    groups, count = places_of(indices[:, :-1], outer), math.prod(outer)
    # Only for the range of exp: it cancels, in the gradient too.
    largest = unsorted_segment_max(values.detach(), groups, count)
    powers = torch.exp(values - largest[groups])
    return powers / unsorted_segment_sum(powers, groups, count)[groups]


def sparse_add(
    indices: Tensor,
    values: Tensor,
    shape: Any,
    other_indices: Tensor,
    other_values: Tensor,
    other_shape: Any,
    least: Any,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Adds two sparse tensors and drops sums below `least`; a value of only one of them stays."""
    sizes = integers(shape)
    places = places_of(torch.cat([indices, other_indices]), sizes)
    met, inverse, counts = torch.unique(places, return_inverse=True, return_counts=True)
    sums = unsorted_segment_sum(torch.cat([values, other_values]), inverse, len(met))
    kept = ((sums.abs() >= least) | (counts == 1)).nonzero().reshape(-1)
    return indices_of(met[kept], sizes), sums[kept], torch.as_tensor(shape)


def dense_at(indices: Tensor, shape: Any, dense: Tensor) -> Tensor:
    """The values of a dense tensor, broadcast to `shape`, at the indices of a sparse one."""
    return gather_nd(dense.broadcast_to(integers(shape)), indices)


def _groups(
    indices: Tensor, shape: Any, axes: Any, keepdim: bool
) -> Tuple[Tensor, List[int], List[int]]:
    """The group of each value, the sizes of the remaining axes, and the result's shape."""
    sizes = integers(shape)
    gone = listed(axes, len(sizes))
    stay = [axis for axis in range(len(sizes)) if axis not in gone]
    kept = [sizes[axis] for axis in stay]
    places = places_of(indices[:, stay], kept)
    result = [1 if axis in gone else size for axis, size in enumerate(sizes)]
    return places, kept, result if keepdim else kept
