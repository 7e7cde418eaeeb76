"""Picking and placing by index, for tensors and Strings.

An index out of range is an error, a negative one too, which torch counts from the end.
"""

from __future__ import annotations

import math
from typing import Any, Sequence, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput


def gather(x: Any, indices: Tensor, axis: int = 0, batch_dims: int = 0) -> Any:
    """The slices of x at `indices` along an axis: x.shape[:axis] + indices.shape[batch_dims:] +
    x.shape[axis + 1:].

    Args:
        batch_dims: leading axes that x and indices share.
    """
    rank = len(x.shape)
    axis = axis + rank if axis < 0 else axis
    batch_dims = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if isinstance(x, Strings):
        places = torch.arange(x.numel()).reshape(x.shape)
        return x.take(gather(places, indices, axis, batch_dims))
    shape = [*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :]]
    if not batch_dims:
        return x.index_select(axis, indices.reshape(-1)).reshape(shape)
    before, after = math.prod(x.shape[batch_dims:axis]), math.prod(x.shape[axis + 1 :])
    rows, count = math.prod(x.shape[:batch_dims]), math.prod(indices.shape[batch_dims:])
    whole = x.reshape(rows, before, x.shape[axis], after)
    at = indices.reshape(rows, 1, count, 1).long()
    return whole.gather(2, at.expand(-1, whole.shape[1], -1, whole.shape[3])).reshape(shape)


def gather_nd(x: Any, indices: Tensor) -> Any:
    """The slices of x at `indices`, [..., r], each row of which indexes the first r axes."""
    depth = indices.shape[-1]
    places = places_of(indices, x.shape[:depth])
    shape = [*indices.shape[:-1], *x.shape[depth:]]
    if isinstance(x, Strings):
        inner = math.prod(x.shape[depth:])
        if inner == 1:
            return x.take(places.reshape(shape))
        return x.take((places.reshape(-1, 1) * inner + torch.arange(inner)).reshape(shape))
    rows = math.prod(x.shape[:depth])
    whole = x.reshape(rows, math.prod(x.shape[depth:]))
    return whole.index_select(0, places.reshape(-1)).reshape(shape)


def scatter_nd(indices: Tensor, updates: Tensor, shape: Any) -> Tensor:
    """A tensor of that shape, 0 where there is no update; updates of one index are added."""
    zeros = torch.zeros(integers(shape), dtype=updates.dtype, device=updates.device)
    return tensor_scatter_add(zeros, indices, updates)


def tensor_scatter_add(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """x with updates added at `indices`, as in `gather_nd`."""
    depth = indices.shape[-1]
    places = places_of(indices, x.shape[:depth]).reshape(-1)
    rest = math.prod(x.shape[depth:])
    whole = x.reshape(math.prod(x.shape[:depth]), rest)
    return whole.index_add(0, places, updates.reshape(-1, rest)).reshape(x.shape)


def tensor_scatter_update(x: Any, indices: Tensor, updates: Any) -> Any:
    """x with its values at `indices` replaced by updates; of two for one index the last counts."""
    depth = indices.shape[-1]
    places = places_of(indices, x.shape[:depth]).reshape(-1)
    rest, rows = math.prod(x.shape[depth:]), math.prod(x.shape[:depth])
    if isinstance(x, Strings):
        parts = [x.reshape([rows, rest]), updates.reshape([len(places), rest])]
        return Strings.concat(parts)[_last(places, rows)].reshape(x.shape)
    # The rows of x and then the updates, which `_last` numbers so.
    both = torch.cat([x.reshape(rows, rest), updates.reshape(len(places), rest)])
    return both.index_select(0, _last(places, rows)).reshape(x.shape)


def dynamic_partition(x: Any, partitions: Tensor, count: int) -> Sequence[Any]:
    """The rows of each partition 0 ... count - 1, in their order."""
    if ((partitions < 0) | (partitions >= count)).any():
        raise BadInput(f"a row is of a partition outside of 0 to {count - 1}")
    return tuple(x[partitions == number] for number in range(count))


def dynamic_stitch(indices: Sequence[Tensor], parts: Sequence[Any]) -> Any:
    """The inverse of a partition: row k of parts[i] becomes row indices[i][k]; the last wins."""
    together = torch.cat([index.reshape(-1).long() for index in indices])
    size = int(together.max()) + 1 if together.numel() else 0
    rank = indices[0].ndim
    rest = list(parts[0].shape[rank:])
    # `_last` leaves a position that no row has below `size`, here negative.
    places = _last(together, size) - size
    if (places < 0).any():
        raise BadInput("a row of the result comes from no part")
    if isinstance(parts[0], Strings):
        flat = [part.reshape([index.numel(), *rest]) for index, part in zip(indices, parts)]
        return Strings.concat(flat)[places]
    rows = torch.cat([part.reshape(index.numel(), *rest) for index, part in zip(indices, parts)])
    return rows.index_select(0, places)


def places_of(indices: Tensor, shape: Sequence[int]) -> Tensor:
    """Indices, [..., axes], as positions in the flattened tensor; its size for an index outside
    of it."""
    places = indices.new_zeros(indices.shape[:-1], dtype=torch.int64)
    for axis, size in enumerate(shape):
        place = indices[..., axis]
        places = place.long() if axis == 0 else places * size + place
    if indices.numel():
        lows, highs = torch.aminmax(indices.reshape(-1, len(shape)), dim=0)
        ends = zip(lows.tolist(), highs.tolist(), shape)
        if any(low < 0 or high >= size for low, high, size in ends):
            sizes = torch.tensor(list(shape), device=indices.device)
            outside = ((indices < 0) | (indices >= sizes)).any(-1)
            places = places.masked_fill(outside, math.prod(shape))
    return places


def _last(places: Tensor, size: int) -> Tensor:
    """For each position, `size` + the number of the last row for it, or the position itself."""
    rows = torch.arange(places.numel(), device=places.device) + size
    return torch.arange(size, device=places.device).scatter_reduce(0, places, rows, "amax")


def accidental_hits(classes: Tensor, sampled: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """The places at which a sampled class is one of the row's own, [rows, n]: rows int32, columns
    int64, and a weight that removes it from a softmax, the lowest float32. If a class was sampled
    several times, TensorFlow finds only the last one."""
    places = torch.arange(len(sampled), device=sampled.device)
    _, codes = sampled.unique(return_inverse=True)
    last = torch.zeros_like(places).scatter_reduce(0, codes, places, "amax")[codes]
    hits = (classes.unsqueeze(2) == sampled) & (last == places)
    rows, _, columns = hits.nonzero().unbind(1)
    lowest = torch.finfo(torch.float32).min
    return rows.int(), columns, torch.full((len(rows),), lowest)
