"""Optimizers that follow the gradient as it is: GradientDescent, ProximalGradientDescent,
Momentum."""

from __future__ import annotations

from typing import Any, Iterable

import torch

from migrate.optimizers.gradient_descent import GRADIENT_DESCENT, PROXIMAL_GRADIENT_DESCENT
from migrate.optimizers.momentum import MOMENTUM
from migrate.torchrec.optimizers.row_optimizer import Group, RowOptimizer, State, shrunk


class GradientDescent(RowOptimizer):
    """w -= lr g."""

    record = GRADIENT_DESCENT

    def __init__(self, parameters: Iterable[Any], lr: float, rows: str = "touched") -> None:
        super().__init__(parameters, rows, lr=lr)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of gradient descent."""
        weight.add_(grad, alpha=-group["lr"])


class ProximalGradientDescent(RowOptimizer):
    """u = w - lr g; w = sign(u) max(|u| - lr l1, 0) / (1 + lr l2)."""

    record = PROXIMAL_GRADIENT_DESCENT

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        l1: float = 0.0,
        l2: float = 0.0,
        rows: str = "touched",
    ) -> None:
        super().__init__(parameters, rows, lr=lr, l1=l1, l2=l2)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of proximal gradient descent."""
        weight.copy_(shrunk(weight - group["lr"] * grad, group["lr"], group))


class Momentum(RowOptimizer):
    """a = mu a + g; w -= lr a, or with nesterov w -= lr (g + mu a)."""

    record = MOMENTUM

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        momentum: float,
        nesterov: bool = False,
        rows: str = "touched",
    ) -> None:
        super().__init__(parameters, rows, lr=lr, momentum=momentum, nesterov=nesterov)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of Momentum."""
        a = state["momentum_buffer"].mul_(group["momentum"]).add_(grad)
        change = grad + group["momentum"] * a if group["nesterov"] else a
        weight.add_(change, alpha=-group["lr"])
