"""Which tensors of a graph are its outputs.

1. What the caller names.
2. What a SavedModel's signature names, `serving_default` before others.
3. The logits that the graph's losses are given; if there are none, the logits that
   `migrate.graph.interface` finds; if none, the probabilities that losses are given; if none, the
   scores that it finds.
4. Where these are several or none, nothing is chosen, and the candidates are listed.
"""

from __future__ import annotations

from typing import Dict, Sequence, Union

from migrate.graph.interface import find_interface
from migrate.graph.interface.losses import losses
from migrate.graph.metagraph import Edge, Graph
from semisync.common.errors import BadInput, UsageError

_LISTED = 8
_SERVING = "serving_default"

_SAMPLERS = "CandidateSampler"  # what depends on sampled classes is for training alone

Outputs = Dict[str, Edge]


def find_outputs(graph: Graph, named: Union[str, Sequence[str], None]) -> Outputs:
    """The outputs by name.

    Raises UsageError for a name that the graph does not have, BadInput where they cannot be told.
    """
    if named is not None:
        names = [named] if isinstance(named, str) else list(named)
        return {name: tensor_edge(graph, name) for name in names}
    for key in sorted(graph.signatures, key=lambda key: (key != _SERVING, key)):
        told = graph.signatures[key].outputs
        if told:
            return {name: tensor_edge(graph, tensor) for name, tensor in sorted(told.items())}
    interface = find_interface(graph)
    walks = interface.walks
    samplers = [node.name for node in graph.nodes.values() if node.op.endswith(_SAMPLERS)]
    sampled = walks.downstream(edge for name in samplers for edge in walks.outputs(name))
    likely = [out for out in interface.outputs if _node(out.tensor) not in sampled]
    found = [output.tensor for output in likely]
    given = [loss for loss in losses(walks) if loss.scores[0] not in sampled]
    of_losses = {"{}:{}".format(*loss.scores) for loss in given if loss.what == "logits"}
    logits = {output.tensor for output in likely if output.what == "logits"}
    others = {"{}:{}".format(*loss.scores) for loss in given}
    chosen = next(filter(None, (of_losses, logits, others, set(found))), set())
    if len(chosen) == 1:
        (name,) = chosen
        return {name: tensor_edge(graph, name)}
    more = f", such as {', '.join(found[:_LISTED])}"
    raise BadInput(
        f"{graph.path}: which tensors are the outputs cannot be told; name them with --output"
        + (more if found else ": the graph has no loss and no end that is a score")
    )


def _node(tensor: str) -> str:
    return tensor.partition(":")[0]


def tensor_edge(graph: Graph, tensor: str) -> Edge:
    """The edge of a tensor's name, "NODE:0" or "NODE"; UsageError if the graph does not have it."""
    name, _, output = tensor.partition(":")
    if name not in graph.nodes or not (output or "0").isdigit():
        near = [other for other in graph.nodes if other.rpartition("/")[2] == name]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{graph.path} has no tensor {tensor!r}{hint}")
    return name, int(output or 0)
