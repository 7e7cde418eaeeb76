"""What the optimizers share: which rows of a parameter a step changes, and how slots begin."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import torch

from migrate.optimizers.record import Optimizer

ROWS = ("all", "touched")

State = Dict[str, torch.Tensor]
Group = Dict[str, Any]


class RowOptimizer(torch.optim.Optimizer):
    """Chooses the rows, and leaves their arithmetic to `update`."""

    record: Optimizer

    def __init__(self, parameters: Iterable[Any], rows: str, **hyperparameters: float) -> None:
        if rows not in ROWS:
            raise ValueError(f"rows is {rows!r}, expected one of {list(ROWS)}")
        super().__init__(parameters, {"rows": rows, **hyperparameters})

    def initial_state(self, group: Group) -> Dict[str, float]:
        """What each slot of a parameter begins with."""
        return self.record.initial_state(group)

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
                    self.step_parameter(parameter, parameter.grad, group)
        return loss

    @torch.no_grad()
    def step_parameter(self, parameter: torch.Tensor, grad: torch.Tensor, group: Group) -> None:
        """One step of one parameter of `group`, by the gradient that is given."""
        state = self.state[parameter]
        slots = {}
        for name, value in self.initial_state(group).items():
            slot = state[name] if name in state else torch.full_like(parameter, value)
            slots[name] = state[name] = slot.to(parameter.device)  # where the module was moved
        state["step"] = state["step"] + 1 if "step" in state else torch.ones(())
        step = int(state["step"].item())
        rows, grad = _rows(grad, group["rows"])
        if rows is None:
            self.update(parameter, grad, slots, group, step)
            return
        if not len(rows):
            return
        # Half the time of parameter[rows], and of its assignment.
        weight = parameter.index_select(0, rows)
        part = {name: slot.index_select(0, rows) for name, slot in slots.items()}
        self.update(weight, grad, part, group, step)
        parameter.index_copy_(0, rows, weight)
        for name, slot in slots.items():
            slot.index_copy_(0, rows, part[name])


def single(value: float) -> float:
    """As TensorFlow keeps it: 1 - beta2 of float32(0.999) is 5e-5 more than 0.001."""
    return torch.tensor(value, dtype=torch.float32).item()


def shrunk(weight: torch.Tensor, rate: Any, group: Group) -> torch.Tensor:
    """`weight` moved towards 0 by the group's l1 and l2, at a rate for each value or for all."""
    if group["l1"] > 0:
        weight = weight.sign() * (weight.abs() - rate * group["l1"]).clamp(min=0)
    return weight / (1 + rate * group["l2"])


def _rows(grad: torch.Tensor, rows: str) -> Tuple[Optional[torch.Tensor], torch.Tensor]:
    """(rows to change, their gradient); None for all rows."""
    if rows == "all" or not grad.dim():
        return None, grad.to_dense() if grad.is_sparse else grad
    if grad.is_sparse:
        grad = grad.coalesce()
        return grad.indices()[0], grad.values()
    touched = grad.reshape(len(grad), -1).ne(0).any(1).nonzero()[:, 0]
    return touched, grad[touched]
