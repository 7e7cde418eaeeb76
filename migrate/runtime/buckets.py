"""TensorFlow's Bucketize: how many boundaries are not above a value.

Boundaries are float32. An int32 or int64 is rounded to float32 before it is compared, a float64 is
not; NaN is above every boundary. TensorFlow's threads flush subnormal numbers to 0.
Source: std::upper_bound in tensorflow/core/kernels/bucketize_op.cc; ScopedFlushDenormal
"""

from __future__ import annotations

import functools
from typing import Sequence, Tuple

import numpy
import torch

from semisync.common.errors import UsageError


def bucketize(values: torch.Tensor, boundaries: Sequence[float]) -> torch.Tensor:
    """The bucket of each value, int32, between ascending boundaries."""
    if values.dtype in (torch.int32, torch.int64):
        values = values.to(torch.float32)
    if values.dtype not in (torch.float32, torch.float64):
        raise UsageError(f"{values.dtype} has no buckets; int32, int64, float32 or float64 has")
    edges = torch.from_numpy(_edges(tuple(boundaries), values.dtype)).to(values.device)
    # right=True, as std::upper_bound: a value equal to a boundary is above it.
    return torch.bucketize(values, edges, out_int32=True, right=True)


def bucketize_each(values: torch.Tensor, boundaries: torch.Tensor) -> torch.Tensor:
    """The buckets of each value in several divisions: int32 [values, divisions].

    Args:
        values: [values].
        boundaries: float32 [divisions, n], ascending.
    """
    return torch.stack([bucketize(values, one) for one in boundaries.tolist()], 1)


@functools.lru_cache(maxsize=1024)
def _edges(boundaries: Tuple[float, ...], dtype: torch.dtype) -> numpy.ndarray:
    """The boundaries in the type of the values; not a tensor, which torch.export would capture.

    Every subnormal number counts as 0, so none may be below a boundary of 0: that boundary becomes
    the lowest subnormal number.
    """
    edges = numpy.array(boundaries, numpy.float32)
    if (edges[1:] < edges[:-1]).any():
        raise UsageError("the boundaries of buckets must ascend")
    zero = abs(edges) < numpy.finfo(numpy.float32).tiny
    kind = numpy.float64 if dtype == torch.float64 else numpy.float32
    edges = edges.astype(kind)
    edges[zero] = numpy.nextafter(-numpy.finfo(kind).tiny, kind(0))
    return edges
