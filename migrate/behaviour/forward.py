"""The same rows through TensorFlow and through model.py: every output, and the first node that
differs.

1. Batches go through both; the outputs are compared row by row, see `difference`.
2. The graph must be the same function twice: where TensorFlow gives other outputs for the same
   batch, something in it draws at random, and nothing can be compared.
3. Where an output differs, `first_node` looks for the first node that does, in the first batch in
   which one is too far.

4. onnxruntime compares the first batch, too, where the model can be exported, see `onnx_legs`.

A graph that was built for training scores in its serving form, see `serving`, and a note says so.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Union

import numpy as np

from migrate.behaviour import subject as subjects
from migrate.behaviour.difference import apart
from migrate.behaviour.first_node import find_first
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.in_torch import Converted
from migrate.behaviour.largest import Largest
from migrate.behaviour.numeric import numeric_part
from migrate.behaviour.onnx_legs import OF_TENSORFLOW, OF_TORCH, Legs, Witness, run_legs
from migrate.behaviour.report import TORCH, ForwardReport
from migrate.behaviour.rows import Rows, read_rows
from migrate.behaviour.serving import serving_form
from migrate.behaviour.setting import DEFAULT, Setting
from migrate.behaviour.subject import Subject, open_subject
from migrate.behaviour.tables_by_id import begin_with_zeros, zeros_fed
from migrate.graph.metagraph import Edge
from migrate.model.outputs import Outputs, find_outputs
from migrate.open import open_model
from migrate.scoring.module_inputs import ModuleInputs
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import in_session, of_edge

ROWS = 10_000


def compare_forward(
    prefix: str,
    converted: str,
    data: str,
    setting: Setting = DEFAULT,
    outputs: Union[str, Sequence[str], None] = None,
    rows: int = ROWS,
    onnx: bool = True,
) -> ForwardReport:
    """Whether model.py gives what TensorFlow gives.

    Args:
        prefix: a checkpoint with its MetaGraph, a SavedModel or a frozen graph.
        converted: what `semisync convert --model` wrote of it.
        data: a data set as `semisync score` reads it.
        outputs: those of model.py to compare; by default all.
        rows: of the data set, the first ones.
        onnx: whether onnxruntime is a third witness.

    Raises:
        BadInput, UsageError: what cannot be compared.
    """
    if rows < 1:
        raise UsageError(f"--rows is 1 or more, not {rows}")
    model = Converted(converted)
    with open_model(prefix) as checkpoint:
        subject = open_subject(checkpoint, converted, setting, model.inputs)
        both = _Both(subject, model, setting, outputs)
        try:
            batches = read_rows(data, both.given.inputs, setting, both.given.batch)
            return both.compare(batches, rows, onnx)
        finally:
            both.close()


class _Both:
    """The two sides, opened."""

    def __init__(
        self,
        subject: Subject,
        model: Converted,
        setting: Setting,
        outputs: Union[str, Sequence[str], None],
    ) -> None:
        self._subject, self._model = subject, model
        every = find_outputs(subject.found.graph, list(model.outputs))
        self._written = subject.write(every)
        self._chosen = _chosen(subject, model, every, outputs)
        self._serving = serving_form(subject, self._written, every.values())
        constants = subjects.told_feeds(setting, model.inputs)
        self.given = ModuleInputs(model.path, model.inputs, setting.named, constants)
        self._zeros = zeros_fed(subject)
        begin_with_zeros(self._zeros, model.module)
        self._tensorflow = self._open(setting, constants)

    def _open(self, setting: Setting, constants: Dict[str, Any]) -> TensorFlowGraph:
        emitter = self._written.emitter
        told = subjects.training_feeds(emitter, setting, training=False)
        if any(told.values()):
            raise UsageError("--forward compares how both score; feed False to what says training")
        inputs = [(one, self._model.inputs[one.name].tensors) for one in self.given.inputs]
        feeds = {
            **subjects.session_feeds(setting, self._model.inputs, constants),
            **subjects.no_dropout(self._subject, emitter),
            **told,
            **self._serving.feeds,
            **self._zeros,
        }
        fed = [*feeds, *(tensor for _, tensors in inputs for tensor in tensors)]
        self._fed = [in_session(name) for name in fed]
        subjects.refuse_unfed(self._subject, self._chosen.values(), self._fed)
        names = [of_edge(edge) for edge in self._chosen.values()]
        return TensorFlowGraph(
            setting,
            self._subject.checkpoint,
            self._subject.raw,
            inputs,
            feeds,
            names,
            weights=[node for node in self._written.by_node if node in self._subject.raw.nodes],
            fused=self._serving.fused,
        )

    def compare(self, batches: Iterator[Rows], count: int, onnx: bool) -> ForwardReport:
        """All batches, up to `count` rows."""
        names = list(self._chosen)
        tensors = [of_edge(edge) for edge in self._chosen.values()]
        largest = {name: Largest(name, TORCH) for name in names}
        done, failing, legs = 0, None, Legs([], {})
        for batch in batches:
            batch = batch.first(count - done)
            theirs = self._tensorflow.fetch(batch.size, batch.features, tensors)
            given = self.given.of(batch.features)
            ours = dict(zip(self._model.outputs, self._model.run(given)))
            if not done:
                self._check_twice(batch, theirs, tensors)
                legs = self._legs(batch, given, dict(zip(tensors, theirs))) if onnx else legs
            beyond = [
                largest[name].take(batch, value, ours[name], self._rounding(batch, tensor))
                for name, tensor, value in zip(names, tensors, theirs)
            ]
            if failing is None and any(beyond):
                failing = batch, given
            done += batch.rows
            if done >= count:
                break
        first = None
        if failing is not None:
            first = find_first(
                self._subject,
                self._written,
                self._model,
                self._tensorflow,
                set(self._chosen.values()),
                *failing,
            )
        told = [one.told() for one in largest.values()]
        return ForwardReport(done, told + legs.outputs, first, legs.skipped, self._notes())

    def _legs(
        self, batch: Rows, given: Mapping[str, Any], theirs: Mapping[str, np.ndarray]
    ) -> Legs:
        names = {of_edge(edge): name for name, edge in self._chosen.items()}
        subject, tensorflow = self._subject, self._tensorflow
        fetch = functools.partial(tensorflow.fetch, batch.size, batch.features)
        try:
            part = numeric_part(subject, self._written, self._chosen, self._model, given, fetch)
        except BadInput as error:
            return Legs([], {OF_TORCH: str(error), OF_TENSORFLOW: str(error)})
        return run_legs(tensorflow, part, Witness(batch, theirs, names))

    def _rounding(self, batch: Rows, tensor: str) -> Callable[[], np.ndarray]:
        """What TensorFlow's value of a tensor differs from itself by, for a batch."""

        def ask() -> np.ndarray:
            return self._tensorflow.fetch(batch.size, batch.features, [tensor], rounding=True)[0]

        return ask

    def _check_twice(self, batch: Rows, theirs: List[np.ndarray], tensors: List[str]) -> None:
        again = self._tensorflow.fetch(batch.size, batch.features, tensors)
        if any(apart(one, other).beyond.any() for one, other in zip(theirs, again)):
            nodes = subjects.drawing(self._subject, self._chosen.values(), self._fed)
            raise BadInput(
                f"{self._subject.raw.path}: TensorFlow gives other outputs for the same rows each "
                f"time, as the graph draws at random in {nodes}; feed what turns that off, such as "
                "--feed keep_prob=1.0"
            )

    def _notes(self) -> List[str]:
        off = subjects.no_dropout(self._subject, self._written.emitter)
        notes = []
        if self._serving.changes:
            notes.append(
                "the graph was built for training: BatchNorm took its moving statistics on both "
                "sides, as it does when it serves"
            )
        if off:
            drops = f": {self._written.drops}" if self._written.drops else ""
            notes.append("dropout was off on both sides" + drops)
        return notes

    def close(self) -> None:
        """Ends TensorFlow."""
        self._tensorflow.close()


def _chosen(
    subject: Subject,
    model: Converted,
    every: Outputs,
    named: Union[str, Sequence[str], None],
) -> Dict[str, Edge]:
    wanted = every
    if named is not None:
        wanted = find_outputs(subject.found.graph, named)
    by_edge = {edge: name for name, edge in every.items()}
    missing = [name for name, edge in wanted.items() if edge not in by_edge]
    if missing:
        raise UsageError(
            f"{model.path} gives no output {missing[0]!r} but {', '.join(every)}; `semisync "
            f"convert --model --output {missing[0]}` makes one that does"
        )
    hidden = [name for name, edge in wanted.items() if not subject.has(edge)]
    if hidden:
        raise BadInput(
            f"{subject.raw.path}: the output {hidden[0]!r} is in a function, where TensorFlow "
            "cannot fetch it"
        )
    return {by_edge[edge]: edge for edge in wanted.values()}
