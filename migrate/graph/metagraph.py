"""The graph of a MetaGraph (`PREFIX.meta`, `saved_model.pb`), decoded without TensorFlow.

    SavedModel    {1 saved_model_schema_version, 2 meta_graphs}
    MetaGraphDef  {1 meta_info_def {4 tags}, 2 graph_def, 3 saver_def}
    GraphDef      {1 node}
    NodeDef       {1 name, 2 op, 3 input, 5 attr}          attr is a map {1 key, 2 AttrValue}
    AttrValue     {1 list, 5 b, 8 tensor}              list is {7 shape}
    TensorProto   {1 dtype, 2 shape, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val,
                   8 string_val, 10 int64_val}
    SaverDef      {2 save_tensor_name}

Only what the readers of look-ups and slots need is decoded, attributes on demand. An input is
kept as (node, output number); control inputs are left out.
Source: tensorflow/core/protobuf/meta_graph.proto and tensorflow/core/framework/*.proto
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy

from migrate.encoding.wire import Value, fields, message, numbers, text
from migrate.storage.files import open_file
from semisync.common.errors import BadInput

_MAX_META = (2 << 30) - 1  # protobuf's own limit for one message

_FLOATS: Dict[Value, str] = {1: "<f", 2: "<d"}  # by the number of the data type

Edge = Tuple[str, int]


class Node(NamedTuple):
    """One operation of the graph; `attrs` are AttrValue messages still to be decoded."""

    name: str
    op: str
    inputs: Tuple[Edge, ...]
    attrs: Dict[str, bytes]


class Graph(NamedTuple):
    """path: of the file. nodes: by name. saver_scope: name scope of the main Saver, or None."""

    path: str
    nodes: Dict[str, Node]
    saver_scope: Optional[str]


def read_graph(path: str) -> Graph:
    """The graph of the MetaGraph at `path`; BadInput where the file is none.

    Of a SavedModel it is the one to train, where there is one, else the first.
    """
    with open_file(path) as file:
        if not 0 < file.size <= _MAX_META:
            raise BadInput(
                f"{path} has {file.size} bytes, expected a MetaGraph of 1 to {_MAX_META}"
            )
        data = memoryview(file.read(0, file.size, path))
    nodes: Dict[str, Node] = {}
    scope = None
    for field, value in fields(_meta_graph(data, path), path):
        if field == 2:
            for part, inner in fields(message(value, path), path):
                if part == 1:
                    node = _node(message(inner, path), path)
                    nodes[node.name] = node
        elif field == 3:
            scope = _saver_scope(message(value, path), path)
    if not nodes:
        raise BadInput(
            f"{path} holds no graph; give the .meta file that tf.train.Saver wrote, or the "
            "saved_model.pb of a SavedModel"
        )
    return Graph(path, nodes, scope)


def _meta_graph(data: memoryview, path: str) -> memoryview:
    """The MetaGraphDef in the bytes of a file. A SavedModel begins with the number of its schema,
    a MetaGraphDef with messages alone."""
    found = [(field, value) for field, value in fields(data, path) if field in (1, 2)]
    if not any(field == 1 and isinstance(value, int) for field, value in found):
        return data
    graphs = [message(value, path) for field, value in found if field == 2]
    if not graphs:
        raise BadInput(f"{path} is a SavedModel without a MetaGraph; it is damaged")
    return next((one for one in graphs if "train" in _tags(one, path)), graphs[0])


def _tags(meta_graph: memoryview, path: str) -> List[str]:
    return [
        text(tag, path)
        for field, value in fields(meta_graph, path)
        if field == 1
        for inner, tag in fields(message(value, path), path)
        if inner == 4
    ]


def constant_strings(graph: Graph, name: str, count: int) -> Optional[List[str]]:
    """The first `count` values of the string constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    found = [text(value, graph.path) for field, value in fields(tensor, graph.path) if field == 8]
    if not found:
        return None
    return (found + found[-1:] * count)[:count]  # a run of equal values may be stored once


def constant_integer(graph: Graph, name: str) -> Optional[int]:
    """The value of the integer scalar constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    for field, value in fields(tensor, graph.path):
        if field in (7, 10):
            found = numbers(value, graph.path)
            return found[0] if found else None
        if field == 4:
            return int.from_bytes(message(value, graph.path), "little", signed=True)
    return 0


def constant_float(graph: Graph, name: str) -> Optional[float]:
    """The value of the float32 or float64 scalar constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    found = dict(fields(tensor, graph.path))
    if found.get(1) not in _FLOATS or dict(fields(_shape(found, graph.path), graph.path)):
        return None
    form = _FLOATS[found[1]]
    value = found.get(4, found.get(5, found.get(6, 0)))
    if isinstance(value, int):
        data = value.to_bytes(struct.calcsize(form), "little")
    else:
        data = bytes(value)
    if len(data) != struct.calcsize(form):
        raise BadInput(f"{graph.path}: the constant {name!r} has {len(data)} bytes; it is damaged")
    value = struct.unpack(form, data)[0]
    # 0.05 rather than 0.05000000074505806: the shortest number that is the same float32
    return float(str(numpy.float32(value))) if form == "<f" else float(value)


def _shape(tensor: Dict[int, Value], path: str) -> memoryview:
    return message(tensor.get(2, memoryview(b"")), path)


def flag(graph: Graph, node: Node, name: str) -> bool:
    """The boolean attribute `name` of `node`; False where it has none."""
    attr = memoryview(node.attrs.get(name, b""))
    return dict(fields(attr, graph.path)).get(5) == 1


def output_rank(graph: Graph, name: str, output: int) -> Optional[int]:
    """Number of dimensions of an output of node `name`; None where the graph does not tell it, as
    `_output_shapes` of a MetaGraph that tf.train.Saver wrote does."""
    node = graph.nodes.get(name)
    if node is None:
        return None
    path = graph.path
    listed = dict(fields(memoryview(node.attrs.get("_output_shapes", b"")), path)).get(1)
    if listed is None:
        return None
    shapes = [message(one, path) for key, one in fields(message(listed, path), path) if key == 7]
    if output >= len(shapes):
        return None
    parts = [key for key, _ in fields(shapes[output], path)]
    return None if 3 in parts else parts.count(2)


def _constant(graph: Graph, name: str) -> Optional[memoryview]:
    node = graph.nodes.get(name)
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    for field, value in fields(memoryview(node.attrs["value"]), graph.path):
        if field == 8:
            return message(value, graph.path)
    return None


def _node(data: memoryview, path: str) -> Node:
    name, op = "", ""
    inputs: List[Edge] = []
    attrs: Dict[str, bytes] = {}
    for field, value in fields(data, path):
        if field == 1:
            name = text(value, path)
        elif field == 2:
            op = text(value, path)
        elif field == 3:
            edge = text(value, path)
            if not edge.startswith("^"):
                inputs.append(_edge(edge, path))
        elif field == 5:
            pair = dict(fields(message(value, path), path))
            if 1 in pair and 2 in pair:
                attrs[text(pair[1], path)] = bytes(message(pair[2], path))
    return Node(name, op, tuple(inputs), attrs)


def _edge(edge: str, path: str) -> Edge:
    name, colon, output = edge.partition(":")
    if colon and not output.isdigit():
        raise BadInput(f"{path}: {edge!r} is not the input of a node; the graph is damaged")
    return name, int(output or 0)


def _saver_scope(data: memoryview, path: str) -> Optional[str]:
    """ "save/" for a Saver whose save_tensor_name is "save/control_dependency:0"."""
    for field, value in fields(data, path):
        if field == 2:
            return text(value, path).rpartition("/")[0] + "/"
    return None
