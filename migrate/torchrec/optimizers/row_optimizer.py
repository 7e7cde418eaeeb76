"""Shared by the optimizers: which rows of a parameter a step changes, and how slots begin."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy
import torch

from migrate.optimizers.record import Optimizer
from migrate.torchrec.optimizers.together import Together, is_plain

ROWS = ("all", "touched")
_TOGETHER = 1 << 16  # values that are changed at once: they fit into a processor's cache

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
        """The initial value of each slot of a parameter."""
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
        fills = self.initial_state(group)
        alike: Dict[Any, List[_Stepped]] = {}
        steps = _Steps()
        for parameter, grad in pairs:
            state = self.state[parameter]
            slots = _slots(parameter, state, fills)
            step = steps.next(state)
            one = _Stepped(parameter, slots, grad)
            # A scalar has no rows.
            if group["rows"] == "all" or not grad.dim():
                self.update(
                    parameter, grad.to_dense() if grad.is_sparse else grad, slots, group, step
                )
            elif one.is_plain():
                alike.setdefault((grad.shape[1:], step), []).append(one)
            else:
                self._update_rows(one, group, step)
        for (_, step), some in alike.items():
            self.update_together(_together(some), group, step)

    def _update_rows(self, one: _Stepped, group: Group, step: int) -> None:
        rows, grad = _touched(one.grad)
        if not len(rows):
            return
        # Half the time of tensor[rows], and of its assignment.
        weight = one.parameter.index_select(0, rows)
        part = {name: slot.index_select(0, rows) for name, slot in one.slots.items()}
        self.update(weight, grad, part, group, step)
        one.parameter.index_copy_(0, rows, weight)
        for name, values in part.items():
            one.slots[name].index_copy_(0, rows, values)

    def update_together(self, rows: Together, group: Group, step: int) -> None:
        """`update` of rows of several tables."""
        for weight, grad, state in rows.parts(_TOGETHER):
            self.update(weight, grad, state, group, step)


def _together(some: Sequence[_Stepped]) -> Together:
    slots = {name: [one.slots[name] for one in some] for name in some[0].slots}
    return Together([one.parameter for one in some], slots, [one.grad for one in some])


def _slots(parameter: torch.Tensor, state: State, fills: Mapping[str, float]) -> State:
    slots, device = {}, parameter.get_device()
    for name, value in fills.items():
        slot = state.get(name)
        if slot is None:
            slot = state[name] = torch.full_like(parameter, value)
        elif slot.get_device() != device:  # the module was moved
            slot = state[name] = slot.to(parameter.device)
        slots[name] = slot
    return slots


class _Steps:
    """Counts the steps of parameters, in one tensor for all that have taken as many."""

    def __init__(self) -> None:
        self._begun: Dict[int, Tuple[Optional[torch.Tensor], int, torch.Tensor]] = {}
        self._counts: Dict[int, torch.Tensor] = {}

    def next(self, state: State) -> int:
        """The number of a parameter's step that begins now, also counted in its state."""
        before = state.get("step")
        found = self._begun.get(id(before))
        if found is None:
            step = 1 if before is None else int(before.item()) + 1
            count = self._counts.setdefault(step, torch.tensor(float(step)))
            # `before` is kept alive, so that no other tensor gets its id.
            found = self._begun[id(before)] = before, step, count
        _, step, state["step"] = found
        return step


class _Stepped(NamedTuple):
    """A parameter, its slots, and the gradient that it is stepped by."""

    parameter: torch.Tensor
    slots: State
    grad: torch.Tensor

    def is_plain(self) -> bool:
        """Whether it is stepped together with others."""
        grad = self.grad
        if not (grad.is_sparse and grad.dtype is torch.float32 and is_plain(self.parameter)):
            return False
        return all(map(is_plain, self.slots.values()))


def single(value: float) -> float:
    """A value as TensorFlow keeps it: 1 - float32(0.999) is less than 0.001 by 1.3e-5 of it."""
    return float(numpy.float32(value))


def root(values: torch.Tensor) -> torch.Tensor:
    """The square root, a new tensor. On a CPU torch's takes 20 times as long where values are 0, as
    second moments are of rows that no batch had yet."""
    if not values.is_cpu or values.dtype not in (torch.float32, torch.float64):
        return values.sqrt()
    out = torch.empty_like(values)
    numpy.sqrt(values.numpy(), out=out.numpy())
    return out


def shrunk(weight: torch.Tensor, rate: Any, group: Group) -> torch.Tensor:
    """`weight` moved towards 0 by the group's l1 and l2, at a rate for each value or for all."""
    if group["l1"] > 0:
        weight = weight.sign() * (weight.abs() - rate * group["l1"]).clamp(min=0)
    return weight / (1 + rate * group["l2"])


def _touched(grad: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """The rows that a gradient changes, each once, and their gradient."""
    if grad.is_sparse:
        grad = grad.coalesce()
        return grad.indices()[0], grad.values()
    rows = grad.reshape(len(grad), -1).ne(0).any(1).nonzero()[:, 0]
    return rows, grad[rows]
