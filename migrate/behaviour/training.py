"""The training op's own steps on the same batches in TensorFlow and with model.py, compared after
each.

1. The loss, the training op and its optimizers are those that `migrate.build_training` finds. The
   module of the conversion's model.py is trained, in training mode; its outputs, or the logits
   before its sigmoids, go into the graph's loss, see `trained.loss`. For a conversion without a
   model.py a module is made from the graph. The weights, slots and counters are the conversion's; a
   missing one is a difference. Optimizer state that the checkpoint lacks begins on both sides at
   the graph's initial values.
2. TensorFlow begins a step: random tensors first, then the loss and the gradients. The random
   values are fed to both sides.
3. torch does the same, and `migrate.model.training.steps` compares both. Then both take the step
   with TensorFlow's gradients: every parameter, slot, statistic and counter after it is compared.
4. Steps are compared one by one; none is kept.

Dropout at a constant rate is off on both sides, and its rates, places and masks' shapes are
compared separately, see `trained.dropouts`. If it cannot be turned off in TensorFlow, the loss of a
batch differs each time, and nothing is compared. The report lists the parts that are not compared.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from migrate.behaviour import subject as subjects
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.in_torch import Converted, open_converted
from migrate.behaviour.report import StepDifference, TrainingReport
from migrate.behaviour.rows import read_full
from migrate.behaviour.setting import DEFAULT, Setting
from migrate.behaviour.subject import Subject, open_subject
from migrate.behaviour.tables_by_id import TablesById, begin_with_zeros, zeros_fed
from migrate.behaviour.trained import asked
from migrate.behaviour.trained.dropouts import Dropouts
from migrate.behaviour.trained.loss import join, without_model
from migrate.graph.lowering.by_id import rows_written
from migrate.model.outputs import find_outputs
from migrate.model.training.build import Training, optimizer_of
from migrate.model.training.custom_gradients import refuse_custom_gradients
from migrate.model.training.recipe import Recipe, read_recipe
from migrate.model.training.steps import (
    TOLERANCE,
    BegunStep,
    Difference,
    GivenGradients,
    Values,
    compare_steps,
)
from migrate.open import open_model
from migrate.scoring.module_inputs import ModuleInputs
from migrate.verification.carried import Carried, Lost
from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import in_session, of_edge, short, split

STEPS = 100
_SAME = 1e-6  # relative difference of a loss that was computed twice


def compare_training(
    prefix: str,
    converted: str,
    data: str,
    setting: Setting = DEFAULT,
    steps: int = STEPS,
    tolerance: float = TOLERANCE,
) -> TrainingReport:
    """Whether torch takes TensorFlow's training steps.

    Args:
        prefix: a checkpoint with its MetaGraph and its slots.
        converted: its conversion by `semisync convert`.
        data: a data set as `semisync score` reads it, with the labels; its rows are taken in
            order, `setting.reading.size` a step, and again from the first.
        tolerance: see `migrate.model.training.steps`.

    Raises:
        BadInput, UsageError: they cannot be compared, as for a graph that does not train.
    """
    if steps < 1:
        raise UsageError(f"--steps is 1 or more, not {steps}")
    model = open_converted(converted)
    inputs = {} if model is None else model.inputs
    with open_model(prefix) as checkpoint:
        subject = open_subject(checkpoint, converted, setting, inputs)
        try:
            both = _Both(subject, converted, model, setting)
        except Lost as error:
            return TrainingReport(0, tolerance, [], None, {}, {}, [], [], str(error))
        try:
            recorded = itertools.islice(both.steps(data), steps)
            found = compare_steps(both.training, recorded, tolerance)
            dropouts = both.dropouts()
        finally:
            both.close()
    largest, compared = dict(found.largest), dict(found.compared)
    if dropouts:
        compared["dropout"] = len(dropouts)
        largest["dropout"] = max(dropouts, key=lambda one: one.relative)
    beyond = [found.exceeded, *(one for one in dropouts if not one.relative <= tolerance)]
    exceeded = next((_step_difference(one) for one in beyond if one is not None), None)
    return TrainingReport(
        found.steps,
        tolerance,
        [_step_difference(one) for _, one in sorted(largest.items())],
        exceeded,
        found.neutral,
        compared,
        list(both.training.optimizer.left_out),
        both.notes,
        begun=list(both.training.optimizer.begun),
        unchecked=both.unchecked,
    )


class _Both:
    """The two sides, opened.

    Attributes:
        training: torch's.
        notes: sentences on how both run.
        unchecked: sentences on the parts that are not compared.
    """

    def __init__(
        self, subject: Subject, converted: str, model: Optional[Converted], setting: Setting
    ) -> None:
        self._subject, self._setting = subject, setting
        recipe = read_recipe(subject.found.graph)
        self._loss = recipe.loss(subject.found.graph)
        refuse_custom_gradients(subject.found, subject.checkpoint, recipe, self._loss)
        outputs = find_outputs(subject.found.graph, [] if model is None else list(model.outputs))
        self._outputs = [self._loss, *outputs.values()]
        made = (
            without_model(subject, converted, self._loss)
            if model is None
            else join(subject, model, self._loss)
        )
        self._module, self._drawn, emitters = made.module, made.drawn, made.emitters
        told = [subjects.training_feeds(one, setting, training=True) for one in emitters]
        self._training_told = {flag: value for feeds in told for flag, value in feeds.items()}
        self.training = self._build(recipe, Carried(subject.checkpoint, converted))
        compares = model is not None
        self._dropouts = Dropouts(subject, emitters[0], self._module.training) if compares else None
        wanted = self._module.tensorflow_inputs
        own = {name: one for name, one in wanted.items() if name not in self._drawn}
        self._constants = subjects.told_feeds(setting, own)
        self._given = ModuleInputs(subject.raw.path, own, setting.named, self._constants)
        self._fixed = made.rows or self._given.batch
        off = {k: v for one in emitters for k, v in subjects.no_dropout(subject, one).items()}
        self._by_id = TablesById(subject, self.training)
        self._zeros = zeros_fed(subject)
        begin_with_zeros(self._zeros, self._module)
        self.notes = ["dropout was off on both sides"] if off else []
        self.unchecked = made.beside + (self._dropouts.unread_text if self._dropouts else [])
        self._tensorflow = self._open(recipe, own, off)

    def _build(self, recipe: Recipe, carried: Carried) -> Training:
        subject, module, feeds = self._subject, self._module, _numbers(self._setting)
        trains = set(self._training_told.values()) or {True}
        if len(trains) > 1:
            raise UsageError(
                "--feed says of some placeholders that the model trains, and of others that it "
                f"does not: {self._training_told}"
            )
        optimizer = optimizer_of(module, carried, subject.found, recipe, feeds, self._outputs)
        # The flags that are fed decide for both sides.
        module.train(trains.pop())
        return Training(module, optimizer, of_edge(self._loss))

    def _open(
        self, recipe: Recipe, wanted: Mapping[str, Any], off: Mapping[str, float]
    ) -> TensorFlowGraph:
        subject = self._subject
        inputs = [(one, wanted[one.name].tensors) for one in self._given.inputs]
        feeds = {
            **subjects.session_feeds(self._setting, wanted, self._constants),
            **off,
            **self._training_told,
            **self._zeros,
        }
        fed = [*feeds, *(tensor for _, tensors in inputs for tensor in tensors)]
        self._fed = [in_session(name) for name in (*fed, *self._drawn)]
        subjects.refuse_unfed(subject, [self._loss], self._fed)
        # Random tensors are fetched before they are fed: what they depend on must be fed as well.
        subjects.refuse_unfed(subject, map(split, self._drawn), map(in_session, fed))
        gradients, unread = asked.gradients(subject, self.training)
        writers = asked.writers(subject, recipe)
        rates = asked.raced(subject, self.training, writers)
        self.notes += unread
        if rates:
            self.notes.append(
                f"the graph may compute {some_of(map(repr, rates))} before or after a step moves "
                "what it depends on; TensorFlow was given the value of before"
            )
        told = {
            "loss": of_edge(self._loss),
            "ops": sorted(rows_written(subject.raw, recipe.changes.nodes).union(*writers.values())),
            "drawn": list(self._drawn),
            "watched": list(map(of_edge, self._dropouts.tensors)) if self._dropouts else [],
            "rates": rates,
            "gradients": gradients,
            "variables": asked.variables(subject, self.training, self._by_id.tensors),
            "tables": self._by_id.tensors,
            "moved": asked.moved(subject, writers, self._loss, gradients, self._fed),
            "begun": asked.initializers(subject, self.training, recipe),
        }
        nodes = self.training.module.tensorflow_nodes
        return TensorFlowGraph(
            self._setting,
            subject.checkpoint,
            subject.raw,
            inputs,
            feeds,
            weights=[node for node in nodes if node in subject.raw.nodes],
            steps=told,
        )

    def steps(self, data: str) -> Iterator[BegunStep]:
        """TensorFlow's steps, one after the other without end."""
        size = self._fixed or self._setting.reading.size
        batches = read_full(data, self._given.inputs, self._setting, self._fixed)
        for number, features in enumerate(batches):
            # The first batch shows whether the loss is random, and what the dropouts are given.
            begun = self._tensorflow.begin(size, features, twice=not number)
            self._check(begun.loss, begun.again)
            if not number:
                self._first = begun
            given = self._given.of(features)
            drawn = {name: _tensor(value) for name, value in begun.drawn.items()}
            rounding = functools.lru_cache(maxsize=None)(
                functools.partial(self._rounding, begun.gradients)
            )
            gradients = self._by_id.gradients(begun.gradients)
            yield BegunStep({**given, **drawn}, begun.loss, gradients, rounding, self._finish)

    def dropouts(self) -> List[Difference]:
        """The differences of model.py's dropouts from the graph's, after the first step."""
        if self._dropouts is None:
            return []
        values = {split(name): value for name, value in self._first.watched.items()}
        return self._dropouts.compare(values, self._module.dropped)

    def _rounding(self, gradients: GivenGradients) -> Tuple[float, Values]:
        loss, found = self._tensorflow.rounding()
        return loss, self._by_id.rounding(found, gradients)

    def _finish(self) -> Tuple[Values, GivenGradients]:
        values, ids, gradients = self._tensorflow.finish()
        return self._by_id.after(values, ids), self._by_id.gradients(gradients)

    def _check(self, loss: float, again: Optional[float]) -> None:
        # A NaN is no draw: the comparison of steps reports it.
        if again is None or abs(again - loss) <= _SAME * abs(loss) or loss != loss:
            return
        nodes = subjects.drawing(self._subject, [self._loss], self._fed)
        raise BadInput(
            f"{self._subject.raw.path}: the loss of one batch is {loss:.7g} and then {again:.7g}, "
            f"as the graph draws at random in {nodes}, where no value can be fed; feed what turns "
            "that off, such as --feed keep_prob=1.0"
        )

    def close(self) -> None:
        """Ends TensorFlow."""
        self._tensorflow.close()


def _numbers(setting: Setting) -> Dict[str, Any]:
    """The constants that may be hyperparameters, which text is not."""
    import torch

    found = {}
    for name, value in setting.feeds.items():
        with contextlib.suppress(TypeError, ValueError):
            found[short(name)] = torch.as_tensor(value)
    return found


def _tensor(value: Any) -> Any:
    import torch

    return torch.from_numpy(value.copy())


def _step_difference(difference: Any) -> StepDifference:
    return StepDifference(
        difference.kind, difference.name, difference.step, float(difference.relative)
    )
