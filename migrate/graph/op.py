"""An op of a graph as a plug-in sees it."""

from __future__ import annotations

from typing import Tuple

from migrate.graph.attributes import float32, integer, text
from migrate.graph.metagraph import Graph, Node
from semisync.common.tensor_names import of_edge


class Op:
    """A node and its attributes.

    name    of the node, "user/pull"
    kind    of the op, "AcmePull"
    inputs  names of tensors, "user/ids:0"
    """

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node
        self.name, self.kind = node.name, node.op

    @property
    def inputs(self) -> Tuple[str, ...]:
        """See the class; control inputs are not among them."""
        return tuple(of_edge(edge) for edge in self._node.inputs)

    def source(self, number: int) -> Op:
        """The op that an input comes from, such as one that holds the table."""
        return Op(self._graph, self._graph.nodes[self._node.inputs[number][0]])

    def has(self, attribute: str) -> bool:
        """Whether it has an attribute."""
        return attribute in self._node.attrs

    def text(self, attribute: str) -> str:
        """A string attribute."""
        return text(self._graph, self._node, attribute)

    def number(self, attribute: str) -> float:
        """A float attribute."""
        return float32(self._graph, self._node, attribute)

    def integer(self, attribute: str) -> int:
        """An integer attribute."""
        return integer(self._graph, self._node, attribute)
