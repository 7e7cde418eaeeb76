"""The graph in a MetaGraph file (`PREFIX.meta`, `saved_model.pb`), decoded without TensorFlow.

    SavedModel    {1 saved_model_schema_version, 2 meta_graphs}
    MetaGraphDef  {1 meta_info_def {4 tags}, 2 graph_def, 3 saver_def, 4 collection_def,
                   5 signature_def, 6 asset_file_def}        4 and 5 are maps {1 key, 2 value}
    GraphDef      {1 node, 2 library {1 function}}
    NodeDef       {1 name, 2 op, 3 input, 5 attr}          attr is a map {1 key, 2 AttrValue}
    SaverDef      {2 save_tensor_name}
    CollectionDef {1 node_list {1 value}, 2 bytes_list {1 value}, 5 any_list {1 value {2 value}}};
                  "train_op" has the first, "semisync/plain_step" the second, and
                  "trainable_variables", with
    VariableDef   {1 variable_name}
                  "saved_model_assets" the third, up to TensorFlow 1.12, with
    AssetFileDef  {1 tensor_info, 2 filename}
    SignatureDef  {1 inputs, 2 outputs}                     maps of TensorInfo
    TensorInfo    {1 name, 4 coo_sparse {1 values, 2 indices, 3 dense_shape}}

A file may also hold a GraphDef alone, as a frozen graph does.

Only fields that a reader needs are decoded; attributes on demand, by `migrate.graph.attributes`,
`migrate.graph.constants` and `migrate.graph.tensors`, the library by `migrate.graph.functions`. An
input is kept as (node, output number).
Source: tensorflow/core/protobuf/meta_graph.proto and tensorflow/core/framework/*.proto
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import (
    Any,
    Container,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from migrate.checkpoint.paths import refuse_keras_file
from migrate.graph.wrapped import plain_nodes
from semisync.common.errors import BadInput, UsageError
from semisync.common.plain_step import COLLECTION
from semisync.common.tensor_names import CONTROL, of_edge, split
from semisync.common.walks import Ends, along, reachable
from semisync.encoding.wire import Value, fields, message, text
from semisync.storage.files import open_file

_MAX_META = (2 << 30) - 1  # protobuf's own limit for one message

Edge = Tuple[str, int]


_UNFIT = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Node(NamedTuple):
    """One operation of the graph; `attrs` are AttrValue messages still to be decoded.

    Attributes:
        controls: names of the nodes that it waits for.
    """

    name: str
    op: str
    inputs: Tuple[Edge, ...]
    attrs: Dict[str, bytes]
    controls: Tuple[str, ...] = ()

    @property
    def attr(self) -> Dict[str, bytes]:
        """The attributes under NodeDef's name for them, for `graph_rewrite`."""
        return self.attrs

    @property
    def input(self) -> List[str]:
        """The inputs and control inputs in the form of a NodeDef, for `graph_rewrite`."""
        return [*map(of_edge, self.inputs), *(f"^{name}" for name in self.controls)]


