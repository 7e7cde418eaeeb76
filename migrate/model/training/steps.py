"""Step parity: the same checkpoint and the same batches, in TensorFlow and in torch.

1. TensorFlow's side is recorded: of each step what it was fed, the loss before the update, and
   every variable and slot after it.
2. torch takes the same steps. After each of them the loss, every parameter, every slot, the
   statistics of BatchNorm and the counters are compared.
3. A difference is relative to the value itself or to the scale of its tensor, whichever is larger:
   |a - b| / max(|b|, scale), b TensorFlow's. The scale is the root mean square of b, at the step at
   which it was largest so far: a slot with one value may pass through 0.
4. A parameter on which the loss does not depend, such as a bias before a BatchNorm or a softmax,
   has a gradient of rounding errors alone. Each side has its own, and an optimizer that divides by
   the gradient's size makes whole steps of them. Where a parameter differs, and the loss stays as
   it is when the parameter is moved, it is set to TensorFlow's value, so that it spreads no
   further, and is listed as `neutral`.

Dropout must be off on both sides: here it is while the steps are taken.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

import numpy
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from migrate.checkpoint.partitions import by_id, by_partition
from migrate.model.parameters import Parameter
from migrate.model.training.build import Training
from migrate.model.training.targets import Target
from semisync.common.errors import BadInput

TOLERANCE = 1e-5
_STILL = 1e-6  # relative change of the loss that is none
_MOVED = 0.1  # how far a parameter is moved to see whether the loss depends on it


class RecordedStep(NamedTuple):
    """batch: what is fed. loss: before the update. values: every variable and slot after it, by its
    name in the checkpoint."""

    batch: Mapping[str, Any]
    loss: float
    values: Mapping[str, numpy.ndarray]


class Difference(NamedTuple):
    """kind: "loss", "parameter", "slot", "statistic" or "counter". step: counted from 1."""

    relative: float
    kind: str
    name: str
    step: int


class StepReport(NamedTuple):
    """What `compare_steps` found.

    steps     how many were taken
    largest   by kind
    exceeded  the first difference beyond the tolerance; None: there is none
    neutral   parameters on which the loss does not depend -> their largest difference
    compared  how many tensors of each kind each step compares
    """

    steps: int
    largest: Dict[str, Difference]
    exceeded: Optional[Difference]
    neutral: Dict[str, float]
    compared: Dict[str, int]


def compare_steps(
    training: Training, steps: Iterable[RecordedStep], tolerance: float = TOLERANCE
) -> StepReport:
    """Takes the recorded steps in torch, from the state that `training` is in, and compares.

    Raises BadInput where a step lacks a value.
    """
    comparison = _Comparison(training, tolerance)
    count = 0
    with _NoDropout():
        for count, step in enumerate(steps, 1):
            comparison.take(count, step)
    largest, exceeded = comparison.largest, comparison.exceeded
    return StepReport(count, largest, exceeded, comparison.neutral, comparison.compared)


class _Comparison:
    def __init__(self, training: Training, tolerance: float) -> None:
        self._module, self._optimizer = training.module, training.optimizer
        self._tolerance = tolerance
        self._statistics = _statistics(training)
        self._scales: Dict[str, float] = {}
        self.largest: Dict[str, Difference] = {}
        self.exceeded: Optional[Difference] = None
        self.neutral: Dict[str, float] = {}
        self.compared: Dict[str, int] = {}

    def take(self, number: int, step: RecordedStep) -> None:
        """One step, and what differs after it."""
        feeds = self._optimizer.feeds
        feeds.update((name, step.batch[name]) for name in feeds if name in step.batch)
        self._optimizer.zero_grad()
        before = {name: value.clone() for name, value in self._module.state_dict().items()}
        loss = self._module(step.batch)
        loss.backward()
        self._optimizer.step()
        found = [self._difference("loss", "loss", number, loss, step.loss)]
        for target in self._optimizer.targets:
            found += self._of_target(number, step, target, before)
        for name, value, parameter in self._statistics:
            want = _piece(step, name, parameter)
            found.append(self._difference("statistic", name, number, value(), want))
        for node, value in self._optimizer.counters.items():
            name = self._optimizer.names[node]
            found.append(self._difference("counter", name, number, value, _wanted(step, name)))
        self.compared = {}
        for difference in found:
            self._note(difference)

    def _difference(self, kind: str, name: str, number: int, got: Any, want: Any) -> Difference:
        theirs = numpy.asarray(_array(want), numpy.float64)
        scale = float(numpy.sqrt(numpy.mean(theirs**2))) if theirs.size else 0.0
        self._scales[name] = max(scale, self._scales.get(name, 0.0))
        return Difference(relative(got, want, self._scales[name]), kind, name, number)

    def _note(self, difference: Difference) -> None:
        kind = difference.kind
        self.compared[kind] = self.compared.get(kind, 0) + 1
        if kind not in self.largest or not difference.relative <= self.largest[kind].relative:
            self.largest[kind] = difference
        if self.exceeded is None and not difference.relative <= self._tolerance:
            self.exceeded = difference

    def _of_target(
        self, number: int, step: RecordedStep, target: Target, before: Dict[str, torch.Tensor]
    ) -> List[Difference]:
        parameter, state = target.parameter, self._optimizer.state[target.tensor]
        pairs = [("parameter", target.name, target.tensor.detach())]
        pairs += [
            ("slot", name, state[slot])
            for slot, name in self._optimizer.slots[target.attribute].items()
        ]
        found = []
        for kind, name, value in pairs:
            stored, want = as_stored(parameter, value), _piece(step, name, parameter)
            found.append(self._difference(kind, name, number, stored, want))
        worst = max(difference.relative for difference in found)
        if worst <= self._tolerance and target.name not in self.neutral:
            return found
        if target.name not in self.neutral and not self._is_neutral(step, target, before):
            return found
        self.neutral[target.name] = max(worst, self.neutral.get(target.name, 0.0))
        for _, name, value in pairs:
            value.copy_(as_kept(parameter, _piece(step, name, parameter)))
        return []

    @torch.no_grad()
    def _is_neutral(
        self, step: RecordedStep, target: Target, before: Dict[str, torch.Tensor]
    ) -> bool:
        """Whether the loss was not another where the parameter had been elsewhere. before: the
        module's state before the step."""
        after = {name: value.clone() for name, value in self._module.state_dict().items()}
        random = torch.Generator().manual_seed(0)
        losses = []
        for moved in (0.0, _MOVED):
            self._module.load_state_dict(before)
            target.tensor.add_(moved * torch.randn(target.tensor.shape, generator=random))
            losses.append(float(self._module(step.batch)))
        self._module.load_state_dict(after)
        return abs(losses[1] - losses[0]) <= _STILL * max(abs(losses[0]), 1e-30)


