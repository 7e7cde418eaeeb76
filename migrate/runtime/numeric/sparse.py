"""Sparse tensors: filling, reshaping, slicing, joining. Values may be Strings.

A sparse tensor is three values: indices, int64 [n, rank]; values [n]; dense_shape, int64 [rank],
which may be a tuple of integers where it is an argument.
"""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import axes as listed
from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.gathering import places_of
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput

Sparse = Tuple[Tensor, Any, Tensor]


def sparse_to_dense(
    indices: Tensor, shape: Any, values: Any, default: Any, validate: bool = True
) -> Any:
    """A dense tensor with `values` at `indices`, and else `default`.

    Args:
        indices: [n, rank]; [n] or a number for a vector.
        validate: indices must ascend, none twice.
    """
    sizes = integers(shape)
    rows = indices.reshape(-1, len(sizes))
    places, total = places_of(rows, sizes), math.prod(sizes)
    if (places >= total).any():
        raise BadInput(f"a sparse tensor has an index outside of its shape {sizes}")
    if validate and (places[1:] <= places[:-1]).any():
        raise BadInput("the indices of a sparse tensor do not ascend, or one occurs twice")
    if not values.shape:
        values = values.broadcast_to((len(rows),))
    pool = joined([like(values, default), values])
    # Position 0 of the pool is the default; of a repeated index the last value counts.
    numbers = torch.arange(1, len(rows) + 1, device=places.device)
    found = torch.zeros(total, dtype=torch.int64, device=places.device)
    return taken(pool, found.scatter_reduce(0, places, numbers, "amax")).reshape(sizes)


def sparse_fill_empty_rows(
    indices: Tensor, values: Any, dense_shape: Any, default: Any
) -> Tuple[Tensor, Any, Tensor, Tensor]:
    """(indices, values) with `default` in column 0 of empty rows; which were empty; new
    positions."""
    count, row = int(dense_shape[0]), indices[:, 0]
    if len(row) and not 0 <= int(row.min()) <= int(row.max()) < count:
        raise BadInput(f"a sparse tensor has an index outside of its {count} rows")
    empty = torch.ones(count, dtype=torch.bool, device=indices.device)
    empty = empty.index_fill(0, row, False)
    missing = empty.nonzero()
    sorted_rows = bool((row[1:] >= row[:-1]).all())
    # Values in another order are sorted by row even if no row is empty.
    if sorted_rows and not len(missing):
        return indices, values, empty, torch.arange(len(row), device=indices.device)
    new = torch.cat([missing, missing.new_zeros(len(missing), indices.shape[1] - 1)], 1)
    both = torch.cat([indices, new])
    order = both[:, 0].argsort(stable=True)
    fillers = like(values, default).broadcast_to((len(missing),))
    filled = taken(joined([values, fillers]), order)
    # The inverse of the order: the new position of each old value.
    return both[order], filled, empty, order.argsort()[: len(indices)]


def sparse_reshape(indices: Tensor, shape: Any, new_shape: Any) -> Tuple[Tensor, Tensor]:
    """(indices, shape) in another shape, of which one size may be -1."""
    old, sizes = integers(shape), integers(new_shape)
    total = math.prod(old)
    known = math.prod([size for size in sizes if size != -1])
    if sizes.count(-1) == 1 and known and not total % known:
        sizes[sizes.index(-1)] = total // known
    if min(sizes, default=0) < 0 or math.prod(sizes) != total:
        raise BadInput(
            f"a sparse tensor of shape {old} does not fill the shape {integers(new_shape)}"
        )
    shape = torch.tensor(sizes, dtype=torch.int64)
    return indices if sizes == old else indices_of(places_of(indices, old), sizes), shape


def sparse_slice(indices: Tensor, values: Any, shape: Any, start: Any, size: Any) -> Sparse:
    """The part of `size` from `start` on, smaller if the tensor ends earlier."""
    shape, start, size = map(torch.as_tensor, (shape, start, size))
    last = torch.minimum(start + size, shape)
    kept = ((indices >= start) & (indices < last)).all(1).nonzero().reshape(-1)
    return indices[kept] - start, taken(values, kept), (last - start).clamp(min=0)


def sparse_concat(
    indices: Sequence[Tensor], values: Sequence[Any], shapes: Sequence[Tensor], axis: int
) -> Sparse:
    """Sparse tensors joined along an axis, in ascending order of their indices."""
    axis = axis % len(shapes[0])
    moved: List[Tensor] = []
    total = torch.zeros_like(shapes[0])
    here = torch.arange(len(total), device=total.device) == axis
    for part, shape in zip(indices, shapes):
        if ((shape != shapes[0]) & ~here).any():
            raise BadInput(
                f"sparse tensors of shapes {shapes[0].tolist()} and {shape.tolist()} cannot be "
                f"joined along axis {axis}"
            )
        moved.append(part + total)
        total = total + torch.where(here, shape, 0)
    shape = torch.where(here, total, shapes[0])
    return (*sparse_reorder(torch.cat(moved), joined(values), shape), shape)


def sparse_split(axis: Any, indices: Tensor, values: Any, shape: Any, count: int) -> Sequence:
    """The indices of `count` parts along an axis, then their values, then their shapes.

    The parts are of one size; the first ones have one more if `count` does not divide the axis.
    """
    shape = torch.as_tensor(shape)
    place = listed(axis, len(shape))[0]
    size, more = divmod(int(shape[place]), count)
    start, length = torch.zeros_like(shape), shape.clone()
    parts: List[Sparse] = []
    for number in range(count):
        length[place] = size + (number < more)
        parts.append(sparse_slice(indices, values, shape, start.clone(), length.clone()))
        start[place] += length[place]
    return [part[which] for which in range(3) for part in parts]


def sparse_reorder(indices: Tensor, values: Any, shape: Any) -> Tuple[Tensor, Any]:
    """(indices, values) in ascending order of the indices."""
    order = places_of(indices, integers(shape)).argsort(stable=True)
    return indices[order], taken(values, order)


def all_places(x: Tensor) -> Tensor:
    """The indices of all values of x, one row after the other: int64 [values, rank]."""
    return torch.cartesian_prod(*(torch.arange(size, device=x.device) for size in x.shape))


def indices_of(places: Tensor, sizes: Sequence[int]) -> Tensor:
    """The indices, [n, rank], of positions in the flattened tensor."""
    columns: List[Tensor] = []
    for size in reversed(sizes):
        columns.insert(0, places % max(size, 1))
        places = places // max(size, 1)
    return torch.stack(columns, 1) if columns else places.new_zeros(len(places), 0)


def like(values: Any, default: Any) -> Any:
    """A default, which may be a Python number, as a vector of one value."""
    if isinstance(values, Strings):
        return Strings.of(default).reshape((1,))
    return torch.as_tensor(default, dtype=values.dtype, device=values.device).reshape(1)


def joined(parts: Sequence[Any]) -> Any:
    return Strings.concat(parts) if isinstance(parts[0], Strings) else torch.cat(list(parts))


def taken(values: Any, places: Tensor) -> Any:
    return values.take(places) if isinstance(values, Strings) else values.index_select(0, places)
