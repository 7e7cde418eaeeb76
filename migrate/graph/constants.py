"""The values of constants in a graph, and of numbers that are computed from constants alone."""

from __future__ import annotations

from typing import Collection, List, Optional, Tuple

import numpy

from graph_rewrite.graph.folding import ARITHMETIC, folded, shortest
from graph_rewrite.graph.ops import CAST, PASS
from migrate.graph.attributes import output_dtype
from migrate.graph.metagraph import Graph, Node
from migrate.graph.tensors import constant_array, is_spread
from semisync.encoding.wire import text

_MOST_INTEGERS = 1 << 16  # values of a constant of one repeated value that become a list


def constant(graph: Graph, name: str) -> Optional[float]:
    """The number that node `name` computes; None if it depends on more than constants."""

    def made(one: str) -> Tuple[str, List[str]]:
        node = graph.nodes.get(one, Node("", "", (), {}))
        computed = node.op in ARITHMETIC and len(node.inputs) == 2
        taken = 2 if computed else int(node.op in PASS | CAST)
        return node.op, [source for source, _ in node.inputs[:taken]]

    return folded(name, made, lambda one: constant_float(graph, one))


def constant_strings(graph: Graph, name: str, count: int) -> Optional[List[str]]:
    """The first `count` values of the string constant `name`, the last one repeated; else None."""
    array = _constant(graph, name, ("string",))
    if array is None or not array.size:
        return None
    strings = [text(memoryview(value), graph.path) for value in array.reshape(-1)[:count]]
    return (strings + strings[-1:] * count)[:count]


def constant_integers(graph: Graph, name: str) -> Optional[List[int]]:
    """The values of the integer constant `name`; None if it is not one."""
    array = _constant(graph, name, ("int32", "int64"))
    if array is None or (is_spread(array) and array.size > _MOST_INTEGERS):
        return None
    return array.reshape(-1).tolist()


def constant_integer(graph: Graph, name: str) -> Optional[int]:
    """The one value of the integer constant `name`; None if it is not one, or has several."""
    values = constant_integers(graph, name)
    return None if values is None or len(values) != 1 else values[0]


def constant_float(graph: Graph, name: str) -> Optional[float]:
    """The value of the float32 or float64 scalar constant `name`; None if it is not one."""
    array = _constant(graph, name, ("float32", "float64"))
    if array is None or array.ndim:
        return None
    return shortest(array[()])


def _constant(graph: Graph, name: str, kinds: Collection[str]) -> Optional[numpy.ndarray]:
    """The value of the constant `name`; None if it is not one, or of another type."""
    node = graph.nodes.get(name)
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    return constant_array(graph, node) if output_dtype(graph, node) in kinds else None
