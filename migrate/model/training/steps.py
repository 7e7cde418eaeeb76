"""Step parity: the same checkpoint and the same batches, in TensorFlow and in torch.

1. TensorFlow's side: for each step its feeds, the loss before the update, the gradients if they can
   be read, and every variable and slot after it.
2. torch computes the loss and the gradients of the same batch, which are compared. A gradient is a
   sum of many terms: it may differ by a multiple of the rounding in TensorFlow's own gradient.
3. torch is given TensorFlow's gradients, and takes the step. After it every parameter, every slot,
   the statistics of BatchNorm and the counters are compared. Both sides began with the same bits,
   so that a parameter and its slots are judged by their change: a difference is one of the formula,
   not the rounding of a gradient, which Adam may scale up to a whole step. The rounding of summing
   repeated rows is measured, see `given_step`. torch continues from TensorFlow's values, so that no
   difference counts twice.
4. Any other difference is relative to the value itself or to the scale of its tensor, whichever is
   larger: |a - b| / max(|b|, scale), b TensorFlow's. The scale is the root mean square of b, at the
   step at which it was largest so far: a statistic with one value may pass through 0. Of a gradient
   it is that of a row.
5. Where a gradient is not recorded, or the graph computes it in a function, torch uses its own. A
   parameter on which the loss does not depend, such as a bias before a BatchNorm or a softmax, has
   a gradient of rounding errors alone, which an optimizer that divides by the gradient's size turns
   into whole steps. If such a parameter differs, and the loss does not change when the parameter is
   moved, it is set to TensorFlow's value and listed as `neutral`.

Dropout must be off on both sides: on torch's it is disabled during the steps.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

import numpy
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from migrate.model.parameters import Parameter
from migrate.model.training.build import Training
from migrate.model.training.distance import (
    OF_ITSELF,
    array,
    of_rows,
    of_update,
    relative,
    same_rows,
    ulp,
)
from migrate.model.training.given_step import GivenStep, values_of
from migrate.model.training.graph_optimizer import gradient_of
from migrate.model.training.partitions import split
from migrate.model.training.stored import as_kept, as_stored
from migrate.model.training.targets import Target
from semisync.common.errors import BadInput

TOLERANCE = 1e-5
_STILL = 1e-6  # relative change of the loss that counts as none
_MOVED = 0.1  # how far a parameter is moved to see whether the loss depends on it


Values = Mapping[str, numpy.ndarray]
# Gradients as tf.gradients returns them, by variable node: values, and for a table indices.
GivenGradients = Mapping[str, Tuple[numpy.ndarray, Optional[numpy.ndarray]]]


class BegunStep(NamedTuple):
    """One training step of TensorFlow.

    Attributes:
        batch: the feeds.
        loss: before the update.
        gradients: those that can be read.
        rounding: returns the rounding of the loss and of the gradients; for a table by its rows,
            ascending, repeated ones summed.
        finish: takes the step; returns every variable and slot after it, by its name in the
            checkpoint, and the gradients that it applied, to the bit.
    """

    batch: Mapping[str, Any]
    loss: float
    gradients: GivenGradients
    rounding: Callable[[], Tuple[float, Values]]
    finish: Callable[[], Tuple[Values, GivenGradients]]


def recorded_step(batch: Mapping[str, Any], loss: float, values: Values) -> BegunStep:
    """A step that was taken before, without gradients; values as from `BegunStep.finish`."""
    return BegunStep(batch, loss, {}, lambda: (0.0, {}), lambda: (values, {}))


class Difference(NamedTuple):
    """A value that differs after a step, counted from 1.

    Attributes:
        kind: "loss", "gradient", "parameter", "slot", "statistic" or "counter".
    """

    relative: float
    kind: str
    name: str
    step: int


class StepReport(NamedTuple):
    """The result of `compare_steps`.

    Attributes:
        steps: how many were taken.
        largest: by kind.
        exceeded: the first difference beyond the tolerance; None: there is none.
        neutral: parameters on which the loss does not depend -> their largest difference.
        compared: how many tensors of each kind each step compares.
    """

    steps: int
    largest: Dict[str, Difference]
    exceeded: Optional[Difference]
    neutral: Dict[str, float]
    compared: Dict[str, int]


def compare_steps(
    training: Training, steps: Iterable[BegunStep], tolerance: float = TOLERANCE
) -> StepReport:
    """Repeats the recorded steps in torch, from the present state of `training`, and compares.

    Raises:
        BadInput: a step lacks a value.
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
        self._neutral: Set[str] = set()  # attributes; a variable may be several parameters
        self.compared: Dict[str, int] = {}

    def take(self, number: int, step: BegunStep) -> None:
        """Compares one step, before and after it."""
        feeds = self._optimizer.feeds
        feeds.update((name, step.batch[name]) for name in feeds if name in step.batch)
        self._optimizer.zero_grad()
        before = {name: value.clone() for name, value in self._module.state_dict().items()}
        # TensorFlow's gradients of a loss with several numbers are those of their sum.
        loss = self._module(step.batch).sum()
        if loss.requires_grad:
            loss.backward()
        else:  # without any gradient, which is a difference
            for target in self._optimizer.targets:
                target.tensor.grad = gradient_of(target)
        found = [self._of_loss(number, loss, step)]
        found += self._of_gradients(number, step)
        # Only now: both sides have computed their gradients before TensorFlow changes anything.
        values, gradients = step.finish()
        given = {
            node: (torch.tensor(slices), None if rows is None else torch.tensor(rows))
            for node, (slices, rows) in gradients.items()
        }
        told = [one for one in self._optimizer.targets if set(one.updates) <= set(given)]
        found += self._of_formulas(number, values, GivenStep(self._optimizer, told, given))
        for target in self._optimizer.targets:
            if target not in told:
                found += self._of_target(number, step, values, target, before)
        for name, value, parameter in self._statistics:
            want = _piece(values, name, parameter)
            found.append(self._difference("statistic", name, number, value(), want))
        for node, value in self._optimizer.counters.items():
            name = self._optimizer.names[node]
            found.append(self._difference("counter", name, number, value, _wanted(values, name)))
        self.compared = {}
        for difference in found:
            self._note(difference)

    def _of_loss(self, number: int, loss: Any, step: BegunStep) -> Difference:
        found = self._difference("loss", "loss", number, loss, step.loss)
        if found.relative <= self._tolerance:
            return found
        more = OF_ITSELF * step.rounding()[0] / self._tolerance
        return found._replace(relative=relative(loss, step.loss, max(abs(step.loss), more)))

    def _of_gradients(self, number: int, step: BegunStep) -> List[Difference]:
        found = []
        for target in self._optimizer.targets:
            ours = split(target, gradient_of(target))
            told = [
                (node, ours[node], step.gradients[node]) for node in ours if node in step.gradients
            ]
            for node, own, theirs in told:
                rows = same_rows(own, theirs)
                worst = of_rows(*rows)
                if not worst <= self._tolerance:
                    # A row of 1e-30 may be a sum that comes out as 0.
                    noise = step.rounding()[1][node] + ulp(rows[1], theirs[0].dtype)
                    worst = of_rows(*rows, noise=OF_ITSELF * noise / self._tolerance)
                found.append(Difference(worst, "gradient", target.name, number))
        return found

    def _of_formulas(self, number: int, values: Values, step: GivenStep) -> List[Difference]:
        """Compares the step by TensorFlow's gradients; torch continues from TensorFlow's values."""
        found = []
        wanted = [_piece(values, one.name, one.target.parameter) for one in step.values]
        # Measured at most once per step, and only if something differs.
        rounding = functools.lru_cache(maxsize=None)(step.rounding)
        for k, (one, want) in enumerate(zip(step.values, wanted)):
            worst = of_update(one.after, want, one.before)
            if not worst <= self._tolerance:
                noise = OF_ITSELF * rounding()[k] / self._tolerance
                worst = of_update(one.after, want, one.before, noise)
            found.append(Difference(worst, one.kind, one.name, number))
        step.put(wanted)
        return found

    def _difference(self, kind: str, name: str, number: int, got: Any, want: Any) -> Difference:
        theirs = numpy.asarray(array(want), numpy.float64)
        scale = float(numpy.sqrt(numpy.mean(theirs**2))) if theirs.size else 0.0
        self._scales[name] = max(scale, self._scales.get(name, 0.0))
        return Difference(relative(got, want, self._scales[name]), kind, name, number)

    def _note(self, difference: Difference) -> None:
        kind = difference.kind
        self.compared[kind] = self.compared.get(kind, 0) + 1
        # `not <=`, here and below: a NaN is a difference, and beyond every bound.
        if kind not in self.largest or not difference.relative <= self.largest[kind].relative:
            self.largest[kind] = difference
        if self.exceeded is None and not difference.relative <= self._tolerance:
            self.exceeded = difference

    def _of_target(
        self,
        number: int,
        step: BegunStep,
        values: Values,
        target: Target,
        before: Dict[str, torch.Tensor],
    ) -> List[Difference]:
        """Compares the step by torch's own gradient."""
        parameter, pairs = target.parameter, values_of(self._optimizer, target)
        found = []
        for kind, name, value in pairs:
            stored, want = as_stored(parameter, value), _piece(values, name, parameter)
            found.append(self._difference(kind, name, number, stored, want))
        worst, known = max(one.relative for one in found), target.attribute in self._neutral
        if worst <= self._tolerance and not known:
            return found
        # Asked once: a parameter that was neutral in one step stays so.
        if not known and not self._is_neutral(step, target, before):
            return found
        self._neutral.add(target.attribute)
        self.neutral[target.name] = max(worst, self.neutral.get(target.name, 0.0))
        for _, name, value in pairs:
            value.copy_(as_kept(parameter, _piece(values, name, parameter)))
        return []

    @torch.no_grad()
    def _is_neutral(self, step: BegunStep, target: Target, before: Dict[str, torch.Tensor]) -> bool:
        """Whether moving the parameter would not have changed the loss.

        Args:
            before: the module's state before the step.
        """
        after = {name: value.clone() for name, value in self._module.state_dict().items()}
        random = torch.Generator().manual_seed(0)
        losses = []
        for moved in (0.0, _MOVED):
            self._module.load_state_dict(before)
            move = moved * torch.randn(target.tensor.shape, generator=random)
            target.tensor.add_(move.to(target.tensor.device))
            losses.append(float(self._module(step.batch).sum()))
        self._module.load_state_dict(after)
        # 1e-30: a loss of 0 that does not change is unchanged.
        return abs(losses[1] - losses[0]) <= _STILL * max(abs(losses[0]), 1e-30)


def _piece(values: Values, name: str, parameter: Parameter) -> numpy.ndarray:
    whole = _wanted(values, name)
    return whole if parameter.rows is None else whole[slice(*parameter.rows)]


def _wanted(values: Values, name: str) -> numpy.ndarray:
    if name not in values:
        raise BadInput(f"the recorded step has no value of {name!r}, which torch trains")
    return values[name]


def _statistics(training: Training) -> List[Tuple[str, Any, Parameter]]:
    """The name, a getter and the kind of each moving statistic and table that is not trained."""

    def value_of(attribute: str, parameter: Parameter) -> Any:
        return lambda: as_stored(parameter, operator.attrgetter(attribute)(training.module))

    counters = set(training.optimizer.counters)
    return [
        (parameter.variable, value_of(parameter.attribute, parameter), parameter)
        for node, parameter in training.module.tensorflow_nodes.items()
        if not parameter.trainable and node not in counters
    ]


class _NoDropout(TorchFunctionMode):
    """Makes F.dropout return its input."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if function is functional.dropout:
            return args[0]
        return function(*args, **(kwargs or {}))