class Signature(NamedTuple):
    """The inputs and outputs of a SavedModel: names of tensors by the keys that users know.

    Attributes:
        sparse: for sparse inputs, the tensors of the indices, the values and the dense shape.
    """

    inputs: Dict[str, str]
    outputs: Dict[str, str]
    sparse: Dict[str, Tuple[str, str, str]]


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """The graph of a file.

    Attributes:
        path: of the file.
        nodes: by name.
        saver_scope: name scope of the main Saver, or None.
        trainable: variable nodes in the collection "trainable_variables"; None without one.
        signatures: by their keys.
        functions: FunctionDef messages, still to be decoded.
        train_ops: nodes in the collection "train_op".
        assets: by node, the file in the SavedModel's `assets` whose path the node holds.
        rewired: nodes that differ from those in the file, see `migrate.graph.wrapped`.
        calls: by name, the nodes that `migrate.graph.lowering` replaced.
        named: the inputs' tensors by name, if the caller names the inputs; there are no others.
        admitted: absolute paths of files elsewhere that the caller allows it to read.
        known: values computed of it once, such as its index (`migrate.graph.index`).
    """

    path: str
    nodes: Dict[str, Node]
    saver_scope: Optional[str] = None
    trainable: Optional[FrozenSet[str]] = None
    signatures: Mapping[str, Signature] = dataclasses.field(default_factory=dict)
    functions: Tuple[bytes, ...] = ()
    train_ops: Tuple[str, ...] = ()
    assets: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rewired: FrozenSet[str] = frozenset()
    calls: Mapping[str, Node] = dataclasses.field(default_factory=dict)
    named: Mapping[str, Tuple[str, ...]] = dataclasses.field(default_factory=dict)
    admitted: FrozenSet[str] = frozenset()
    known: Dict[str, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def replace(self, **changes: Any) -> Graph:
        """The graph with other values of some attributes."""
        return dataclasses.replace(self, **changes)

    def beyond(self, edge: Edge, through: Container[str]) -> Edge:
        """The tensor that `edge` passes on: the ops in `through` are skipped, by their first input.

        Raises:
            BadInput: they form a cycle.
        """
        *_, end = along(edge, lambda one: self.handed(one, through), self.path)
        return end

    def ends(self, through: Container[str]) -> Ends[Edge]:
        """`beyond` for many tensors: every path is walked once."""
        return Ends(lambda one: self.handed(one, through), self.path)

    def handed(self, edge: Edge, through: Container[str]) -> Optional[Edge]:
        """The first input of the node that makes `edge`, if its op is in `through`."""
        node = self.nodes.get(edge[0])
        return node.inputs[0] if node is not None and node.op in through and node.inputs else None

    def behind(self, names: List[str]) -> Iterator[Node]:
        """The nodes of these names, and all nodes that their values are computed from."""
        found = reachable(names, lambda name: [one for one, _ in self.nodes[name].inputs])
        return (self.nodes[name] for name in found)


def read_graph(path: str) -> Graph:
    """The graph of a MetaGraph, a GraphDef or a SavedModel: the one tagged "train", or the first.

    Raises:
        BadInput: the file holds none.
    """
    with open_file(path) as file:
        if not 0 < file.size <= _MAX_META:
            raise BadInput(
                f"{path} has {file.size} bytes, expected a MetaGraph of 1 to {_MAX_META}"
            )
        data = memoryview(file.read(0, file.size, path))
    # Before the bytes are decoded, so that the error says what the file is.
    refuse_keras_file(path, bytes(data[:4]))
    data = _meta_graph(data, path)
    graph = _read_graph_def(data, path) if _is_graph_def(data, path) else _read(data, path)
    if not graph.nodes:
        raise BadInput(
            f"{path} holds no graph; give the .meta file that tf.train.Saver wrote, or the "
            "saved_model.pb of a SavedModel"
        )
    return graph


def _read(meta_graph: memoryview, path: str) -> Graph:
    graph = Graph(path, {})
    signatures: Dict[str, Signature] = {}
    assets: Dict[str, str] = {}
    plain_steps: List[str] = []
    for field, value in fields(meta_graph, path):
        if field == 2:
            whole = _read_graph_def(message(value, path), path)
            graph = graph.replace(nodes=whole.nodes, functions=whole.functions)
        elif field == 3:
            graph = graph.replace(saver_scope=_saver_scope(message(value, path), path))
        elif field == 4:
            key, entry = _entry(value, path)
            if key == "trainable_variables":
                graph = graph.replace(trainable=frozenset(_variables(entry, path)))
            elif key == "train_op":
                graph = graph.replace(train_ops=tuple(_listed_nodes(entry, path)))
            elif key == COLLECTION:
                plain_steps = list(_listed_texts(entry, path))
            elif key == "saved_model_assets":
                assets.update(_listed_assets(entry, path))
        elif field == 5:
            key, entry = _entry(value, path)
            signatures[key] = _signature(entry, path)
        elif field == 6:
            assets.update([_asset(message(value, path), path)])
    # Once the whole file is read: fields may come in any order.
    plain = plain_nodes(graph.nodes, plain_steps, path)
    return graph.replace(
        signatures=signatures,
        assets=assets,
        nodes={**graph.nodes, **plain},
        rewired=frozenset(plain),
    )


def _read_graph_def(data: memoryview, path: str) -> Graph:
    nodes: Dict[str, Node] = {}
    functions: List[bytes] = []
    for field, value in fields(data, path):
        if field == 1:
            node = read_node(message(value, path), path)
            nodes[node.name] = node
        elif field == 2:
            functions += _messages(message(value, path), 1, path)
    return Graph(path, nodes, functions=tuple(functions))


def _is_graph_def(data: memoryview, path: str) -> bool:
    """Whether it is a GraphDef rather than a MetaGraphDef.

    Nothing in the bytes names the type. Field 1 is a node in a GraphDef; in a MetaGraphDef it is
    the one MetaInfoDef. Field 2 of a node is the name of its op, that of a MetaInfoDef a list of op
    definitions, which begins with the tag of the first, a line feed.
    """
    first = [value for field, value in fields(data, path) if field == 1]
    if len(first) != 1:
        return len(first) > 1
    inner = [value for field, value in fields(message(first[0], path), path) if field == 2]
    return bool(inner) and bytes(message(inner[0], path))[:1] not in (b"", b"\n")


def _meta_graph(data: memoryview, path: str) -> memoryview:
    """The bytes of a MetaGraphDef. Only a SavedModel starts with a number, its schema version."""
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


def read_node(data: memoryview, path: str) -> Node:
    """A NodeDef; in a function its inputs are written differently, see migrate.graph.functions."""
    name, op = "", ""
    inputs: List[Edge] = []
    controls: List[str] = []
    attrs: Dict[str, bytes] = {}
    for field, value in fields(data, path):
        if field == 1:
            name = text(value, path)
        elif field == 2:
            op = text(value, path)
        elif field == 3:
            source, output = _edge(text(value, path), path)
            if output == CONTROL:
                controls.append(source)
            else:
                inputs.append((source, output))
        elif field == 5:
            pair = dict(fields(message(value, path), path))
            if 1 in pair and 2 in pair:
                attrs[text(pair[1], path)] = bytes(message(pair[2], path))
    return Node(name, op, tuple(inputs), attrs, tuple(controls))


def _edge(edge: str, path: str) -> Edge:
    try:
        return split(edge)
    except UsageError:
        problem = f"{path}: {edge!r} is not the input of a node; the graph is damaged"
        raise BadInput(problem) from None


def _messages(data: memoryview, number: int, path: str) -> List[bytes]:
    return [bytes(message(value, path)) for field, value in fields(data, path) if field == number]


def _entry(value: Value, path: str) -> Tuple[str, memoryview]:
    pair = dict(fields(message(value, path), path))
    return text(pair.get(1, memoryview(b"")), path), message(pair.get(2, memoryview(b"")), path)


def _variables(collection: memoryview, path: str) -> Iterator[str]:
    for listed in _messages(collection, 2, path):
        for variable in _messages(memoryview(listed), 1, path):
            name = dict(fields(memoryview(variable), path)).get(1, memoryview(b""))
            yield _edge(text(name, path), path)[0]


def _listed_nodes(collection: memoryview, path: str) -> Iterator[str]:
    for listed in _messages(collection, 1, path):
        for name in _messages(memoryview(listed), 1, path):
            yield _edge(text(memoryview(name), path), path)[0]


def _listed_texts(collection: memoryview, path: str) -> Iterator[str]:
    for listed in _messages(collection, 2, path):
        for entry in _messages(memoryview(listed), 1, path):
            yield text(memoryview(entry), path)


def _listed_assets(collection: memoryview, path: str) -> Iterator[Tuple[str, str]]:
    for listed in _messages(collection, 5, path):
        for packed in _messages(memoryview(listed), 1, path):
            for asset in _messages(memoryview(packed), 2, path):
                yield _asset(memoryview(asset), path)


def _asset(data: memoryview, path: str) -> Tuple[str, str]:
    parts = dict(fields(data, path))
    tensor = dict(fields(message(parts.get(1, memoryview(b"")), path), path))
    node, _ = _edge(text(tensor.get(1, memoryview(b"")), path), path)
    return node, text(parts.get(2, memoryview(b"")), path)


def _signature(data: memoryview, path: str) -> Signature:
    signature = Signature({}, {}, {})
    for field, value in fields(data, path):
        if field not in (1, 2):
            continue
        key, tensor = _entry(value, path)
        info = dict(fields(tensor, path))
        if 1 in info:
            (signature.inputs if field == 1 else signature.outputs)[key] = text(info[1], path)
        elif 4 in info and field == 1:
            parts = dict(fields(message(info[4], path), path))
            values, indices, shape = (
                text(parts.get(part, memoryview(b"")), path) for part in (1, 2, 3)
            )
            signature.sparse[key] = (indices, values, shape)
    return signature


def _saver_scope(data: memoryview, path: str) -> Optional[str]:
    """ "save/" for a Saver whose save_tensor_name is "save/control_dependency:0"."""
    for field, value in fields(data, path):
        if field == 2:
            return text(value, path).rpartition("/")[0] + "/"
    return None


@contextlib.contextmanager
def explained(graph: Graph, node: Optional[Node] = None) -> Iterator[None]:
    """A context in which `node`, or many nodes, are read.

    A foreign graph may have a string where a number belongs, a list that is too short, a constant
    op that fails. Handlers, finders of layers, folding and lowering do not check each case.

    Raises:
        BadInput: in place of the exception that Python or torch raises for values that do not fit.
    """
    try:
        yield
    except _UNFIT as error:
        told = " ".join(str(error).split())[:200]
        what = "its nodes cannot be converted: they do not fit together"
        if node is not None:
            what = f"the op {node.op} of node {node.name!r} cannot be converted: its attributes or "
            what += "constants do not fit it"
        raise BadInput(f"{graph.path}: {what} ({type(error).__name__}: {told})") from error
