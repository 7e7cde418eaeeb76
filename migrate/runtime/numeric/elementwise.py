"""Functions of single values whose gradient, or whose value at an edge, is not torch's."""

from __future__ import annotations

import functools
import operator
from typing import Any, Sequence

import torch
from torch import Tensor

from migrate.runtime.strings import Strings


def add_n(values: Sequence[Any]) -> Any:
    """The sum of tensors, or of numbers after a tensor, one after the other."""
    return functools.reduce(operator.add, values)


def maximum(x: Any, y: Tensor) -> Tensor:
    """The larger one of x, which may be a number, and y; if equal, x gets the gradient, which
    torch.maximum splits."""
    # x != x: a NaN of either is the result.
    return torch.where((x >= y) | (x != x), x, y)


def minimum(x: Any, y: Tensor) -> Tensor:
    """The smaller one of x and y, with the gradient as of `maximum`."""
    return torch.where((x <= y) | (x != x), x, y)


def div_no_nan(x: Tensor, y: Tensor) -> Tensor:
    """x / y; 0 where y is 0, whatever x is."""
    # Here and below the inner `where` keeps infinity out of the branch that is not chosen: the
    # gradient would be 0 * inf, a NaN.
    zero = y == 0
    return torch.where(zero, 0, x / torch.where(zero, 1, y))


def mul_no_nan(x: Tensor, y: Tensor) -> Tensor:
    """x * y; 0 where y is 0, even if x is infinite or NaN."""
    return torch.where((y == 0) & ~x.isfinite(), 0, x) * y


def xdivy(x: Tensor, y: Tensor) -> Tensor:
    """x / y; 0 where x is 0."""
    zero = x == 0
    return torch.where(zero, 0, x / torch.where(zero, 1, y))


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x * log(y); 0 where x is 0."""
    zero = x == 0
    return torch.where(zero, 0, x * torch.log(torch.where(zero, 1, y)))


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """x * log(1 + y); 0 where x is 0."""
    zero = x == 0
    return torch.where(zero, 0, x * torch.log1p(torch.where(zero, 1, y)))


def selu(x: Tensor) -> Tensor:
    """F.selu(x), with the gradient of the positive side at 0."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    # The clamp keeps expm1 finite where x is large: its gradient there is 0 * inf otherwise.
    return scale * torch.where(x < 0, alpha * torch.expm1(x.clamp(max=0)), x)


def where(condition: Tensor, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; broadcast together. Tensors or Strings."""
    return (
        Strings.where(condition, x, y) if isinstance(x, Strings) else torch.where(condition, x, y)
    )


def select(condition: Tensor, x: Any, y: Any) -> Any:
    """As `where`, of x and y of one shape; a condition of one axis chooses among their rows."""
    if condition.ndim == 1 and len(x.shape) > 1:
        condition = condition.reshape(-1, *[1] * (len(x.shape) - 1))
    return where(condition, x, y)
