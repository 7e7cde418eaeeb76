"""The training op's own steps on the same batches in TensorFlow and in torch, compared after each.

1. The loss, the training op and its optimizers are those that `migrate.build_training` finds. The
   weights, slots and counters are the conversion's; one that it lacks is a difference. What the
   checkpoint lacks of the optimizers' state begins on both sides at the graph's first values.
2. TensorFlow begins a step: what the graph draws at random first, then the loss and the gradients.
   What was drawn is fed to both sides.
3. torch does the same, and `migrate.model.training.steps` compares both. Then both take the step
   with TensorFlow's gradients: every parameter, slot, statistic and counter after it is compared.
4. Steps pass one by one; none is kept.

Dropout is off on both sides. Where it cannot be in TensorFlow, the loss of a batch is another each
time, and nothing is compared.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import (
    Any,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from migrate.behaviour import subject as subjects
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.report import StepDifference, TrainingReport
from migrate.behaviour.rows.reading import read_full
from migrate.behaviour.setting import DEFAULT, Setting
from migrate.behaviour.subject import Subject, open_subject
from migrate.behaviour.tables_by_id import TablesById, begin_with_zeros, zeros_fed
from migrate.graph.lowering.by_id import rows_written
from migrate.graph.metagraph import Edge
from migrate.graph.writes import initializer
from migrate.manifest.naming import ids_of
from migrate.model.emitter import Emitter
from migrate.model.folding import RANDOM
from migrate.model.training.build import Training, build_training
from migrate.model.training.cutting import Given, cut
from migrate.model.training.recipe import Recipe, read_recipe
from migrate.model.training.steps import TOLERANCE, BegunStep, GivenGradients, Values, compare_steps
from migrate.open import open_model
from migrate.scoring.module_inputs import ModuleInputs
from migrate.verification.carried import Carried, Lost
from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import in_session, of_edge, short, split

STEPS = 100
_SAMPLER = "CandidateSampler"
_OF_SAMPLER = ("int64", "float32", "float32")  # the sampled classes, two expected counts
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
        converted: what `semisync convert` wrote of it.
        data: a data set as `semisync score` reads it, with the labels; its rows are taken in
            order, `setting.reading.size` a step, and again from the first.
        tolerance: see `migrate.model.training.steps`.

    Raises:
        BadInput, UsageError: what cannot be compared, such as a graph that does not train.
    """
    if steps < 1:
        raise UsageError(f"--steps is 1 or more, not {steps}")
    with open_model(prefix) as checkpoint:
        subject = open_subject(checkpoint, converted, setting)
        try:
            both = _Both(subject, converted, setting)
        except Lost as error:
            return TrainingReport(0, tolerance, [], None, {}, {}, [], [], str(error))
        try:
            recorded = itertools.islice(both.steps(data), steps)
            found = compare_steps(both.training, recorded, tolerance)
        finally:
            both.close()
    largest = [_told(one) for _, one in sorted(found.largest.items())]
    exceeded = None if found.exceeded is None else _told(found.exceeded)
    return TrainingReport(
        found.steps,
        tolerance,
        largest,
        exceeded,
        found.neutral,
        found.compared,
        list(both.training.optimizer.left_out),
        both.notes,
        begun=list(both.training.optimizer.begun),
    )


