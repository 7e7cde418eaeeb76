"""BatchNorm over several processes: mean and variance of the global batch, as in one process.

The processes add up their sums, and then their squared distances from the common mean; gradients
are added up on the way back too. A row that is only a placeholder is left out.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from types import MethodType
from typing import Any, Iterator, Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_reduce

from migrate.data import Share
from migrate.runtime import BatchNorm

_SHARE: ContextVar[Optional[Share]] = ContextVar("share", default=None)


@contextmanager
def sharing(share: Optional[Share]) -> Iterator[None]:
    """Sets the share of the global batch that a module is given; None: an equal one."""
    token = _SHARE.set(share)
    try:
        yield
    finally:
        _SHARE.reset(token)


def over_processes(module: nn.Module) -> None:
    """Has every BatchNorm take its statistics over all processes."""
    for inner in module.modules():
        if isinstance(inner, BatchNorm):
            inner.by_batch = MethodType(_by_batch, inner)


def _by_batch(norm: Any, x: torch.Tensor, channels: int) -> torch.Tensor:
    """As BatchNorm's own, by the global batch."""
    axes = [axis for axis in range(x.dim()) if axis != channels]
    shape = [-1 if axis == channels else 1 for axis in range(x.dim())]
    own = x.numel() // max(x.shape[channels], 1)
    rows, of = _SHARE.get() or (1, dist.get_world_size())
    # Values per channel: those per row of this share, times the rows of the global batch.
    count, counts = own // max(rows, 1) * of, float(rows > 0)
    mean = all_reduce(x.sum(axes) * counts) / count
    variance = all_reduce(((x - mean.reshape(shape)) ** 2).sum(axes) * counts) / count
    norm.move(mean, variance, count)
    return norm.normalised(x, channels, mean, variance)
