"""The attributes of a node, and the data types and shapes of its outputs.

A node that has none of a name has the op's default, see `graph_rewrite.graph.ops.DEFAULTS`; below,
"none" is where that has none either.

    AttrValue          {1 list, 2 s, 3 i, 4 f, 5 b, 6 type, 7 shape, 10 func {1 name}}
                       list is {2 s, 3 i, 4 f, 6 type, 7 shape}
    TensorShapeProto   {2 dim, 3 unknown_rank}                dim is {1 size}, -1 where unknown
Source: tensorflow/core/framework/attr_value.proto and tensor_shape.proto
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple, Union

import numpy

from graph_rewrite.graph.ops import DEFAULTS
from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput
from semisync.encoding import wire
from semisync.encoding.dtypes import DTYPES
from semisync.encoding.wire import Value, fields, message, number, numbers, tensor_shape

Shape = Optional[Tuple[Optional[int], ...]]  # None: unknown rank; a size of None: unknown

_REFERENCE = 100  # DT_FLOAT_REF is DT_FLOAT + 100, and so on (types.proto)


def integer(graph: Graph, node: Node, name: str) -> int:
    """An integer; 0 if the node has none."""
    return number(_attribute(graph, node, name).get(3, 0), graph.path)


def integers(graph: Graph, node: Node, name: str) -> List[int]:
    """A list of integers; none if the node has none."""
    items = _items(graph, _attribute(graph, node, name))
    return [one for key, value in items if key == 3 for one in numbers(value, graph.path)]


def float32(graph: Graph, node: Node, name: str) -> float:
    """A float, as the shortest number that is the same float32; 0 if the node has none."""
    bits = number(_attribute(graph, node, name).get(4, 0), graph.path)
    return _shortest(numpy.array([bits], "<u4").view("<f4"))[0]


def float32s(graph: Graph, node: Node, name: str) -> List[float]:
    """As `float32`, a list of them; none if the node has none."""
    items = [value for key, value in _items(graph, _attribute(graph, node, name)) if key == 4]
    # A list is packed, or has a field for each number, which the wire format gives as an integer.
    packed = [
        numpy.array([value], "<u4").tobytes() if isinstance(value, int) else bytes(value)
        for value in items
    ]
    return _shortest(numpy.frombuffer(b"".join(packed), "<f4"))


def string(graph: Graph, node: Node, name: str) -> bytes:
    """A string; empty where the node lacks it."""
    return bytes(message(_attribute(graph, node, name).get(2, memoryview(b"")), graph.path))


def text(graph: Graph, node: Node, name: str) -> str:
    """A string of UTF-8; empty where the node lacks it.

    Raises:
        BadInput: it is not UTF-8.
    """
    try:
        return string(graph, node, name).decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{graph.path}: the attribute {name!r} of node {node.name!r} ({node.op}) is not UTF-8 "
            f"({error.reason})"
        ) from error


def function(graph: Graph, node: Node, name: str) -> str:
    """The name of a function of the library; empty where the node lacks it."""
    called = _attribute(graph, node, name).get(10, memoryview(b""))
    named = dict(fields(message(called, graph.path), graph.path))
    return wire.text(named.get(1, memoryview(b"")), graph.path)


def flag(graph: Graph, node: Node, name: str) -> bool:
    """A boolean; False if the node has none."""
    return _attribute(graph, node, name).get(5) == 1


def dtypes(graph: Graph, node: Node, name: str) -> List[str]:
    """The names of one data type or a list of them; none if the node states none."""
    return [_dtype(code) for code in _numbers(graph, node, name)]


def shapes(graph: Graph, node: Node, name: str) -> List[Shape]:
    """One shape or a list of them; none if the node states none."""
    attribute = _attribute(graph, node, name)
    if 7 in attribute:
        return [shape_of(message(attribute[7], graph.path), graph.path)]
    return [
        shape_of(message(value, graph.path), graph.path)
        for key, value in _items(graph, attribute)
        if key == 7
    ]


def strings(graph: Graph, node: Node, name: str) -> List[str]:
    """A list of strings; none if the node has none."""
    items = _items(graph, _attribute(graph, node, name))
    return [wire.text(value, graph.path) for key, value in items if key == 2]


def output_shape(graph: Graph, node: Node, output: int) -> Shape:
    """The shape in `_output_shapes`, or else in a placeholder's `shape`; None without either."""
    for name in ("_output_shapes", "shape"):
        listed = shapes(graph, node, name)
        if output < len(listed):
            return listed[output]
    return None


def output_dtype(graph: Graph, node: Node) -> Optional[str]:
    """The type in `T` or `dtype`, for a node whose outputs all have one type."""
    return next((dtype for name in ("T", "dtype") for dtype in dtypes(graph, node, name)), None)


def _shortest(values: numpy.ndarray) -> List[float]:
    return [float(str(value)) for value in values]


def _attribute(graph: Graph, node: Node, name: str) -> Dict[int, Value]:
    if name in node.attrs:
        return dict(fields(memoryview(node.attrs[name]), graph.path))
    default = DEFAULTS.get(node.op, {}).get(name)
    return {} if default is None else _stored(default)


def _stored(value: Union[bool, int, float, str]) -> Dict[int, Value]:
    """The fields of an attribute of that value."""
    if isinstance(value, str):
        return {2: memoryview(value.encode())}
    if isinstance(value, float):
        return {4: int(numpy.float32(value).view("u4"))}
    return {5 if isinstance(value, bool) else 3: int(value)}


def _items(graph: Graph, attribute: Dict[int, Value]) -> List[Tuple[int, Value]]:
    return list(fields(message(attribute[1], graph.path), graph.path)) if 1 in attribute else []


def _numbers(graph: Graph, node: Node, name: str) -> List[int]:
    attribute = _attribute(graph, node, name)
    if 6 in attribute:
        return [number(attribute[6], graph.path)]
    packed = (value for key, value in _items(graph, attribute) if key == 6)
    return [code for codes in packed for code in numbers(codes, graph.path)]


def _dtype(code: int) -> str:
    code -= _REFERENCE if code > _REFERENCE else 0
    return DTYPES[code].name if code in DTYPES else f"type {code}"


def shape_of(data: memoryview, path: str) -> Shape:
    """The shape in a TensorShapeProto."""
    sizes = tensor_shape(data, path)
    return None if sizes is None else tuple(None if size < 0 else size for size in sizes)
