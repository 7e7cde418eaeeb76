"""Which tensors of a graph are its outputs.

1. What the caller names: tensors, or outputs of a SavedModel's signatures.
2. What a SavedModel's signature names, `serving_default` before others.
3. Of a frozen graph, which was cut at its outputs: what nothing reads.
4. The logits that the graph's losses compare with what is fed; if there are none, the logits that
   `migrate.graph.interface` finds; if none, the probabilities that losses are given; if none, the
   scores that it finds.
5. If the graph trains by a loss that is not known, what that predicts with, see
   `migrate.graph.interface.prediction`; a tensor that nothing reads, only where it does not train.
6. Where these are several or none, nothing is chosen, and the candidates are listed.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, List, Sequence, Set, Union

from migrate.graph.interface import Interface, find_interface
from migrate.graph.interface.gradient_scopes import GradientScopes
from migrate.graph.interface.losses import Loss, losses
from migrate.graph.interface.prediction import prediction
from migrate.graph.interface.signatures import in_order
from migrate.graph.lookups import VARIABLES
from migrate.graph.metagraph import Edge, Graph
from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import node_of, split

_SAMPLERS = "CandidateSampler"  # what depends on sampled classes is for training alone

_SILENT = {"Assert", "NoOp", "Print", "PrintV2"}  # give nothing

# Give what the sizes of their input say, not its values.
_OF_SIZES = {"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"}

Outputs = Dict[str, Edge]


def find_outputs(graph: Graph, named: Union[str, Sequence[str], None]) -> Outputs:
    """The outputs by name.

    Raises:
        UsageError: a name that the graph does not have.
        BadInput: they cannot be told.
    """
    if named is not None:
        names = [named] if isinstance(named, str) else list(named)
        return {name: _named(graph, name) for name in names}
    signature = next(iter(in_order(graph)), None)
    if signature is not None:
        return {name: tensor_edge(graph, told) for name, told in sorted(signature.outputs.items())}
    interface = find_interface(graph)
    walks = interface.walks
    if not any(node.op in VARIABLES for node in graph.nodes.values()):
        return _only(graph, set(_ends(interface)), _ends(interface))
    samplers = [node.name for node in graph.nodes.values() if node.op.endswith(_SAMPLERS)]
    sampled = walks.downstream(edge for name in samplers for edge in walks.outputs(name))
    given = [loss for loss in losses(walks) if loss.scores[0] not in sampled]
    of_batch = _of_batch(interface, given)
    given = [loss for loss in given if loss.scores not in of_batch]
    within = {"{}:{}".format(*edge) for edge in of_batch}
    likely = [
        out
        for out in interface.outputs
        if node_of(out.tensor) not in sampled and out.tensor not in within
    ]
    found = [output.tensor for output in likely]
    of_losses = {"{}:{}".format(*loss.scores) for loss in given if loss.what == "logits"}
    logits = {output.tensor for output in likely if output.what == "logits"}
    others = {"{}:{}".format(*loss.scores) for loss in given}
    chosen = next(filter(None, (of_losses, logits, others)), set())
    if not chosen:
        chosen = _predicted(graph, interface, set(found))
    return _only(graph, chosen, found)


def _predicted(graph: Graph, interface: Interface, ends: Set[str]) -> Set[str]:
    """What the trained loss predicts with; `ends` of a graph that does not train."""
    losses = set(GradientScopes(graph).losses())
    told = [prediction(interface.walks, interface.feeds, loss) for loss in sorted(losses)]
    return {"{}:{}".format(*edge) for edge in told if edge} if losses else ends


def _of_batch(interface: Interface, given: Sequence[Loss]) -> Set[Edge]:
    """The scores of losses whose labels depend on no value that is fed: those of a softmax within
    the batch, such as its rows' numbers, depend on its size alone."""
    edges = [edge for feed in interface.feeds for edge in feed.edges]
    reached = interface.walks.downstream(edges, lambda node, _: node.op in _OF_SIZES)
    told = [(loss.scores, loss.labels) for loss in given if loss.labels is not None]
    return {scores for scores, labels in told if labels not in edges and labels[0] not in reached}


def _only(graph: Graph, chosen: AbstractSet[str], candidates: Sequence[str]) -> Outputs:
    """The only one of `chosen`; BadInput that lists the candidates where they are several."""
    if len(chosen) == 1:
        (name,) = chosen
        return {name: tensor_edge(graph, name)}
    more = f", such as {some_of(candidates, most=8)}"
    raise BadInput(
        f"{graph.path}: which tensors are the outputs cannot be told; name them with --output"
        + (more if candidates else ": the graph has no loss with labels and no end that is a score")
    )


def _ends(interface: Interface) -> List[str]:
    """The tensors that depend on what is fed and that nothing reads; without those that something
    waits for, as the branches of a tf.cond do for its pivots, where there are others."""
    walks = interface.walks
    fed = walks.downstream(edge for feed in interface.feeds for edge in feed.edges)
    ends = [node for node in walks.nodes.values() if not walks.outputs(node.name)]
    ends = [node for node in ends if node.name in fed and node.op not in _SILENT]
    awaited = {name for node in walks.nodes.values() for name in node.controls}
    return [f"{n.name}:0" for n in ends if n.name not in awaited] or [f"{n.name}:0" for n in ends]


def _named(graph: Graph, name: str) -> Edge:
    """The edge of a tensor, or of an output of a signature."""
    told = [signature.outputs.get(name) for signature in in_order(graph)]
    return tensor_edge(graph, next(filter(None, told), name))


def tensor_edge(graph: Graph, tensor: str) -> Edge:
    """The edge of a tensor's name, "NODE:0" or "NODE"; UsageError if the graph does not have it."""
    name, output = split(tensor)
    if name not in graph.nodes:
        near = [other for other in graph.nodes if other.rpartition("/")[2] == name]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{graph.path} has no tensor {tensor!r}{hint}")
    return name, output
