"""Walking the model's half of a graph, along the tensors."""

from __future__ import annotations

import re
from collections import deque
from typing import Callable, Dict, Iterable, List, Optional, Set, Tuple

from graph_rewrite.graph.ops import CAST, PASS, SHAPE, VARIABLES
from migrate.graph.metagraph import Edge, Graph, Node

GRADIENTS = re.compile(r"(^|/)gradients(_\d+)?/")  # the name scope of tf.gradients
_SAVERS = re.compile(r"save(_\d+)?/")  # without a name of their own
_RESHAPED = PASS | CAST | SHAPE | {"StopGradient"}
# Their outputs depend on the sizes of their input, not on its values.
_OF_SIZES = {"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"}

Consumers = Dict[Edge, List[Node]]


class Walks:
    """A graph with the readers of each tensor.

    nodes       of the model's half, by name
    consumers   nodes of that half by the tensor that they read
    trained     names of the nodes that depend on a variable
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._named, self._origin = graph.ends(("Cast", "Reshape")), graph.ends(_RESHAPED)
        scope = graph.saver_scope or "save/"
        self.nodes = {
            name: node
            for name, node in graph.nodes.items()
            if not (name.startswith(scope) or _SAVERS.match(name) or GRADIENTS.search(name))
        }
        self.consumers: Consumers = {}
        for node in self.nodes.values():
            for edge in node.inputs:
                self.consumers.setdefault(edge, []).append(node)
        self._outputs: Dict[str, Set[Edge]] = {}
        for edge in self.consumers:
            self._outputs.setdefault(edge[0], set()).add(edge)
        self.trained = self.downstream(
            (node.name, 0) for node in self.nodes.values() if node.op in VARIABLES
        )

    def outputs(self, node: str) -> List[Edge]:
        """The outputs of a node that have readers."""
        return sorted(self._outputs.get(node, ()))

    def downstream(
        self, edges: Iterable[Edge], stop: Callable[[Node, Edge], bool] = lambda *_: False
    ) -> Set[str]:
        """The names of the nodes that the tensors reach.

        Args:
            stop: called with each node and the tensor that reaches it; True leaves the node out.
        """
        seen: Set[str] = set()
        waiting = deque(edges)
        while waiting:
            edge = waiting.popleft()
            for node in self.consumers.get(edge, ()):
                if node.name not in seen and not stop(node, edge):
                    seen.add(node.name)
                    waiting.extend(self.outputs(node.name))
        return seen

    def downstream_of_values(self, edges: Iterable[Edge]) -> Set[str]:
        """Nodes of `downstream` that depend on the tensors' values, not on their sizes alone."""
        return self.downstream(edges, lambda node, _: node.op in _OF_SIZES)

    def ends(self, node: Node) -> bool:
        """Whether a node depends on a variable, and none enters the computations after the node."""
        if node.name not in self.trained:
            return False
        later = self.downstream([(node.name, 0)])
        sources = (self.origin(edge)[0] for name in later for edge in self.nodes[name].inputs)
        return not any(source is not None and source.op in VARIABLES for source in sources)

    def named(self, edge: Edge) -> Edge:
        """The tensor before the casts and reshapes that a loss applies to it."""
        return self._named(edge)

    def origin(self, edge: Edge) -> Tuple[Optional[Node], Edge]:
        """The source of a tensor's values, before any nodes that only reshape or cast them."""
        edge = self._origin(edge)
        return self.graph.nodes.get(edge[0]), edge