class _Both:
    """The two sides, opened. training: torch's. notes: how both run."""

    def __init__(self, subject: Subject, converted: str, setting: Setting) -> None:
        self._subject, self._setting = subject, setting
        graph = subject.found.graph
        recipe = read_recipe(graph)
        self._loss = recipe.loss(graph)
        sampled = _sampled(subject, self._loss)
        emitter = _emitter(subject, self._loss, sampled)
        self._drawn = {**sampled, **_random(subject, emitter)}
        self._training_told = subjects.training_feeds(emitter, setting, training=True)
        self.training = self._build(converted)
        wanted = self.training.module.tensorflow_inputs
        own = {name: one for name, one in wanted.items() if name not in self._drawn}
        self._constants = subjects.told_feeds(setting, own)
        self._given = ModuleInputs(graph.path, own, setting.named, self._constants)
        off = subjects.no_dropout(subject, emitter)
        self._by_id = TablesById(subject, self.training)
        self._zeros = zeros_fed(subject)
        begin_with_zeros(self._zeros, self.training.module)
        self.notes = ["dropout was off on both sides"] if off else []
        self._tensorflow = self._open(recipe, own, off)

    def _build(self, converted: str) -> Training:
        subject = self._subject
        training = build_training(
            Carried(subject.checkpoint, converted),
            subject.raw.path,
            feeds=_numbers(self._setting),
            given=dict(self._drawn),
            assets=self._setting.assets,
        )
        trains = set(self._training_told.values()) or {True}
        if len(trains) > 1:
            raise UsageError(
                "--feed says of some placeholders that the model trains, and of others that it "
                f"does not: {self._training_told}"
            )
        training.module.train(trains.pop())
        return training

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
        subjects.refuse_unfed(subject, map(split, self._drawn), map(in_session, fed))
        gradients, unread = _gradients(subject, self.training)
        writers = _writers(subject, recipe)
        rates = _raced(subject, self.training, writers)
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
            "rates": rates,
            "gradients": gradients,
            "variables": _variables(subject, self.training, self._by_id.tensors),
            "tables": self._by_id.tensors,
            "moved": _moved(subject, writers, self._loss, gradients, self._fed),
            "begun": _initializers(subject, self.training, recipe),
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
        size = self._given.batch or self._setting.reading.size
        batches = read_full(data, self._given.inputs, self._setting, self._given.batch)
        for number, features in enumerate(batches):
            begun = self._tensorflow.begin(size, features, twice=not number)
            self._check(begun.loss, begun.again)
            given = self._given.of(features)
            drawn = {name: _tensor(value) for name, value in begun.drawn.items()}
            rounding = functools.lru_cache(maxsize=None)(
                functools.partial(self._rounding, begun.gradients)
            )
            gradients = self._by_id.gradients(begun.gradients)
            yield BegunStep({**given, **drawn}, begun.loss, gradients, rounding, self._finish)

    def _rounding(self, gradients: GivenGradients) -> Tuple[float, Values]:
        loss, found = self._tensorflow.rounding()
        return loss, self._by_id.rounding(found, gradients)

    def _finish(self) -> Tuple[Values, GivenGradients]:
        values, ids, gradients = self._tensorflow.finish()
        return self._by_id.after(values, ids), self._by_id.gradients(gradients)

    def _check(self, loss: float, again: Optional[float]) -> None:
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


def _emitter(subject: Subject, loss: Edge, sampled: Mapping[str, str]) -> Emitter:
    given = {split(name): Given(name, dtype) for name, dtype in sampled.items()}
    found = subject.found._replace(graph=cut(subject.found.graph, given))
    return subject._replace(found=found).write({of_edge(loss): loss}).emitter


def _sampled(subject: Subject, loss: Edge) -> Dict[str, str]:
    """The tensors of samplers of classes that the loss depends on, with their dtypes."""
    nodes = subject.found.graph.nodes
    needed = subjects.upstream(subject.found.graph, [loss])
    return {
        of_edge(edge): _OF_SAMPLER[edge[1]]
        for name in sorted(needed)
        for edge in nodes[name].inputs
        if nodes[edge[0]].op.endswith(_SAMPLER) and subject.has(edge)
    }


def _random(subject: Subject, emitter: Emitter) -> Dict[str, str]:
    """The tensors that the module would draw at random, with their dtypes; but for recognised
    dropout, and for those in branches, loops and functions, where nothing can be fed."""
    nodes = subject.found.graph.nodes
    return {
        of_edge(edge): str(value.dtype)
        for edge, value in emitter.computed().items()
        if nodes[edge[0]].op in RANDOM and subject.has(edge)
    }


