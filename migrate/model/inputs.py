"""Where the raw features enter a graph, and what they are called.

    Placeholder                         its name; tf.sparse_placeholder's three are one feature
    PlaceholderWithDefault              its name; may be left out
    IteratorGetNext, dequeued tensors   NAME:k, the k-th output
    ParseExample, ParseSingleExample    the name of the feature; of a sparse one the three parts
                                        together: (indices, values, dense_shape)
    DeserializeSparse                   its name; a sparse feature of an iterator, as above

1. What a SavedModel's signature takes is called as there, and is an input wherever in the graph it
   lies: behind an op, or a constant.
2. What an iterator or a queue delivers is called as the feature that it is, where the graph has
   that name too: see `migrate.graph.interface.names`.
3. A bool placeholder whose name says that the model trains is no input: it is `self.training`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Tuple

from migrate.encoding.dtypes import DTYPES
from migrate.encoding.wire import encode_varint
from migrate.graph.attributes import Shape, dtypes, output_shape, shapes
from migrate.graph.interface.examples import PARSING, keys_of
from migrate.graph.interface.feeds import DESERIALIZES, is_sparse_placeholder
from migrate.graph.interface.names import delivered_names
from migrate.graph.interface.signatures import input_keys
from migrate.graph.lookups import VARIABLES
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.ops.types import output_dtype
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split

_PLACEHOLDERS = {"Placeholder", "PlaceholderV2"}
_DELIVERING = re.compile(
    r"IteratorGetNext(Sync)?|IteratorGetNextAsOptional|Queue\w*Dequeue\w*|ReaderRead\w*"
)
_TRAINING = re.compile(
    r"(^|[/_])(is_?)?(train(ing)?|learning_phase|phase)(_?(flag|mode|phase))?(_\d+)?$"
)
_PARTS = ("indices", "values", "shape")  # as tf.sparse_placeholder calls them
_PART_SHAPES: Tuple[Shape, ...] = ((None, 2), (None,), (2,))  # indices, values, dense_shape


class Input(NamedTuple):
    """One feature. part: which of a sparse one's three; None: it is dense. optional: a default
    stands in for it. tensors: those of the graph that bring it, one, or indices, values and
    dense_shape. guessed: whether the name is a guess, see `migrate.graph.interface.names`."""

    name: str
    dtype: Optional[str]
    shape: Shape
    part: Optional[int] = None
    optional: bool = False
    tensors: Tuple[str, ...] = ()
    guessed: bool = False


def is_training_flag(graph: Graph, node: Node) -> bool:
    """Whether a placeholder says if the model trains; by its type and its name."""
    if node.op not in _PLACEHOLDERS and node.op != "PlaceholderWithDefault":
        return False
    is_bool = "bool" in dtypes(graph, node, "dtype")
    return is_bool and _TRAINING.search(node.name.lower()) is not None


def at_signature(graph: Graph) -> Graph:
    """The graph with a placeholder wherever its signatures take what would be computed.

    Raises BadInput for an output of an op that has others beside it.
    """
    nodes = dict(graph.nodes)
    for tensor, key in input_keys(graph).items():
        name, output = split(tensor)
        node = graph.nodes.get(name)
        if node is None or node.op in VARIABLES or _input(graph, (name, output)) is not None:
            continue
        if output:
            raise BadInput(
                f"{graph.path}: the signature takes {key.name!r} as {tensor}, one of several "
                f"outputs of {node.op}; have it take a placeholder, or the Identity of that output"
            )
        nodes[name] = _placeholder(graph, node)
    return graph._replace(nodes=nodes)


def _placeholder(graph: Graph, node: Node) -> Node:
    """What is fed in the place of `node`: of its type, and its shape where that is told."""
    dtype = output_dtype(graph, node, 0)
    codes = {known.name: code for code, known in DTYPES.items()}
    attrs = {}
    if dtype in codes:
        attrs["dtype"] = b"\x30" + encode_varint(codes[dtype])  # AttrValue.type
    if "_output_shapes" in node.attrs:
        attrs["_output_shapes"] = node.attrs["_output_shapes"]
    return node._replace(op="Placeholder", inputs=(), controls=(), attrs=attrs)


def cut_at_inputs(graph: Graph) -> Graph:
    """The graph without what is before its inputs: readers, queues, parsers; these wait for it
    still, in whichever branch or loop that is."""

    def cut(node: Node) -> Node:
        controls = (*(name for name, _ in node.inputs), *node.controls)
        return node._replace(inputs=(), controls=controls)

    nodes = {name: cut(node) if _brings(node) else node for name, node in graph.nodes.items()}
    return graph._replace(nodes=nodes)


def is_input(node: Node) -> bool:
    """Whether a node brings features."""
    return node.op in _PLACEHOLDERS or _brings(node)


def _brings(node: Node) -> bool:
    return node.op in PARSING | DESERIALIZES or _DELIVERING.fullmatch(node.op) is not None


class Inputs:
    """The features of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._keys = input_keys(graph)
        self._delivered = delivered_names(graph)

    def of(self, edge: Edge) -> Optional[Input]:
        """The feature that `edge` brings; None where it is no input of the graph."""
        found = _input(self._graph, edge)
        if found is None:
            return None
        key = self._keys.get("{}:{}".format(*edge))
        if key is not None:
            return Input(key.name, found.dtype, found.shape, key.part, found.optional, key.tensors)
        node = self._graph.nodes[edge[0]]
        delivered = node.inputs[0] if node.op in DESERIALIZES and node.inputs else edge
        name = self._delivered.get(delivered)
        if name is None:
            return found
        return found._replace(name=name.name, guessed=name.guessed)


