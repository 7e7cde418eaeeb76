"""A graph in which some tensors are given instead of computed: each becomes a placeholder."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Sequence

from migrate.graph.attributes import Shape
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.tensor_names import of_edge
from semisync.encoding.dtypes import DTYPES
from semisync.encoding.wire import encode_varint

_CODES = {dtype.name: code for code, dtype in DTYPES.items()}


class Given(NamedTuple):
    """A placeholder that takes a value, by its name."""

    name: str
    dtype: str
    shape: Shape = None


def cut(graph: Graph, given: Mapping[Edge, Given]) -> Graph:
    """`graph` with placeholders for the tensors of `given`; the nodes that computed them stay."""
    to = {edge: (one.name, 0) for edge, one in given.items()}
    nodes: Dict[str, Node] = {}
    for name, node in graph.nodes.items():
        if any(edge in to for edge in node.inputs):
            node = node._replace(inputs=tuple(to.get(edge, edge) for edge in node.inputs))
        nodes[name] = node
    for one in given.values():
        attrs = {"dtype": b"\x30" + encode_varint(_CODES[one.dtype])}
        if one.shape is not None:
            attrs["shape"] = _shape(one.shape)
        nodes[one.name] = Node(one.name, "Placeholder", (), attrs)
    named = {one.name: (of_edge((one.name, 0)),) for one in given.values()} if graph.named else {}
    return graph.replace(nodes=nodes, named={**graph.named, **named})


def _shape(shape: Sequence[Optional[int]]) -> bytes:
    """AttrValue {7 shape}, TensorShapeProto {2 dim}, Dim {1 size}."""
    dims = b""
    for size in shape:
        # An unknown size is -1, as an int64 in two's complement.
        dim = b"\x08" + encode_varint((size if size is not None else -1) & (1 << 64) - 1)
        dims += b"\x12" + encode_varint(len(dim)) + dim
    return b"\x3a" + encode_varint(len(dims)) + dims
