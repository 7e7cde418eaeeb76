"""A checkpoint's graph in TensorFlow and the model.py of its conversion, opened to be compared.

A graph that was built for training scores in its serving form, see `serving`, and a note says so.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np

from migrate.behaviour import subject as subjects
from migrate.behaviour.first_node import find_first
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.in_torch import Converted
from migrate.behaviour.report import NodeDifference
from migrate.behaviour.rows import Rows
from migrate.behaviour.serving import as_it_serves
from migrate.behaviour.setting import Setting
from migrate.behaviour.subject import Subject, open_subject
from migrate.behaviour.tables_by_id import begin_with_zeros, zeros_fed
from migrate.graph.metagraph import Edge
from migrate.model.outputs import Outputs, find_outputs
from migrate.open import open_model
from migrate.scoring.module_inputs import ModuleInputs
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import in_session, of_edge

Names = Union[str, Sequence[str], None]  # of outputs; None: all


@contextlib.contextmanager
def open_both(
    prefix: str, converted: str, setting: Setting, outputs: Names = None
) -> Iterator[Both]:
    """A context in which both sides are open.

    Args:
        prefix: a checkpoint with its MetaGraph, a SavedModel or a frozen graph.
        converted: its conversion by `semisync convert --model`.
        outputs: the outputs of model.py to compare.

    Raises:
        BadInput, UsageError: they cannot be compared.
    """
    model = Converted(converted)
    with open_model(prefix) as checkpoint:
        subject = open_subject(checkpoint, converted, setting, model.inputs)
        both = Both(subject, model, setting, outputs)
        try:
            yield both
        finally:
            both.close()


class Both:
    """The two sides.

    Attributes:
        subject: the checkpoint's graph.
        written: its source, with all outputs of model.py.
        model: model.py.
        given: its inputs.
        fixed: rows that TensorFlow takes at a time; None: any number.
        chosen: the outputs that are compared, by their names in model.py.
        tensorflow: the graph.
    """

    def __init__(
        self,
        subject: Subject,
        model: Converted,
        setting: Setting,
        outputs: Names,
    ) -> None:
        self.subject, self.model = subject, model
        every = find_outputs(subject.found.graph, list(model.outputs))
        self.written = subject.write(every)
        self.chosen = _chosen(subject, model, every, outputs)
        self._serving = as_it_serves(subject, self.written, setting, model.inputs, every.values())
        constants = subjects.told_feeds(setting, model.inputs)
        self.given = ModuleInputs(model.path, model.inputs, setting.named, constants)
        # TensorFlow's graph keeps its size even if model.py takes any number of rows.
        self.fixed = self.written.freed.size or self.given.batch
        # New rows begin with random values, which both sides cannot share.
        begin_with_zeros(zeros_fed(subject), model.module)
        self.tensorflow = self._open(setting)

    def _open(self, setting: Setting) -> TensorFlowGraph:
        inputs = [(one, self.model.inputs[one.name].tensors) for one in self.given.inputs]
        feeds = self._serving.feeds
        fed = [*feeds, *(tensor for _, tensors in inputs for tensor in tensors)]
        self._fed = [in_session(name) for name in fed]
        subjects.refuse_unfed(self.subject, self.chosen.values(), self._fed)
        names = [of_edge(edge) for edge in self.chosen.values()]
        return TensorFlowGraph(
            setting,
            self.subject.checkpoint,
            self.subject.raw,
            inputs,
            feeds,
            names,
            weights=[node for node in self.written.by_node if node in self.subject.raw.nodes],
            fused=self._serving.fused,
        )

    def rounding(self, batch: Rows, tensor: str) -> Callable[[], np.ndarray]:
        """The rounding of TensorFlow's value of a tensor, for a batch."""

        def ask() -> np.ndarray:
            return self.tensorflow.fetch(batch.size, batch.features, [tensor], rounding=True)[0]

        return ask

    def first_node(self, batch: Rows) -> Optional[NodeDifference]:
        """The first node that differs for a batch, see `first_node`."""
        ends, given = set(self.chosen.values()), self.given.of(batch.features)
        return find_first(
            self.subject, self.written, self.model, self.tensorflow, ends, batch, given
        )

    def given_of(self, batch: Rows) -> Dict[str, Any]:
        """The inputs of model.py for a batch; without padding if it takes any number of rows."""
        return self.given.of(batch.features if self.given.batch else batch.read)

    def drawing(self) -> str:
        """The nodes before the outputs that draw at random."""
        return subjects.drawing(self.subject, self.chosen.values(), self._fed)

    def notes(self) -> List[str]:
        """Notes on how both were run."""
        off = subjects.no_dropout(self.subject, self.written.emitter)
        notes = [self.written.freed.note] if self.written.freed.note else []
        if self._serving.changes:
            notes.append(
                "the graph was built for training: BatchNorm took its moving statistics on both "
                "sides, as it does when it serves"
            )
        if off:
            drops = f": {self.written.drops}" if self.written.drops else ""
            notes.append("dropout was off on both sides" + drops)
        return notes

    def close(self) -> None:
        """Ends TensorFlow."""
        self.tensorflow.close()


def _chosen(
    subject: Subject,
    model: Converted,
    every: Outputs,
    named: Names,
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