def _input(graph: Graph, edge: Edge) -> Optional[Input]:
    """The feature, by the name that it has in the graph."""
    node = graph.nodes[edge[0]]
    if node.op in _PLACEHOLDERS or node.op == "PlaceholderWithDefault":
        types = dtypes(graph, node, "dtype")
        optional = node.op == "PlaceholderWithDefault"
        shape = output_shape(graph, node, 0)
        name, part = _sparse_placeholder(graph, node)
        tensors = (f"{name}:0",) if part is None else tuple(f"{name}/{one}:0" for one in _PARTS)
        return Input(name, types[0] if types else None, shape, part, optional, tensors)
    if _DELIVERING.fullmatch(node.op):
        types = dtypes(graph, node, "output_types") or dtypes(graph, node, "component_types")
        listed = shapes(graph, node, "output_shapes")
        shape = listed[edge[1]] if edge[1] < len(listed) else output_shape(graph, node, edge[1])
        dtype = types[edge[1]] if edge[1] < len(types) else None
        name = "{}:{}".format(*edge)
        return Input(name, dtype, shape, tensors=(name,))
    if node.op in PARSING:
        return _parsed(graph, node, edge[1])
    if node.op in DESERIALIZES:
        types = dtypes(graph, node, "dtype")
        dtype = (types[0] if types else None) if edge[1] == 1 else "int64"
        tensors = tuple(f"{node.name}:{number}" for number in range(len(_PARTS)))
        return Input(node.name, dtype, _PART_SHAPES[edge[1]], edge[1], tensors=tensors)
    return None


def _sparse_placeholder(graph: Graph, node: Node) -> Tuple[str, Optional[int]]:
    """The feature and the part of it that a placeholder is; tf.sparse_placeholder makes three."""
    scope, _, last = node.name.rpartition("/")
    if last not in _PARTS or not is_sparse_placeholder(graph, scope):
        return node.name, None
    return scope, _PARTS.index(last)


def _parsed(graph: Graph, node: Node, output: int) -> Input:
    """An output of a parser: indices, values and shapes of the sparse ones, then the dense."""
    keys = keys_of(graph, node)
    if keys is None:
        raise BadInput(
            f"{graph.path}: the feature names of {node.name!r} are computed, expected constants"
        )
    sparse, dense = keys
    part, place = divmod(output, len(sparse)) if sparse else (len(_PARTS), output)
    if part < len(_PARTS):
        dtype = dtypes(graph, node, "sparse_types")[place] if part == 1 else "int64"
        tensors = tuple(f"{node.name}:{place + k * len(sparse)}" for k in range(len(_PARTS)))
        return Input(sparse[place], dtype, _PART_SHAPES[part], part, tensors=tensors)
    place = output - len(_PARTS) * len(sparse)
    if place >= len(dense):
        raise BadInput(
            f"{graph.path}: {node.name!r} parses ragged features, which are not supported; parse "
            "them as sparse ones"
        )
    shape = shapes(graph, node, "dense_shapes")[place]
    batched = node.op != "ParseSingleExample"
    rows = (None, *shape) if shape is not None and batched else shape
    dtype = dtypes(graph, node, "Tdense")[place]
    return Input(dense[place], dtype, rows, tensors=(f"{node.name}:{output}",))
