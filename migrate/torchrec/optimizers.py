"""torch optimizers that compute what TensorFlow's do, where torch.optim's do not.

    Adam(parameters, rows="all")         tf.train.AdamOptimizer
    Adam(parameters, rows="touched")     LazyAdamOptimizer
    Momentum, RMSProp, Ftrl              with rows="touched" for tables

`rows` says which rows of a tensor a step changes. TensorFlow updates a dense variable as a whole,
and of a table only the rows that the batch looked up; except Adam, which always moves all.

1. "all": every row, as for dense variables.
2. "touched": with a sparse gradient its rows, those that occur twice summed first. With a dense
   gradient, which does not say what was looked up, the rows in which it is not zero throughout; a
   row that was looked up and whose gradient is exactly zero keeps its slots, where TensorFlow would
   decay them.

The states have the names that a converted checkpoint gives them, so that `load_optimizer` fills
them. Defaults are TensorFlow's. Formulas: tensorflow/core/kernels/training_ops.cc, and
python/training/adam.py for Adam on tables.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import torch

from migrate.optimizers.adam import ADAM
from migrate.optimizers.ftrl import FTRL
from migrate.optimizers.momentum import MOMENTUM
from migrate.optimizers.record import Optimizer
from migrate.optimizers.rmsprop import RMSPROP

ROWS = ("all", "touched")

State = Dict[str, torch.Tensor]
Group = Dict[str, Any]


class _RowOptimizer(torch.optim.Optimizer):
    """Chooses the rows, and leaves their arithmetic to `update`."""

    record: Optimizer

    def __init__(self, parameters: Iterable[Any], rows: str, **hyperparameters: float) -> None:
        if rows not in ROWS:
            raise ValueError(f"rows is {rows!r}, expected one of {list(ROWS)}")
        super().__init__(parameters, {"rows": rows, **hyperparameters})

    def initial_state(self, group: Group) -> Dict[str, float]:
        """What each slot of a parameter begins with."""
        return self.record.initial_state()

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """Changes `weight` and the slots in `state`, [rows, ...], in place."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step; parameters without a gradient stay as they are."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, parameter.grad, group)
        return loss

    def _step(self, parameter: torch.Tensor, grad: torch.Tensor, group: Group) -> None:
        state = self.state[parameter]
        for name, value in self.initial_state(group).items():
            state.setdefault(name, torch.full_like(parameter, value))
        state.setdefault("step", torch.zeros(()))
        state["step"] += 1
        slots = {name: state[name] for name in self.initial_state(group)}
        step = int(state["step"].item())
        rows, grad = _rows(grad, group["rows"])
        if rows is None:
            self.update(parameter, grad, slots, group, step)
            return
        weight = parameter[rows]
        part = {name: slot[rows] for name, slot in slots.items()}
        self.update(weight, grad, part, group, step)
        parameter[rows] = weight
        for name, slot in slots.items():
            slot[rows] = part[name]


def _rows(grad: torch.Tensor, rows: str) -> Tuple[Optional[torch.Tensor], torch.Tensor]:
    """(rows to change, their gradient); None for all rows."""
    if rows == "all" or not grad.dim():
        return None, grad.to_dense() if grad.is_sparse else grad
    if grad.is_sparse:
        grad = grad.coalesce()
        return grad.indices()[0], grad.values()
    touched = grad.reshape(len(grad), -1).ne(0).any(1).nonzero()[:, 0]
    return touched, grad[touched]


class Adam(_RowOptimizer):
    """m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, and
    w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)."""

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
        beta1, beta2 = (_single(group[name]) for name in ("beta1", "beta2"))
        m = state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
        v = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        alpha = group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        weight.addcdiv_(m, v.sqrt().add_(group["eps"]), value=-alpha)


def _single(value: float) -> float:
    """As TensorFlow keeps it: 1 - beta2 of float32(0.999) is 5e-5 more than 0.001."""
    return torch.tensor(value, dtype=torch.float32).item()


class Momentum(_RowOptimizer):
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


class RMSProp(_RowOptimizer):
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
        return self.record.initial_state(all_slots=group["centered"])

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of RMSProp."""
        decay = group["decay"]
        s = state["square_avg"].mul_(decay).addcmul_(grad, grad, value=1 - decay)
        if group["centered"]:
            mean = state["grad_avg"].mul_(decay).add_(grad, alpha=1 - decay)
            s = s - mean * mean
        change = group["lr"] * grad * (s + group["eps"]).rsqrt()
        weight.sub_(state["momentum_buffer"].mul_(group["momentum"]).add_(change))


class Ftrl(_RowOptimizer):
    """n' = n + g^2; z += g - (sqrt(n') - sqrt(n)) / lr w; w = 0 where |z| <= l1, else
    (l1 sgn(z) - z) / (sqrt(n') / lr + 2 l2). With l2_shrinkage, z takes g + 2 l2_shrinkage w for g.
    n begins with initial_accumulator_value; learning_rate_power is -0.5."""

    record = FTRL

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_shrinkage: float = 0.0,
        initial_accumulator_value: float = 0.1,
        rows: str = "touched",
    ) -> None:
        values = {"l1": l1, "l2": l2, "l2_shrinkage": l2_shrinkage}
        start = initial_accumulator_value
        super().__init__(parameters, rows, lr=lr, initial_accumulator_value=start, **values)

    def initial_state(self, group: Group) -> Dict[str, float]:
        """accum and linear."""
        return {**self.record.initial_state(), "accum": group["initial_accumulator_value"]}

    def update(
        self, weight: torch.Tensor, grad: torch.Tensor, state: State, group: Group, step: int
    ) -> None:
        """One step of FTRL-Proximal."""
        n, z, lr = state["accum"], state["linear"], group["lr"]
        grown = n + grad * grad
        shrunk = grad + 2 * group["l2_shrinkage"] * weight
        z.add_(shrunk - (grown.sqrt() - n.sqrt()) / lr * weight)
        quadratic = grown.sqrt() / lr + 2 * group["l2"]
        value = (group["l1"] * z.sign() - z) / quadratic
        weight.copy_(torch.where(z.abs() > group["l1"], value, torch.zeros_like(value)))
        n.copy_(grown)
