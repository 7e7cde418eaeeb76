"""Ops that return their input because of their other arguments: no statement is written.

    x + 0, x - 0, x * 1, x / 1      where the 0 or 1 is a scalar constant
    uniform + 0.0                   of random values, none of which is -0.0
    Reshape                         to the shape that the tensor already has in the graph
    Tile, Transpose                 once along each axis, axes in their order
    Split                           into one part

Feature columns end in such a Reshape, a layer over three axes begins with such a Transpose, and
tf.random_uniform between 0 and 1 multiplies by 1 and adds 0.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Optional

from graph_rewrite.graph.ops import PASS, PLUS
from migrate.graph.attributes import dtypes, integer, output_shape
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.folding import Known
from semisync.common.walks import along

_INTEGERS = ("int32", "int64")
_UNIFORM = {"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")


def find_unchanged(graph: Graph, known: Known, nodes: Iterable[Node]) -> Dict[str, Edge]:
    """The inputs that such nodes return, by the nodes' names."""
    finder = _Finder(graph, known)
    found = ((node.name, finder.find(node)) for node in nodes)
    return {name: edge for name, edge in found if edge is not None}


class _Finder:
    """The search in one graph."""

    def __init__(self, graph: Graph, known: Known) -> None:
        self._graph, self._known = graph, known
        self._by_op: Dict[str, Callable[[Node], Optional[Edge]]] = {
            **dict.fromkeys(PLUS, self._sum),
            "Sub": lambda node: self._first(node, 0),
            "Mul": self._product,
            "RealDiv": lambda node: self._first(node, 1),
            "Reshape": self._reshape,
            "Split": self._split,
            "Tile": self._tile,
            "Transpose": self._transpose,
        }

    def find(self, node: Node) -> Optional[Edge]:
        """The input that `node` returns; None if it returns, or may return, another value."""
        by_op = self._by_op.get(node.op)
        return by_op(node) if by_op is not None and len(node.inputs) == 2 else None

    def _first(self, node: Node, neutral: int) -> Optional[Edge]:
        return node.inputs[0] if self._is(node.inputs[1], neutral) else None

    def _product(self, node: Node) -> Optional[Edge]:
        return self._first(node, 1) or (node.inputs[1] if self._is(node.inputs[0], 1) else None)

    def _sum(self, node: Node) -> Optional[Edge]:
        # -0.0 + 0.0 is 0.0: floats are unchanged only if none of them can be -0.0.
        exact = any(dtype in _INTEGERS for dtype in dtypes(self._graph, node, "T"))
        for one, other in (node.inputs, node.inputs[::-1]):
            if self._is(other, 0) and (exact or self._is_uniform(one)):
                return one
        return None

    def _is(self, edge: Edge, number: int) -> bool:
        value = self._known.value(edge)
        # A constant with axes would broadcast x to another shape.
        return value is not None and not value.ndim and value.dtype != object and value == number

    def _is_uniform(self, edge: Edge) -> bool:
        """Whether values are drawn from 0 on, possibly times 1."""
        node = self._graph.nodes[edge[0]]
        factor = self._product(node) if node.op == "Mul" else None
        return self._graph.nodes[(factor or edge)[0]].op in _UNIFORM

    def _split(self, node: Node) -> Optional[Edge]:
        return node.inputs[1] if integer(self._graph, node, "num_split") == 1 else None

    def _tile(self, node: Node) -> Optional[Edge]:
        counts = self._integers(node.inputs[1])
        return node.inputs[0] if counts is not None and set(counts) == {1} else None

    def _transpose(self, node: Node) -> Optional[Edge]:
        axes = self._integers(node.inputs[1])
        return node.inputs[0] if axes is not None and axes == list(range(len(axes))) else None

    def _reshape(self, node: Node) -> Optional[Edge]:
        source = node.inputs[0]
        has, wanted = self._shape(source), self._wanted(node.inputs[1])
        if has is None or wanted is None or len(has) != len(wanted):
            return None
        left = [
            number
            for number, (size, edge) in enumerate(zip(has, wanted))
            if not self._is_size(edge, size, source, number)
        ]
        # One size may be -1, which the others determine: that of the axis.
        rest = left == [] or (len(left) == 1 and wanted[left[0]] == -1)
        return source if rest else None

    def _wanted(self, edge: Edge) -> Optional[List[object]]:
        """The sizes of a shape: numbers, or the tensors that bring them."""
        known = self._integers(edge)
        if known is not None:
            return list(known)
        node = self._source(edge)
        if node.op != "Pack" or integer(self._graph, node, "axis"):
            return None
        sizes: List[object] = []
        for one in node.inputs:
            number = self._integers(one)
            sizes += [one] if number is None else number
        return sizes if len(sizes) == len(node.inputs) else None

    def _is_size(self, wanted: object, size: Optional[int], source: Edge, axis: int) -> bool:
        """Whether a size of the new shape is that of an axis of `source`."""
        if isinstance(wanted, int):
            return wanted == size
        assert isinstance(wanted, tuple)
        part = self._source(wanted)
        if part.op != "StridedSlice" or integer(self._graph, part, "shrink_axis_mask") != 1:
            return False
        whole = self._source(part.inputs[0])
        return (
            whole.op == "Shape"
            and self._beyond(whole.inputs[0]) == self._beyond(source)
            and self._integers(part.inputs[1]) == [axis]
            and not any(integer(self._graph, part, name) for name in _MASKS)
        )

    def _shape(self, edge: Edge) -> Optional[List[Optional[int]]]:
        """The sizes in the graph, None for an unknown one."""
        for name, output in along(edge, lambda one: self._graph.handed(one, PASS)):
            told = output_shape(self._graph, self._graph.nodes[name], output)
            if told is not None:
                return [None if size is None or size < 0 else int(size) for size in told]
        return None

    def _integers(self, edge: Edge) -> Optional[List[int]]:
        value = self._known.value(edge)
        if value is None or value.dtype.kind != "i" or value.ndim > 1:
            return None
        return [int(one) for one in value.reshape(-1)]

    def _beyond(self, edge: Edge) -> Edge:
        return self._graph.beyond(edge, {"Identity"})

    def _source(self, edge: Edge) -> Node:
        return self._graph.nodes[self._beyond(edge)[0]]
