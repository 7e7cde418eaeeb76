"""FTRL-Proximal."""

from __future__ import annotations

from typing import Any, Iterable

import torch

from migrate.optimizers.ftrl import FTRL
from migrate.torchrec.optimizers.row_optimizer import Group, RowOptimizer, State, root
from migrate.torchrec.optimizers.together import Together
from semisync.common.compiled import row_steps


class Ftrl(RowOptimizer):
    """n' = n + g^2; z += g - (p(n') - p(n)) / lr w; w = 0 where |z| <= l1, else
    (l1 sgn(z) - z) / (p(n') / lr + 2 l2), with p(n) = n^-lr_power, the root by default. With
    l2_shrinkage, z takes g + 2 l2_shrinkage w for g. n begins with initial_accumulator_value."""

    record = FTRL

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_shrinkage: float = 0.0,
        lr_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        rows: str = "touched",
    ) -> None:
        values = {"l1": l1, "l2": l2, "l2_shrinkage": l2_shrinkage, "lr_power": lr_power}
        start = initial_accumulator_value
        super().__init__(parameters, rows, lr=lr, initial_accumulator_value=start, **values)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of FTRL-Proximal."""
        n, z, lr = state["accum"], state["linear"], group["lr"]
        grown = n + grad * grad
        before, after = (_powered(value, group["lr_power"]) for value in (n, grown))
        shrunk = grad + 2 * group["l2_shrinkage"] * weight
        z.add_(shrunk - (after - before) / lr * weight)
        quadratic = after / lr + 2 * group["l2"]
        value = (group["l1"] * z.sign() - z) / quadratic
        weight.copy_(torch.where(z.abs() > group["l1"], value, torch.zeros_like(value)))
        n.copy_(grown)

    def update_together(self, rows: Together, group: Group, step: int) -> None:
        """FTRL's step of rows of several tables, compiled for lr_power -0.5."""
        if group["lr_power"] != -0.5:
            super().update_together(rows, group, step)
            return
        settings = (group[name] for name in ("lr", "l1", "l2", "l2_shrinkage"))
        rows.step(row_steps.ftrl, ["accum", "linear"], *settings)


def _powered(n: torch.Tensor, power: float) -> torch.Tensor:
    return root(n) if power == -0.5 else n.pow(-power)
