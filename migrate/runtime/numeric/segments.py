"""Reductions of the rows that share a segment's number.

Segment ops take ascending numbers, the last of which determines the number of rows. Unsorted ones
take any numbers of 0 ... count - 1, leave negative ones out, and may have a number per value
instead of per row.
"""

from __future__ import annotations

import math
from typing import Any, Optional, cast

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import beside
from migrate.runtime.tables.rows import rows


def segment_sum(x: Tensor, segments: Tensor, count: Optional[int] = None) -> Tensor:
    """The sums of the rows of each segment, of `count` or up to the last."""
    return _zeros(x, _count(segments, count)).index_add(0, segments, x)


def segment_mean(x: Tensor, segments: Tensor, count: Optional[int] = None) -> Tensor:
    """The mean of each segment's rows, of integers without its fraction; 0 without rows."""
    mode = None if x.is_floating_point() else "trunc"
    return torch.div(segment_sum(x, segments, count), _rows(x, segments, count), rounding_mode=mode)


def segment_sqrt_n(x: Tensor, segments: Tensor, count: Optional[int] = None) -> Tensor:
    """The sum of each segment's rows over the square root of their number."""
    return segment_sum(x, segments, count) / _rows(x, segments, count).sqrt()


def segment_prod(x: Tensor, segments: Tensor) -> Tensor:
    """The product of each segment's rows; 1 without rows."""
    return _reduced(x, segments, _count(segments), "prod", 1)


def segment_max(x: Tensor, segments: Tensor) -> Tensor:
    """The largest of each segment's rows; 0 without rows."""
    return _or_zero(unsorted_segment_max(x, segments, _count(segments)), segments)


def segment_min(x: Tensor, segments: Tensor) -> Tensor:
    """The smallest of each segment's rows; 0 without rows."""
    return _or_zero(unsorted_segment_min(x, segments, _count(segments)), segments)


def sparse_segment_sum(
    x: Tensor, indices: Tensor, segments: Tensor, count: Optional[int] = None
) -> Tensor:
    """The sum of each segment's rows, which `indices` pick."""
    return segment_sum(rows(x, indices), segments, count)


def sparse_segment_mean(
    x: Tensor, indices: Tensor, segments: Tensor, count: Optional[int] = None
) -> Tensor:
    """The mean of each segment's rows, which `indices` pick; 0 without rows."""
    return segment_mean(rows(x, indices), segments, count)


def sparse_segment_sqrt_n(
    x: Tensor, indices: Tensor, segments: Tensor, count: Optional[int] = None
) -> Tensor:
    """As `sparse_segment_sum`, over the square root of the number of rows."""
    return segment_sqrt_n(rows(x, indices), segments, count)


def unsorted_segment_sum(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The sum of each of `count` segments."""
    flat, places = _flat(x, segments, count)
    return (
        _zeros(flat, count + 1)
        .index_add(0, places, flat)[:count]
        .reshape(count, *x.shape[segments.ndim :])
    )


def unsorted_segment_prod(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The product of each of `count` segments; 1 for an empty one."""
    return _unsorted(x, segments, count, "prod", 1)


def unsorted_segment_max(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The largest of each of `count` segments; for an empty one the lowest finite value."""
    info: Any = torch.finfo if x.dtype.is_floating_point else torch.iinfo
    return _unsorted(x, segments, count, "amax", info(x.dtype).min)


def unsorted_segment_min(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The smallest of each of `count` segments; for an empty one the highest finite value."""
    info: Any = torch.finfo if x.dtype.is_floating_point else torch.iinfo
    return _unsorted(x, segments, count, "amin", info(x.dtype).max)


def _count(segments: Tensor, count: Optional[int] = None) -> int:
    if count is not None:
        return count
    return cast(int, segments[-1].item()) + 1 if segments.numel() else 0


def _zeros(x: Tensor, rows: int) -> Tensor:
    return torch.zeros((rows, *x.shape[1:]), dtype=x.dtype, device=x.device)


def _rows(x: Tensor, segments: Tensor, count: Optional[int]) -> Tensor:
    """How many rows each segment has, at least 1, to divide by."""
    ones = torch.ones(segments.shape[0], dtype=x.dtype, device=x.device)
    rows = segment_sum(ones, segments, count).clamp(min=1)
    return rows.reshape(beside(rows.shape[0], x.ndim))


def _or_zero(result: Tensor, segments: Tensor) -> Tensor:
    """0 for the segments without rows."""
    met = torch.zeros(result.shape[0], dtype=torch.bool, device=result.device)
    met = met.index_fill(0, segments.long(), True)
    return torch.where(met.reshape(beside(result.shape[0], result.ndim)), result, 0)


def _flat(x: Tensor, segments: Tensor, count: int) -> tuple:
    """The values as [numbers, values], and their places in count + 1 rows.

    A negative number has the last place, which the caller drops; one of `count` or more a place
    out of range, at which the reduction fails.
    """
    rows = segments.numel()
    flat = x.reshape(rows, math.prod(x.shape[segments.ndim :]))
    places = segments.reshape(-1).long()
    places = torch.where(places < 0, count, torch.where(places < count, places, count + 1))
    return flat, places


def _unsorted(x: Tensor, segments: Tensor, count: int, how: str, empty: Any) -> Tensor:
    flat, places = _flat(x, segments, count)
    result = _reduced(flat, places, count + 1, how, empty)[:count]
    return result.reshape(count, *x.shape[segments.ndim :])


def _reduced(x: Tensor, segments: Tensor, count: int, how: str, empty: Any) -> Tensor:
    # scatter_reduce includes the start, which changes no result but that of an empty segment.
    start = torch.full((count, *x.shape[1:]), empty, dtype=x.dtype, device=x.device)
    places = segments.long().reshape(beside(segments.shape[0], x.ndim)).expand(x.shape)
    return start.scatter_reduce(0, places, x, how)
