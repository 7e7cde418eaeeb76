"""An index of a stored graph, in the form that the walks and patterns of `graph_rewrite` read."""

from __future__ import annotations

from typing import List, Optional

import numpy

from graph_rewrite.graph.index import Index
from migrate.graph.metagraph import Graph, Node
from migrate.graph.tensors import constant_array, is_spread


class StoredNodes(Index):
    """The nodes of a graph; tensors have the names that they have in a session, "op:0"."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.nodes.values())
        self._graph = graph

    def makers(self, node: Node) -> List[str]:
        """The names of the nodes whose outputs `node` reads, as they are stored."""
        return [name for name, _ in node.inputs]

    def constant(self, node: Node) -> Optional[numpy.ndarray]:
        """The value of a Const; None where one value in the file fills it."""
        array = constant_array(self._graph, node)
        return None if is_spread(array) else array


def index_of(graph: Graph) -> StoredNodes:
    """The index of a graph, made once."""
    if "index" not in graph.known:
        graph.known["index"] = StoredNodes(graph)
    index: StoredNodes = graph.known["index"]
    return index
