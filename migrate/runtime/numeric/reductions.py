"""Reductions: data types do not change, no axes reduce nothing, and empty input has an extreme."""

from __future__ import annotations

from typing import Any, Callable, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import axes as listed
from semisync.common.errors import BadInput


def reduce_sum(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The sum along axes, in the type of x."""
    places = listed(axes, x.ndim)
    # torch would sum integers as int64, and without axes over all of them.
    return x.sum(places, keepdim=keepdim, dtype=x.dtype) if places else x


def reduce_mean(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The mean along axes."""
    places = listed(axes, x.ndim)
    return x.mean(places, keepdim=keepdim) if places else x


def mean_of_integers(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The mean of integers along axes, without its fraction."""
    count = torch.ones_like(x)
    sums = (reduce_sum(one, axes, keepdim) for one in (x, count))
    return torch.div(*sums, rounding_mode="trunc")


def reduce_prod(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The product along axes, in the type of x."""
    for axis in sorted(listed(axes, x.ndim), reverse=True):
        x = x.prod(axis, keepdim=keepdim, dtype=x.dtype)
    return x


def reduce_all(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """Whether all along axes are true."""
    places = listed(axes, x.ndim)
    return x.all(places, keepdim=keepdim) if places else x


def reduce_any(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """Whether any along axes is true."""
    places = listed(axes, x.ndim)
    return x.any(places, keepdim=keepdim) if places else x


def reduce_amax(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The largest along axes; for empty input, the lowest value of the type."""
    return _extreme(torch.amax, x, axes, keepdim, lowest(x.dtype))


def reduce_amin(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The smallest along axes; for empty input, the highest value of the type."""
    return _extreme(torch.amin, x, axes, keepdim, highest(x.dtype))


def euclidean_norm(x: Tensor, axes: Any, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares along axes."""
    return reduce_sum(x.square(), axes, keepdim).sqrt().to(x.dtype)


def lowest(dtype: torch.dtype) -> Any:
    """The lowest value of a type."""
    return -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def highest(dtype: torch.dtype) -> Any:
    """The highest value of a type."""
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def cumsum(x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The running sum along an axis, in the type of x.

    Args:
        exclusive: of the values before each one.
        reverse: from the end.
    """
    return _running(torch.cumsum, 0, x, axis, exclusive, reverse)


def cumprod(x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The running product, as `cumsum`."""
    return _running(torch.cumprod, 1, x, axis, exclusive, reverse)


def top_k(x: Tensor, k: int, dtype: str = "int32") -> Tuple[Tensor, Tensor]:
    """The k largest along the last axis in descending order, and their indices. Of equal values the
    first one comes first, which torch.topk does not promise."""
    if x.shape[-1] < k:
        raise BadInput(f"the {k} largest of {x.shape[-1]} values were asked for")
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[..., :k], indices[..., :k].to(getattr(torch, dtype))


def in_top_k(predictions: Tensor, targets: Tensor, k: int) -> Tensor:
    """Whether fewer than k classes have a larger prediction than the target.

    False where a prediction is not finite, or the target no class.

    Args:
        predictions: [batch, classes].
        targets: [batch].
    """
    classes = predictions.shape[1]
    known = (targets >= 0) & (targets < classes) & predictions.isfinite().all(1)
    chosen = predictions.gather(1, targets.long().clamp(0, classes - 1).unsqueeze(1))
    return known & ((predictions > chosen).sum(1) < k)


def bincount(x: Tensor, size: int, weights: Tensor) -> Tensor:
    """How often, or with which total weight, each of 0 ... size - 1 occurs in x."""
    if (x < 0).any():
        raise BadInput("a negative number was to be counted")
    values = weights.reshape(-1) if weights.numel() else torch.ones(x.numel(), dtype=weights.dtype)
    flat = x.reshape(-1).long()
    # The last place takes the numbers of `size` or more, which are left out.
    counts = torch.zeros(size + 1, dtype=weights.dtype, device=x.device)
    return counts.index_add(0, flat.clamp(max=size), values.to(x.device))[:size]


def dense_bincount(x: Tensor, size: int, weights: Tensor, binary: bool = False) -> Tensor:
    """As `bincount`, of a vector or of each row of a matrix.

    Args:
        binary: 1 if a number occurs at all, else 0.
    """
    rows = x.reshape(-1, x.shape[-1])
    weights = weights[:0] if binary else weights
    each = weights.reshape(rows.shape) if weights.numel() else [weights] * len(rows)
    counts = [bincount(row, size, weight) for row, weight in zip(rows, each)]
    whole = torch.stack(counts) if counts else weights.new_zeros(0, size)
    return (whole.clamp(max=1) if binary else whole).reshape(*x.shape[:-1], size)


def _extreme(
    reduce: Callable[..., Tensor], x: Tensor, axes: Any, keepdim: bool, empty: Any
) -> Tensor:
    places = listed(axes, x.ndim)
    if not places:
        return x
    if any(x.shape[axis] == 0 for axis in places):
        # The shape is the sum's, which torch has of no values too; amax refuses them.
        return x.sum(places, keepdim=keepdim, dtype=x.dtype) * 0 + empty
    return reduce(x, places, keepdim=keepdim)


def _running(
    run: Callable[..., Tensor], first: int, x: Tensor, axis: int, exclusive: bool, reverse: bool
) -> Tensor:
    x = x.flip(axis) if reverse else x
    if exclusive and x.shape[axis]:
        shape = [1 if k == axis % x.ndim else size for k, size in enumerate(x.shape)]
        x = torch.cat([x.new_full(shape, first), x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    result = run(x, axis, dtype=x.dtype)
    return result.flip(axis) if reverse else result
