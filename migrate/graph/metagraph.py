"""The graph of a MetaGraph (`PREFIX.meta`, `saved_model.pb`), decoded without TensorFlow.

    SavedModel    {1 saved_model_schema_version, 2 meta_graphs}
    MetaGraphDef  {1 meta_info_def {4 tags}, 2 graph_def, 3 saver_def}
    GraphDef      {1 node}
    NodeDef       {1 name, 2 op, 3 input, 5 attr}          attr is a map {1 key, 2 AttrValue}
    SaverDef      {2 save_tensor_name}

Only what the readers of look-ups and slots need is decoded; attributes on demand, by
`migrate.graph.attributes` and `migrate.graph.constants`. An input is kept as (node, output number);
control inputs are left out.
Source: tensorflow/core/protobuf/meta_graph.proto and tensorflow/core/framework/*.proto
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.encoding.wire import fields, message, text
from migrate.storage.files import open_file
from semisync.common.errors import BadInput

_MAX_META = (2 << 30) - 1  # protobuf's own limit for one message

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
    """The graph of the MetaGraph at `path`; BadInput if the file has none.

    Of a SavedModel it is the one tagged "train" if there is one, else the first.
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
    a MetaGraphDef has only messages."""
    parts = [(field, value) for field, value in fields(data, path) if field in (1, 2)]
    if not any(field == 1 and isinstance(value, int) for field, value in parts):
        return data
    graphs = [message(value, path) for field, value in parts if field == 2]
    if not graphs:
        raise BadInput(f"{path} is a SavedModel without a MetaGraph; it is damaged")
    return next((graph for graph in graphs if "train" in _tags(graph, path)), graphs[0])


def _tags(meta_graph: memoryview, path: str) -> List[str]:
    return [
        text(tag, path)
        for field, value in fields(meta_graph, path)
        if field == 1
        for inner, tag in fields(message(value, path), path)
        if inner == 4
    ]


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