def _variables(
    subject: Subject, training: Training, tables: Collection[str]
) -> Dict[str, List[str]]:
    """The nodes of all that is compared, by the name in the checkpoint; but for tables by id."""
    optimizer = training.optimizer
    names = {one.variable for one in training.module.tensorflow_nodes.values()}
    names |= {target.name for target in optimizer.targets}
    names |= {name for slots in optimizer.slots.values() for name in slots.values()}
    names |= set(optimizer.names.values())
    names -= {*tables, *map(ids_of, tables)}
    nodes: Dict[str, List[str]] = {name: [] for name in names}
    for node, saved in sorted(subject.found.saved.items(), key=lambda item: item[1].row):
        if saved.name in nodes and node in subject.raw.nodes:
            nodes[saved.name].append(node)
    nodes.update(optimizer.begun)
    return nodes


def _initializers(subject: Subject, training: Training, recipe: Recipe) -> List[str]:
    """The nodes that give first values to what a step needs and the checkpoint lacks."""
    begun = (node for nodes in training.optimizer.begun.values() for node in nodes)
    lacking = {*begun, *recipe.changes.written} - set(subject.found.saved)
    return sorted({initializer(node) for node in lacking} & set(subject.raw.nodes))


def _gradients(
    subject: Subject, training: Training
) -> Tuple[Dict[str, List[Optional[str]]], List[str]]:
    """The tensors of the gradients by variable node, and a note on those that cannot be read."""
    found: Dict[str, List[Optional[str]]] = {}
    unread: List[str] = []
    for target in training.optimizer.targets:
        edges = [edge for slices in target.gradients.values() for edge in slices if edge]
        if not all(subject.has(edge) for edge in edges):
            unread.append(target.name)
            continue
        for node, slices in target.gradients.items():
            found[node] = [None if edge is None else of_edge(edge) for edge in slices]
    notes = []
    if unread:
        notes.append(
            f"torch took gradients of its own of {some_of(map(repr, unread))}"
            ": the graph computes them in a function, where TensorFlow does not let one read them"
        )
    return found, notes


def _writers(subject: Subject, recipe: Recipe) -> Dict[str, Set[str]]:
    """Every variable that a step writes: the nodes of the raw graph that do so."""
    return {
        variable: {node.name for node in nodes} & subject.raw.nodes.keys()
        for variable, nodes in recipe.changes.written.items()
    }


def _raced(subject: Subject, training: Training, written: Mapping[str, Set[str]]) -> List[str]:
    """The hyperparameters that a step computes of variables that it writes, in no order: BERT's job
    assigns the global step beside its optimizer. None whose own computing writes."""
    graph = subject.raw
    writing: Set[str] = set().union(*written.values())

    def in_no_order(edge: Edge) -> bool:
        read = subjects.upstream(graph, [edge], controls=False) & written.keys() - {edge[0]}
        writers = [(name, 0) for variable in read for name in written[variable]]
        if not writers or subjects.upstream(graph, [edge]) & writing:
            return False
        return any(edge[0] not in subjects.upstream(graph, [one]) for one in writers)

    edges = {edge for rule in training.optimizer.rules.values() for _, edge in rule.edges}
    return [of_edge(edge) for edge in sorted(filter(subject.has, edges)) if in_no_order(edge)]


def _moved(
    subject: Subject,
    written: Mapping[str, Set[str]],
    loss: Edge,
    gradients: Mapping[str, Sequence[Optional[str]]],
    fed: List[str],
) -> List[str]:
    """The variables that computing the loss and the gradients changes."""
    told = [split(tensor) for tensors in gradients.values() for tensor in tensors if tensor]
    needed = subjects.upstream(subject.raw, [loss, *told], fed)
    return sorted(
        variable
        for variable, writers in written.items()
        if variable in subject.raw.nodes and writers & needed
    )


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


def _told(difference: Any) -> StepDifference:
    return StepDifference(
        difference.kind, difference.name, difference.step, float(difference.relative)
    )