def relative(got: Any, want: Any, scale: float) -> float:
    """The largest |got - want| / max(|want|, scale); infinite where one is not a number."""
    ours, theirs = (numpy.asarray(_array(one), numpy.float64) for one in (got, want))
    if ours.shape != theirs.shape:
        raise BadInput(f"a value is {list(ours.shape)}, and {list(theirs.shape)} in TensorFlow")
    difference = numpy.abs(ours - theirs)
    if not difference.size or not difference.any():
        return 0.0
    with numpy.errstate(divide="ignore", invalid="ignore"):
        shares = difference / numpy.maximum(numpy.abs(theirs), scale)
    largest = numpy.max(numpy.where(difference > 0, shares, 0.0))
    return float(largest) if numpy.isfinite(difference).all() else float("inf")


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value


def as_stored(parameter: Parameter, value: torch.Tensor) -> numpy.ndarray:
    """What the module keeps of a variable, as the checkpoint has it."""
    array = value.detach().numpy()
    if parameter.axes is not None:
        array = array.transpose(numpy.argsort(parameter.axes))
    array = array.reshape(parameter.shape)
    if parameter.dealt > 1:
        array = array[by_partition(parameter.shape[0], parameter.dealt)]
    return array


def as_kept(parameter: Parameter, stored: numpy.ndarray) -> torch.Tensor:
    """What the module keeps of a variable, from what the checkpoint has of it."""
    if parameter.dealt > 1:
        stored = stored[by_id(parameter.shape[0], parameter.dealt)]
    array = stored if parameter.axes is None else stored.transpose(parameter.axes)
    return torch.tensor(numpy.ascontiguousarray(array))


def _piece(step: RecordedStep, name: str, parameter: Parameter) -> numpy.ndarray:
    whole = _wanted(step, name)
    return whole if parameter.rows is None else whole[slice(*parameter.rows)]


def _wanted(step: RecordedStep, name: str) -> numpy.ndarray:
    if name not in step.values:
        raise BadInput(f"the recorded step has no value of {name!r}, which torch trains")
    return step.values[name]


def _statistics(training: Training) -> List[Tuple[str, Any, Parameter]]:
    """The moving statistics of the module, and tables that are not trained: name, a function to its
    value, and what it is."""

    def value_of(attribute: str, parameter: Parameter) -> Any:
        return lambda: as_stored(parameter, operator.attrgetter(attribute)(training.module))

    counters = set(training.optimizer.counters)
    return [
        (parameter.variable, value_of(parameter.attribute, parameter), parameter)
        for node, parameter in training.module.tensorflow_nodes.items()
        if not parameter.trainable and node not in counters
    ]


class _NoDropout(TorchFunctionMode):
    """F.dropout gives what it is given."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if function is functional.dropout:
            return args[0]
        return function(*args, **(kwargs or {}))
