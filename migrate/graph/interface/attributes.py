"""Data types and shapes of a node's outputs, as its attributes tell them.

    AttrValue          {1 list, 3 i, 6 type, 7 shape}         list is {2 s, 6 type, 7 shape}
    TensorShapeProto   {2 dim, 3 unknown_rank}                dim is {1 size}, -1 where unknown
Source: tensorflow/core/framework/attr_value.proto and tensor_shape.proto
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from migrate.encoding.dtypes import DTYPES
from migrate.encoding.wire import Value, fields, message, number, numbers, text
from migrate.graph.metagraph import Graph, Node

Shape = Optional[Tuple[Optional[int], ...]]  # None: of unknown rank; a size None: unknown

_REFERENCE = 100  # that a reference's type is above the type's own number


def integer(graph: Graph, node: Node, name: str) -> int:
    """An integer; 0 where the node has none."""
    return number(_attribute(graph, node, name).get(3, 0), graph.path)


def dtypes(graph: Graph, node: Node, name: str) -> List[str]:
    """The names of one data type or a list of them; none where the node does not say."""
    return [_dtype(one) for one in _numbers(graph, node, name)]


def shapes(graph: Graph, node: Node, name: str) -> List[Shape]:
    """One shape or a list of them; none where the node does not say."""
    found = _attribute(graph, node, name)
    if 7 in found:
        return [_shape(message(found[7], graph.path), graph.path)]
    return [
        _shape(message(value, graph.path), graph.path)
        for key, value in _items(graph, found)
        if key == 7
    ]


def strings(graph: Graph, node: Node, name: str) -> List[str]:
    """A list of strings; none where the node does not say."""
    found = _attribute(graph, node, name)
    return [text(value, graph.path) for key, value in _items(graph, found) if key == 2]


def output_shape(graph: Graph, node: Node, output: int) -> Shape:
    """As `_output_shapes` tells it, or the `shape` of a placeholder; None where neither does."""
    for name in ("_output_shapes", "shape"):
        found = shapes(graph, node, name)
        if output < len(found):
            return found[output]
    return None


def output_dtype(graph: Graph, node: Node) -> Optional[str]:
    """That of a node whose outputs have one type, which stands in `T` or `dtype`."""
    return next((one for name in ("T", "dtype") for one in dtypes(graph, node, name)), None)


def _attribute(graph: Graph, node: Node, name: str) -> Dict[int, Value]:
    return dict(fields(memoryview(node.attrs.get(name, b"")), graph.path))


def _items(graph: Graph, found: Dict[int, Value]) -> List[Tuple[int, Value]]:
    return list(fields(message(found[1], graph.path), graph.path)) if 1 in found else []


def _numbers(graph: Graph, node: Node, name: str) -> List[int]:
    found = _attribute(graph, node, name)
    if 6 in found:
        return [number(found[6], graph.path)]
    listed = (value for key, value in _items(graph, found) if key == 6)
    return [one for value in listed for one in numbers(value, graph.path)]


def _dtype(code: int) -> str:
    code -= _REFERENCE if code > _REFERENCE else 0
    return DTYPES[code].name if code in DTYPES else f"type {code}"


def _shape(data: memoryview, path: str) -> Shape:
    sizes: List[Optional[int]] = []
    for key, value in fields(data, path):
        if key == 3 and value:
            return None
        if key == 2:
            size = number(dict(fields(message(value, path), path)).get(1, 0), path)
            sizes.append(None if size < 0 else size)
    return tuple(sizes)
