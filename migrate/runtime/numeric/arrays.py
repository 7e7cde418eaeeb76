"""Shapes and layouts, with TensorFlow's checks; for tensors, most also for Strings."""

from __future__ import annotations

from typing import Any, List, Sequence, Union

import numpy
import torch
from torch import Tensor
from torch.nn import functional

from migrate.runtime.numeric.axes import axes as listed
from migrate.runtime.numeric.axes import beside, on_axis
from semisync.common.errors import BadInput


def squeeze(x: Tensor, axes: Sequence[int]) -> Tensor:
    """x without these axes, all of size 1; torch's squeeze leaves those of another size."""
    places = listed(axes, x.ndim)
    if any(x.shape[axis] != 1 for axis in places):
        raise BadInput(f"axes {list(axes)} of shape {list(x.shape)} are not all of size 1")
    return x.squeeze(places)


def split(x: Any, sizes: Union[int, Sequence[int]], axis: int) -> List[Any]:
    """Splits x along an axis into equal parts, or parts of these sizes, one of which may be -1."""
    axis = listed(axis, len(x.shape))[0]
    whole = x.shape[axis]
    if isinstance(sizes, int):
        if whole % sizes:
            raise BadInput(f"{sizes} equal parts of axis {axis} of shape {list(x.shape)}")
        sizes = [whole // sizes] * sizes
    parts = [whole - sum(sizes) - 1 if size == -1 else size for size in sizes]
    if sum(parts) != whole or min(parts, default=0) < 0:
        raise BadInput(f"parts of sizes {list(sizes)} of axis {axis} of shape {list(x.shape)}")
    ends = numpy.cumsum(parts).tolist()
    bounds = zip([0, *ends], ends)
    return [x[on_axis(axis, len(x.shape), slice(first, last))] for first, last in bounds]


def unbind(x: Any, axis: int) -> List[Any]:
    """The slices of x along an axis, without the axis."""
    if isinstance(x, Tensor):
        return list(x.unbind(axis))
    axis = listed(axis, len(x.shape))[0]
    return [x[on_axis(axis, len(x.shape), place)] for place in range(x.shape[axis])]


def arange(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    """start, start + step, ... below limit; of floats each is the one before it plus step."""
    count = int(range_sizes(start, limit, step)) if step else -1
    if count < 0:
        raise BadInput(f"a range from {start} to {limit} by steps of {step}")
    values = torch.cat([start.reshape(1), step.expand(max(count - 1, 0))])[:count]
    return added_up(values)


def added_up(values: Tensor) -> Tensor:
    """Running sums along the last axis, in the type of the values: torch adds float32 in double."""
    summed = values.detach().cpu().numpy()  # as TensorFlow's Range adds (sequence_ops.cc)
    return torch.from_numpy(summed.cumsum(-1, dtype=summed.dtype)).to(values.device)


def range_sizes(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    """How many values start, start + step, ... have below limit: -1 if they lead away from it, less
    if they have no end, or more than int64 counts."""
    if start.is_floating_point():
        counts = ((limit - start) / step).ceil()  # in their own type, as TensorFlow counts
        counts = torch.where(counts.float() < 2.0**63, counts, -2).long()
    else:
        counts = -((start.long() - limit.long()) // step)
    away = ((step > 0) & (limit < start)) | ((step < 0) & (limit > start))
    return torch.where(away, -1, counts)


def one_hot(
    x: Tensor,
    depth: int,
    on: Any = 1.0,
    off: Any = 0.0,
    dtype: torch.dtype = torch.float32,
    axis: int = -1,
) -> Tensor:
    """`on` at the index in x, on a new axis of size `depth`, and `off` elsewhere; only `off` for an
    index that is out of range.

    Args:
        dtype: of `on` and `off`, if they are numbers.
    """
    axis = axis + x.ndim + 1 if axis < 0 else axis
    places = torch.arange(depth, device=x.device).reshape(beside(depth, x.ndim + 1, axis))
    if isinstance(on, Tensor):
        return torch.where(x.unsqueeze(axis) == places, on, off)
    if (on, off) in ((1, 0), (True, False)):
        return (x.unsqueeze(axis) == places).to(dtype)
    one, other = (torch.tensor(value, dtype=dtype, device=x.device) for value in (on, off))
    return torch.where(x.unsqueeze(axis) == places, one, other)


def band_part(x: Tensor, below: int, above: int) -> Tensor:
    """Matrices with 0 outside a band of `below` lower and `above` upper diagonals; negative:
    all."""
    x = x.tril(above) if above >= 0 else x
    return x.triu(-below) if below >= 0 else x


def pad(x: Tensor, paddings: Any, value: Any = 0) -> Tensor:
    """x with `value` around it, by paddings [rank, 2] before and after each axis."""
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    # torch takes a negative width as a crop.
    if any(width < 0 for pair in pairs for width in pair):
        raise BadInput(f"a padding by {pairs}; widths are at least 0")
    widths = [width for pair in reversed(pairs) for width in pair]
    if not isinstance(value, Tensor):
        return functional.pad(x, widths, value=value) if widths else x
    inside = functional.pad(torch.ones_like(x, dtype=torch.bool), widths)
    return torch.where(inside, functional.pad(x, widths), value)


def mirror_pad(x: Tensor, paddings: Any, mode: str) -> Tensor:
    """x with its mirror image around it, "symmetric" with the edge itself, "reflect" without."""
    skip = 1 if mode == "reflect" else 0
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    for axis, (before, after) in enumerate(pairs):
        size = x.shape[axis]
        if not (0 <= before <= size - skip and 0 <= after <= size - skip):
            raise BadInput(f"a mirror image of {before} and {after} of {size} values")
        if before or after:
            head = range(before - 1 + skip, skip - 1, -1)
            tail = range(size - 1 - skip, size - 1 - skip - after, -1)
            places = [*head, *range(size), *tail]
            x = x.index_select(axis, torch.tensor(places, device=x.device))
    return x


def reverse_sequence(x: Tensor, lengths: Tensor, axis: int, batch_axis: int = 0) -> Tensor:
    """x with the first lengths[i], of [batch], values of its row i in reverse order."""
    axis, batch_axis = listed([axis, batch_axis], x.ndim)
    size = x.shape[axis]
    if ((lengths < 0) | (lengths > size)).any():
        raise BadInput(f"a sequence to be reversed is longer than the {size} values that there are")
    places = torch.arange(size, device=x.device).reshape(beside(size, x.ndim, axis))
    ends = lengths.long().reshape(beside(len(lengths), x.ndim, batch_axis))
    mirrored = torch.where(places < ends, ends - 1 - places, places)
    return x.gather(axis, mirrored.expand(x.shape))
