"""Optimizers with a sum of the squared gradients: Adagrad, ProximalAdagrad."""

from __future__ import annotations

from typing import Any, Iterable

import torch

from migrate.optimizers.adagrad import ADAGRAD
from migrate.optimizers.proximal_adagrad import PROXIMAL_ADAGRAD
from migrate.torchrec.optimizers.row_optimizer import Group, RowOptimizer, State, root, shrunk
from migrate.torchrec.optimizers.together import Together
from semisync.common.compiled import row_steps


class Adagrad(RowOptimizer):
    """a += g^2; w -= lr g / (sqrt(a) + eps). a begins with initial_accumulator_value."""

    record = ADAGRAD

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        eps: float = 0.0,
        initial_accumulator_value: float = 0.1,
        rows: str = "touched",
    ) -> None:
        start = initial_accumulator_value
        super().__init__(parameters, rows, lr=lr, eps=eps, initial_accumulator_value=start)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of Adagrad."""
        a = state["sum"].addcmul_(grad, grad)
        weight.addcdiv_(grad, root(a).add_(group["eps"]), value=-group["lr"])

    def update_together(self, rows: Together, group: Group, step: int) -> None:
        """Adagrad's step of rows of several tables, compiled."""
        rows.step(row_steps.adagrad, ["sum"], group["lr"], group["eps"])


class ProximalAdagrad(RowOptimizer):
    """a += g^2; r = lr / sqrt(a); u = w - r g; w = sign(u) max(|u| - r l1, 0) / (1 + r l2)."""

    record = PROXIMAL_ADAGRAD

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        l1: float = 0.0,
        l2: float = 0.0,
        initial_accumulator_value: float = 0.1,
        rows: str = "touched",
    ) -> None:
        start = initial_accumulator_value
        super().__init__(parameters, rows, lr=lr, l1=l1, l2=l2, initial_accumulator_value=start)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of ProximalAdagrad."""
        rate = group["lr"] * state["accumulator"].addcmul_(grad, grad).rsqrt()
        weight.copy_(shrunk(weight - rate * grad, rate, group))
