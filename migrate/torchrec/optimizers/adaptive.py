"""Optimizers with a decaying mean of the squared gradient: Adam, AdamWeightDecay, RMSProp,
Adadelta."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Tuple

import torch

from migrate.optimizers.adadelta import ADADELTA
from migrate.optimizers.adam import ADAM
from migrate.optimizers.adam_weight_decay import ADAM_WEIGHT_DECAY
from migrate.optimizers.rmsprop import RMSPROP
from migrate.torchrec.optimizers.row_optimizer import Group, RowOptimizer, State, root, single


class Adam(RowOptimizer):
    """m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, and
    w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps).

    Where a group has "beta1_power" and "beta2_power", these are b1^t and b2^t, else t is the number
    of the parameter's own steps."""

    record = ADAM

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        rows: str = "all",
    ) -> None:
        super().__init__(parameters, rows, lr=lr, beta1=beta1, beta2=beta2, eps=eps)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of Adam."""
        beta1, beta2 = (single(group[name]) for name in ("beta1", "beta2"))
        m, v = _moments(state, grad, beta1, beta2)
        power1, power2 = _powers(group, beta1, beta2, step)
        alpha = group["lr"] * (1 - power2) ** 0.5 / (1 - power1)
        # TensorFlow adds eps to the root before the correction of the bias: "epsilon hat" of Kingma
        # and Ba, which torch.optim's is not.
        weight.addcdiv_(m, root(v).add_(group["eps"]), value=-alpha)


def _moments(
    state: State, grad: torch.Tensor, beta1: float, beta2: float
) -> Tuple[torch.Tensor, torch.Tensor]:
    """The decaying means of the gradient and of its square, which `state` keeps."""
    m = state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
    v = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    return m, v


def _powers(group: Group, beta1: float, beta2: float, step: int) -> Tuple[float, float]:
    if "beta1_power" in group:
        return group["beta1_power"], group["beta2_power"]
    return beta1**step, beta2**step


class AdamWeightDecay(RowOptimizer):
    """m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, and
    w -= lr (m / (sqrt(v) + eps) + weight_decay w), as BERT's optimizer does."""

    record = ADAM_WEIGHT_DECAY

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        rows: str = "all",
    ) -> None:
        values = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps}
        super().__init__(parameters, rows, weight_decay=weight_decay, **values)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of AdamWeightDecay."""
        m, v = _moments(state, grad, group["beta1"], group["beta2"])
        change = m / root(v).add_(group["eps"])
        weight.sub_(change.add_(weight, alpha=group["weight_decay"]), alpha=group["lr"])


class RMSProp(RowOptimizer):
    """s = d s + (1-d) g^2; a = mu a + lr g / sqrt(s + eps); w -= a. Centered: g' = d g' + (1-d) g
    and s - g'^2 in place of s. s begins with 1, as TensorFlow's."""

    record = RMSPROP

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        decay: float = 0.9,
        momentum: float = 0.0,
        eps: float = 1e-10,
        centered: bool = False,
        rows: str = "touched",
    ) -> None:
        values = {"lr": lr, "decay": decay, "momentum": momentum, "eps": eps}
        super().__init__(parameters, rows, centered=centered, **values)

    def initial_state(self, group: Group) -> Dict[str, float]:
        """square_avg, momentum_buffer, and grad_avg where it is centered."""
        return self.record.initial_state(group, all_slots=group["centered"])

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of RMSProp."""
        decay = single(group["decay"])
        s = state["square_avg"].mul_(decay).addcmul_(grad, grad, value=1 - decay)
        if group["centered"]:
            mean = state["grad_avg"].mul_(decay).add_(grad, alpha=1 - decay)
            s = s - mean * mean
        change = group["lr"] * grad * (s + group["eps"]).rsqrt()
        weight.sub_(state["momentum_buffer"].mul_(group["momentum"]).add_(change))


class Adadelta(RowOptimizer):
    """a = rho a + (1-rho) g^2; u = sqrt(d + eps) / sqrt(a + eps) g; w -= lr u;
    d = rho d + (1-rho) u^2."""

    record = ADADELTA

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 0.001,
        rho: float = 0.95,
        eps: float = 1e-8,
        rows: str = "touched",
    ) -> None:
        super().__init__(parameters, rows, lr=lr, rho=rho, eps=eps)

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of Adadelta."""
        rho, eps = single(group["rho"]), group["eps"]
        a = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        d = state["acc_delta"]
        change = root(d + eps) * (a + eps).rsqrt() * grad
        weight.add_(change, alpha=-group["lr"])
        d.mul_(rho).addcmul_(change, change, value=1 - rho)
