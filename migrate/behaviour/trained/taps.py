"""The tensors of a running model.py that correspond to tensors of the graph, from which the graph's
loss is computed.

1. Its outputs, and tensors before them that are only passed on.
2. If an output is a sigmoid or a softmax, the input of that, see `listening`: a loss reads logits
   where the model returns probabilities.
3. If the loss reads features past these, like a sampled softmax, which reads the last layer, the
   local variables of `forward` and its parts when they return. This requires that model.py has the
   names that the conversion writes.

A reshape in between is undone, if the graph has the shape.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch

from migrate.behaviour.in_torch import Converted
from migrate.behaviour.trained.listening import ACTIVATIONS, Listening
from migrate.graph.attributes import Shape, output_shape
from migrate.graph.metagraph import Edge, Graph
from migrate.model.load import Written
from migrate.model.ops.values import TENSOR
from semisync.common.errors import BadInput

_RESHAPES = {"ExpandDims", "Reshape", "Squeeze"}
_PASSES_ON = {"CheckNumerics", "Identity", "EnsureShape", *_RESHAPES}


class Tap(NamedTuple):
    """The position of a tensor to read.

    Attributes:
        output: the number of an output; None: it is a local variable.
        name: in the source; for an output, its name in the graph.
        activation: torch's name of the activation between the tensor and the output.
        shape: of the tensor, if it was reshaped.
    """

    output: Optional[int]
    name: str
    activation: str = ""
    shape: Shape = None

    def read(
        self,
        path: str,
        outputs: Sequence[torch.Tensor],
        run: Listening,
        names: Mapping[str, Any],
    ) -> torch.Tensor:
        """The tensor.

        Args:
            path: of the source.
            names: the values of local variables when the methods return.

        Raises:
            BadInput: model.py, edited, does not have it.
        """
        found = names.get(self.name) if self.output is None else outputs[self.output]
        if self.activation and found is not None:
            found = run.of(found, self.activation)
        if not isinstance(found, torch.Tensor):
            what = f"computes no {self.name!r}, which the graph's loss reads"
            if self.activation:
                what = f"gives {self.name!r} as no {self.activation} of torch's, and the graph's "
                what += "loss reads what that is of"
            raise BadInput(
                f"{path} {what}, so that its steps cannot be compared; compute it as the "
                "conversion wrote it"
            )
        if self.shape is None:
            return found
        return found.reshape([-1 if size is None else size for size in self.shape])


def output_taps(graph: Graph, outputs: Mapping[str, Edge]) -> Dict[Edge, Tap]:
    """The taps of the first two kinds.

    Args:
        outputs: of model.py, in its order.
    """
    found: Dict[Edge, Tap] = {}
    for number, (name, edge) in enumerate(outputs.items()):
        for one, shape in _passed_on(graph, edge):
            found.setdefault(one, Tap(number, name, shape=shape))
        node = graph.nodes[graph.beyond(edge, _PASSES_ON)[0]]
        if node.op in ACTIVATIONS:
            for one, shape in _passed_on(graph, node.inputs[0]):
                found.setdefault(one, Tap(number, name, ACTIVATIONS[node.op], shape))
    return found


def name_taps(graph: Graph, written: Written, model: Converted) -> Dict[Edge, Tap]:
    """The taps of the third kind.

    Args:
        written: the source that the conversion writes.
    """
    known = model.names()
    found: Dict[Edge, Tap] = {}
    for edge, value in written.emitter.computed().items():
        if value.kind == TENSOR and value.text in known and edge[0] in graph.nodes:
            for one, shape in _passed_on(graph, edge):
                found.setdefault(one, Tap(None, value.text, shape=shape))
    return found


def _passed_on(graph: Graph, edge: Edge) -> Iterator[Tuple[Edge, Shape]]:
    """The tensor, and those before it with the same values, with the shape of each that was
    reshaped; only where the graph has the shapes."""
    reshaped = False
    while True:
        shape = output_shape(graph, graph.nodes[edge[0]], edge[1])
        # A reshape can be undone only if at most one size is unknown.
        if reshaped and (shape is None or shape.count(None) > 1):
            return
        yield edge, shape if reshaped else None
        node = graph.nodes[edge[0]]
        if node.op not in _PASSES_ON or not node.inputs:
            return
        reshaped = reshaped or node.op in _RESHAPES
        edge = node.inputs[0]
