"""The part of a model that computes with numbers alone, which ONNX can represent.

The graph is cut where text becomes numbers (hashing, vocabularies, parsing). The tensors there are
inputs of the part, with values fetched from TensorFlow.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

import numpy as np
import torch

from migrate.behaviour.in_torch import Converted, with_weights_of
from migrate.behaviour.subject import Subject
from migrate.graph.metagraph import Edge, Graph
from migrate.model.layers.layer import SAME
from migrate.model.load import Written
from migrate.model.lookup_tables import TABLES
from migrate.model.ops.values import STRINGS, TENSOR
from migrate.model.outputs import Outputs
from migrate.model.training.cutting import Given, cut
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge
from semisync.common.walks import along


class Numeric(NamedTuple):
    """A module of numbers.

    Attributes:
        module: returns several outputs.
        places: the positions of the compared outputs.
        tensors: names of its inputs in TensorFlow, in order.
        values: of these, for one batch.
        names: of the module's inputs that the tensors are parts of.
    """

    module: Any
    places: List[int]
    tensors: List[str]
    values: List[torch.Tensor]
    names: List[str]


class Positional(torch.nn.Module):
    """A module that takes its inputs one by one, as exporters require."""

    def __init__(self, part: Numeric) -> None:
        super().__init__()
        self.training = False
        self.module, self._names, self._places = part.module, part.names, part.places

    def forward(self, *values: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        """The compared outputs of the module."""
        given: Dict[str, Any] = {}
        for name, value in zip(self._names, values):
            given.setdefault(name, []).append(value)
        found = self.module({k: v[0] if len(v) == 1 else tuple(v) for k, v in given.items()})
        found = found if isinstance(found, tuple) else (found,)
        return tuple(found[place] for place in self._places)


def numeric_part(
    subject: Subject,
    written: Written,
    outputs: Outputs,
    model: Converted,
    given: Mapping[str, Any],
    fetch: Callable[[Sequence[str]], Sequence[np.ndarray]],
) -> Numeric:
    """The part, with the conversion's weights; for a model without text its own model.py.

    Args:
        given: the inputs of the whole module, for one batch.
        fetch: TensorFlow's values of tensors.

    Raises:
        BadInput: the model needs text for more than to make numbers of it.
    """
    edges = _becoming_numbers(subject, written)
    if not edges:
        # No text: the numeric part is the conversion's whole model.py.
        wanted = {name: model.inputs[name].tensors for name in given}
        places = [model.outputs.index(name) for name in outputs]
        return _listed(model.module, places, wanted, given)
    cuts = {edge: Given(of_edge(edge), dtype) for edge, dtype in edges.items()}
    graph = cut(subject.found.graph, cuts)
    rest = subject._replace(found=subject.found._replace(graph=graph))
    source = rest.write(outputs)
    module = with_weights_of(model.directory, source, rest)
    own = {one.name for one in cuts.values()}
    taken = [name for name in module.tensorflow_inputs if name in own]
    values = {name: torch.from_numpy(one.copy()) for name, one in zip(taken, fetch(taken))}
    known = {**given, **values}
    wanted = {
        name: [name] if name in own else one.tensors
        for name, one in module.tensorflow_inputs.items()
        if name in known
    }
    return _listed(module, list(range(len(outputs))), wanted, known)


def _listed(
    module: Any, places: List[int], wanted: Mapping[str, Sequence[str]], known: Mapping[str, Any]
) -> Numeric:
    values: List[Any] = []
    for name in wanted:
        values += known[name] if isinstance(known[name], (tuple, list)) else [known[name]]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise BadInput("the model needs text for more than to make numbers of it; ONNX has no text")
    names = [name for name, tensors in wanted.items() for _ in tensors]
    return Numeric(module, places, [one for many in wanted.values() for one in many], values, names)


def _becoming_numbers(subject: Subject, written: Written) -> Dict[Edge, str]:
    """The tensors of numbers that are computed from text or a table, with their dtypes."""
    emitter, nodes = written.emitter, subject.found.graph.nodes
    texts = {edge for edge, value in emitter.inputs.items() if value.dtype == "string"}
    computed = emitter.computed()
    texts |= {edge for edge, value in computed.items() if value.kind == STRINGS}
    return {
        edge: value.dtype
        for edge, value in computed.items()
        if value.kind == TENSOR and value.dtype is not None and edge[0] not in emitter.layers
        if edge[0] in nodes
        if any(_reads_text(subject.found.graph, one, texts) for one in nodes[edge[0]].inputs)
    }


def _reads_text(graph: Graph, edge: Edge, texts: Set[Edge]) -> bool:
    """Whether `edge` is text, or a table in which numbers are looked up."""
    way = list(along(edge, lambda one: graph.handed(one, SAME)))
    return not texts.isdisjoint(way) or graph.nodes[way[-1][0]].op in TABLES
