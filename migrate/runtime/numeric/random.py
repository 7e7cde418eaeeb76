"""Random values for which torch has no function that gives a new tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers


def truncated_normal(shape: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal values, drawn again until they are within -2 and 2."""
    return torch.nn.init.trunc_normal_(torch.empty(integers(shape), dtype=dtype), a=-2.0, b=2.0)


def shuffle(x: Tensor) -> Tensor:
    """The rows of x in a random order."""
    return x[torch.randperm(len(x), device=x.device)]


def dropout_where(x: Tensor, drawn: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout by values of [0, 1) that have been drawn: dropped where they are below the rate."""
    return torch.where(drawn >= rate, x / (1 - rate), 0.0) if training else x
