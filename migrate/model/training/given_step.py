"""An optimizer step with given gradients, which can be repeated.

Rows that occur several times in a batch are summed, in any order. The results differ by rounding,
but if the terms cancel that may be larger than the sum. So the step is repeated with the rows in
other orders, and the spread of its results is the rounding.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

import numpy
import torch

from migrate.model.training.graph_optimizer import GraphOptimizer
from migrate.model.training.partitions import Slice
from migrate.model.training.stored import as_kept, as_stored
from migrate.model.training.targets import Target

_ORDERS = 4  # orders of the rows in which the step is repeated


class Stepped(NamedTuple):
    """A parameter or a slot (kind "parameter" or "slot"), in the checkpoint's layout."""

    kind: str
    name: str
    target: Target
    before: numpy.ndarray
    after: numpy.ndarray


class GivenStep:
    """Takes the step once, with gradients as for `GraphOptimizer.step_by`.

    Attributes:
        values: every parameter and slot of the targets, before and after the step.
    """

    def __init__(
        self, optimizer: GraphOptimizer, targets: Sequence[Target], given: Mapping[str, Slice]
    ) -> None:
        self._optimizer, self._targets, self._given = optimizer, targets, given
        optimizer.give_new_rows_slots()
        # After the slots of new rows are there, so that the state and the parameters have the same
        # rows.
        self._state = copy.deepcopy(optimizer.state_dict())
        self._parameters = [target.tensor.detach().clone() for target in optimizer.targets]
        before = [_array(target, value) for _, _, target, value in self._values()]
        optimizer.step_by(given)
        self.values = [
            Stepped(kind, name, target, stood, _array(target, value))
            for stood, (kind, name, target, value) in zip(before, self._values())
        ]

    def rounding(self) -> List[numpy.ndarray]:
        """The rounding of each of `values` after the step; float64."""
        optimizer = self._optimizer
        state = copy.deepcopy(optimizer.state_dict())
        parameters = [target.tensor.detach().clone() for target in optimizer.targets]
        found = [numpy.zeros(one.after.shape) for one in self.values]
        for number in range(_ORDERS):
            self._put(self._state, self._parameters)
            random = torch.Generator().manual_seed(number)
            optimizer.step_by({node: _turned(one, random) for node, one in self._given.items()})
            for k, (_, _, target, value) in enumerate(self._values()):
                after = self.values[k].after
                distance = numpy.abs(_array(target, value).astype(numpy.float64) - after)
                # fmax ignores NaN, which says nothing about rounding.
                found[k] = numpy.fmax(found[k], distance)
        self._put(state, parameters)
        return found

    def put(self, values: Sequence[numpy.ndarray]) -> None:
        """Sets the parameters and slots, in the order of `values`: several may be parts of one
        variable."""
        for wanted, (_, _, target, value) in zip(values, self._values()):
            value.copy_(as_kept(target.parameter, wanted))

    def _put(self, state: Dict[str, Any], parameters: Sequence[torch.Tensor]) -> None:
        self._optimizer.load_state_dict(state)
        with torch.no_grad():
            for target, value in zip(self._optimizer.targets, parameters):
                target.tensor.copy_(value)

    def _values(self) -> List[Any]:
        return [
            (kind, name, target, value)
            for target in self._targets
            for kind, name, value in values_of(self._optimizer, target)
        ]


def values_of(optimizer: GraphOptimizer, target: Target) -> List[Any]:
    """Kind, name in the checkpoint, and tensor of a parameter and of its slots."""
    state = optimizer.state[target.tensor]
    slots = optimizer.slots[target.attribute].items()
    own = [("parameter", target.name, target.tensor.detach())]
    return own + [("slot", name, state[slot]) for slot, name in slots]


def _array(target: Target, value: torch.Tensor) -> numpy.ndarray:
    return as_stored(target.parameter, value).copy()


def _turned(given: Slice, random: torch.Generator) -> Slice:
    values, rows = given
    if rows is None:
        return given
    order = torch.randperm(len(rows), generator=random)
    return values[order], rows[order]
