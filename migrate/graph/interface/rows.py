"""The batch size that is fixed in a graph's code, not in its inputs, as in
tf.reshape(vectors, [BATCH_SIZE, -1]).

1. Every output has that many rows, by its shape in the graph. A loss is one number; instead of it
   the tensors count that the graph's losses compare with labels.
2. A reshape before the output makes that many rows from a tensor of any number of rows. Without one
   the first dimension of an output, such as a mean over the batch, does not count rows.
"""

from __future__ import annotations

from typing import Optional, Sequence

from migrate.graph.attributes import output_shape
from migrate.graph.constants import constant_integers
from migrate.graph.interface.losses import losses
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Graph, Node


def fixed_rows(graph: Graph, outputs: Sequence[Edge]) -> Optional[int]:
    """The only number of rows for which the graph computes the outputs; None: any number."""
    shapes = {edge: output_shape(graph, graph.nodes[edge[0]], edge[1]) for edge in outputs}
    edges = [edge for edge, shape in shapes.items() if shape != ()]
    if not edges:
        before = {node.name for node in graph.behind([name for name, _ in outputs])}
        edges = [one.scores for one in losses(Walks(graph)) if one.name in before]
    sizes = {_rows(graph, edge) for edge in edges}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None:
        return None
    found = graph.behind([name for name, _ in edges])
    return size if any(_makes(graph, node, size) for node in found) else None


def _makes(graph: Graph, node: Node, size: int) -> bool:
    """Whether a node makes that many rows from any number of rows."""
    if node.op != "Reshape" or _rows(graph, node.inputs[0]) is not None:
        return False
    told = constant_integers(graph, node.inputs[1][0])
    return told is not None and told[:1] == [size]


def _rows(graph: Graph, edge: Edge) -> Optional[int]:
    shape = output_shape(graph, graph.nodes[edge[0]], edge[1])
    return shape[0] if shape else None
