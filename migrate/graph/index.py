"""A stored graph as `graph_rewrite` indexes one, so that its patterns match in it."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from graph_rewrite.graph.index import Index
from migrate.graph.metagraph import Graph, Node
from migrate.graph.tensors import constant_array, is_spread
from semisync.common.tensor_names import of_edge


class _Indexed(NamedTuple):
    name: str
    op: str
    input: List[str]


class StoredNodes(Index):
    """The nodes of a graph; its tensors are called as in a session, "op:0"."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(map(_indexed, graph.nodes.values()))
        self._graph = graph

    def constant(self, node: _Indexed) -> Optional[numpy.ndarray]:
        """The value of a Const; None where one value in the file fills it."""
        array = constant_array(self._graph, self._graph.nodes[node.name])
        return None if is_spread(array) else array


def _indexed(node: Node) -> _Indexed:
    return _Indexed(
        node.name, node.op, [*map(of_edge, node.inputs), *(f"^{name}" for name in node.controls)]
    )
