"""What the optimizers share: which rows of a parameter a step changes, and how slots begin."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from migrate.optimizers.record import Optimizer
from migrate.runtime.compiled.table import sum_by_key

ROWS = ("all", "touched")
_SUMMED = (torch.float32, torch.float64)  # what numba adds up
_TOGETHER = 1 << 16  # values that are changed at once

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
            own = [one for one in group["params"] if one.grad is not None]
            self.step_parameters([(one, one.grad) for one in own], group)
        return loss

    @torch.no_grad()
    def step_parameters(
        self, pairs: Iterable[Tuple[torch.Tensor, torch.Tensor]], group: Group
    ) -> None:
        """One step of parameters of `group`, each by the gradient that is given."""
        alike: Dict[Any, _Rows] = {}
        for parameter, grad in pairs:
            slots, step = self._begin(parameter, group)
            rows, grad = _rows(grad, group["rows"])
            if rows is None:
                self.update(parameter, grad, slots, group, step)
            elif len(rows):
                key = grad.shape[1:], grad.dtype, parameter.dtype, grad.device, step
                batch = alike.setdefault(key, _Rows())
                batch.add(parameter, slots, rows, grad)
                if batch.full:
                    self._update_rows(alike.pop(key), group, step)
        for key, batch in alike.items():
            self._update_rows(batch, group, key[-1])

    def _begin(self, parameter: torch.Tensor, group: Group) -> Tuple[State, int]:
        """The slots of a parameter, and which of its steps begins."""
        state = self.state[parameter]
        slots = {}
        for name, value in self.initial_state(group).items():
            slot = state[name] if name in state else torch.full_like(parameter, value)
            slots[name] = state[name] = slot.to(parameter.device)  # where the module was moved
        state["step"] = state["step"] + 1 if "step" in state else torch.ones(())
        return slots, int(state["step"].item())

    def _update_rows(self, batch: _Rows, group: Group, step: int) -> None:
        weight = batch.taken(batch.parameters)
        part = {
            name: batch.taken([slots[name] for slots in batch.slots]) for name in batch.slots[0]
        }
        self.update(weight, _joined(batch.grads), part, group, step)
        batch.put(batch.parameters, weight)
        for name, values in part.items():
            batch.put([slots[name] for slots in batch.slots], values)


class _Rows:
    """Rows of several parameters that are changed together: on few rows, an op takes about as long
    as its call."""

    def __init__(self) -> None:
        self.parameters: List[torch.Tensor] = []
        self.slots: List[State] = []
        self.grads: List[torch.Tensor] = []
        self._rows: List[torch.Tensor] = []
        self._values = 0

    def add(
        self, parameter: torch.Tensor, slots: State, rows: torch.Tensor, grad: torch.Tensor
    ) -> None:
        """Rows, int64 [n], of one more, and the gradient [n, ...] of these."""
        self.parameters.append(parameter)
        self.slots.append(slots)
        self.grads.append(grad)
        self._rows.append(rows)
        self._values += grad.numel()

    @property
    def full(self) -> bool:
        """Whether more would not fit into a processor's cache."""
        return self._values >= _TOGETHER

    def taken(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The rows of the tensors, one for each parameter."""
        # Half the time of tensor[rows], and of its assignment.
        return _joined([one.index_select(0, rows) for one, rows in zip(tensors, self._rows)])

    def put(self, tensors: Sequence[torch.Tensor], values: torch.Tensor) -> None:
        """Sets the rows to what `taken` gave and was changed."""
        pieces = values.split([len(rows) for rows in self._rows])
        for one, rows, piece in zip(tensors, self._rows, pieces):
            one.index_copy_(0, rows, piece)


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))


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
        return _distinct(grad)
    touched = grad.reshape(len(grad), -1).ne(0).any(1).nonzero()[:, 0]
    return touched, grad[touched]


def _distinct(grad: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """The rows of a sparse gradient, each once, and their gradients, summed where a row repeats."""
    rows, values = grad._indices()[0], grad._values()
    if grad.is_coalesced() or grad.device.type != "cpu" or values.dtype not in _SUMMED:
        grad = grad.coalesce()
        return grad.indices()[0], grad.values()
    flat = values.detach().reshape(len(rows), -1).contiguous()
    found, sums = sum_by_key(rows.contiguous().numpy(), flat.numpy())
    return torch.from_numpy(found), torch.from_numpy(sums).reshape(-1, *values.shape[1:])
