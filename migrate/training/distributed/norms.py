"""BatchNorm over several processes: mean and variance of the global batch, as in one process.

The processes add up their sums, and then their squared distances from the common mean; what goes
back through the additions is added up too.
"""

from __future__ import annotations

from types import MethodType
from typing import Any, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_reduce

from migrate.runtime import BatchNorm


def over_processes(module: nn.Module) -> None:
    """Has every BatchNorm take its statistics over all processes, with shares of equal size."""
    for inner in module.modules():
        if isinstance(inner, BatchNorm):
            inner._statistics = MethodType(_statistics, inner)


def _statistics(norm: Any, x: torch.Tensor, channels: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """As BatchNorm's own, of the global batch."""
    axes = [axis for axis in range(x.dim()) if axis != channels]
    shape = [-1 if axis == channels else 1 for axis in range(x.dim())]
    count = x.numel() // max(x.shape[channels], 1) * dist.get_world_size()
    mean = all_reduce(x.sum(axes)) / count
    variance = all_reduce(((x - mean.reshape(shape)) ** 2).sum(axes)) / count
    norm.move(mean, variance, count)
    return mean, variance
