"""The tensors of a graph that are likely the scores."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional

from migrate.graph.attributes import Shape, output_dtype, output_shape
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.losses import SQUASHING, Loss, losses
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Node

_FLOATS = {"float16", "float32", "float64", "bfloat16"}
_UPDATES = ("Apply", "Assign", "Resource", "Scatter", "SparseApply")  # how such ops' names begin


class Output(NamedTuple):
    """tensor: its name. what: "logits", "probability", "prediction" or "end". why: what tells."""

    tensor: str
    dtype: Optional[str]
    shape: Shape
    what: str
    why: str


def outputs(walks: Walks, feeds: List[Feed]) -> List[Output]:
    """Those of losses first, then sigmoids and softmaxes that end the model; if there are neither,
    every float tensor of more than one number that nothing reads and that depends on a feed and on
    a variable."""
    likely: Dict[Edge, Output] = {}

    def add(edge: Edge, what: str, why: str) -> None:
        node = walks.graph.nodes.get(edge[0])
        if node is not None:
            likely.setdefault(edge, _output(walks, node, edge, what, why))

    for loss in losses(walks):
        add(loss.scores, loss.what, f"of the loss {loss.name}")
        for node in walks.consumers.get(loss.scores, ()):
            if node.op in SQUASHING and loss.what == "logits":
                add((node.name, 0), "probability", f"{node.op.lower()} of these logits")
        _add_logits(walks, loss, add)
    for node in walks.nodes.values():
        if node.op in SQUASHING and node.inputs and walks.ends(node):
            add((node.name, 0), "probability", f"a {node.op.lower()} that ends the model")
            add(walks.named(node.inputs[0]), "logits", f"input of {node.name}")
    if not likely:
        fed = walks.downstream(edge for feed in feeds for edge in feed.edges)
        for name, node in walks.nodes.items():
            if name in fed & walks.trained and not walks.outputs(name) and not _updates(node):
                add((name, 0), "end", "nothing reads it")
        return [out for out in likely.values() if out.dtype in _FLOATS and out.shape != ()]
    return list(likely.values())


def _updates(node: Node) -> bool:
    return node.op.startswith(_UPDATES)


def _add_logits(walks: Walks, loss: Loss, add: Callable[[Edge, str, str], None]) -> None:
    """The logits of a loss that takes probabilities."""
    node = walks.graph.nodes.get(loss.scores[0])
    if loss.what == "probability" and node is not None and node.inputs:
        add(walks.named(node.inputs[0]), "logits", f"input of {node.name}")


def _output(walks: Walks, node: Node, edge: Edge, what: str, why: str) -> Output:
    dtype, shape = output_dtype(walks.graph, node), output_shape(walks.graph, node, edge[1])
    return Output(f"{edge[0]}:{edge[1]}", dtype, shape, what, why)
