"""Where the raw features enter a graph, and what they are called.

    Placeholder                         its name; tf.sparse_placeholder's three are one feature
    PlaceholderWithDefault              its name; may be left out
    IteratorGetNext, dequeued tensors   NAME:k, the k-th output
    ParseExample, ParseSingleExample    the name of the feature; of a sparse one the three parts
                                        together: (indices, values, dense_shape)
    DeserializeSparse                   its name; a sparse feature of an iterator, as above
    Fed                                 NAME:k; no op of TensorFlow's: what `cut_at` makes

1. What a SavedModel's signature takes, or the caller names (see `named_inputs`), is called so, and
   is an input wherever in the graph it lies: behind an op, or a constant.
2. What an iterator or a queue delivers is called as the feature that it is, where the graph has
   that name too: see `migrate.graph.interface.names`.
3. A bool placeholder whose name says that the model trains is no input: it is `self.training`.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

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
    r"Fed|IteratorGetNext(Sync)?|IteratorGetNextAsOptional|Queue\w*Dequeue\w*|ReaderRead\w*"
)
_TRAINING = re.compile(
    r"(^|[/_])(is_?)?(train(ing)?|learning_phase|phase)(_?(flag|mode|phase))?(_\d+)?$"
)
_COMPUTED = "~computed"  # after the name of a node that is fed in part; no node's name has a ~
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


def cut_at(graph: Graph, tensors: Iterable[str]) -> Graph:
    """The graph with an input in the place of each of the tensors that would be computed. What
    computes it remains only where another output of its op is read."""
    fed: Dict[str, Set[int]] = {}
    for name, output in map(split, tensors):
        node = graph.nodes.get(name)
        if node is None or node.op in VARIABLES or _input(graph, (name, output)) is not None:
            continue
        fed.setdefault(name, set()).add(output)

    def source(edge: Edge) -> Edge:
        name, output = edge
        return (name + _COMPUTED, output) if name in fed and output not in fed[name] else edge

    nodes = {
        name: node._replace(inputs=tuple(map(source, node.inputs)))
        for name, node in graph.nodes.items()
    }
    read = {edge for node in graph.nodes.values() for edge in node.inputs}
    for name in {edge[0] for edge in read if source(edge) != edge}:
        nodes[name + _COMPUTED] = nodes[name]._replace(name=name + _COMPUTED)
    nodes.update((name, _fed(graph, graph.nodes[name], max(fed[name]) + 1)) for name in fed)
    return graph._replace(nodes=nodes)


def _fed(graph: Graph, node: Node, count: int) -> Node:
    """What is fed in the place of `node`: of its types, and its shapes where these are told."""
    types = [output_dtype(graph, node, output) for output in range(count)]
    codes = {known.name: code for code, known in DTYPES.items()}
    attrs = {key: value for key, value in node.attrs.items() if key == "_output_shapes"}
    if all(dtype in codes for dtype in types):
        listed = b"".join(encode_varint(codes[dtype]) for dtype in types if dtype is not None)
        packed = b"\x32" + encode_varint(len(listed)) + listed  # ListValue.type
        attrs["output_types"] = b"\x0a" + encode_varint(len(packed)) + packed  # AttrValue.list
    return _waiting(node)._replace(op="Fed", attrs=attrs)


def cut_at_inputs(graph: Graph) -> Graph:
    """The graph without what is before its inputs: readers, queues, parsers; these wait for it
    still, in whichever branch or loop that is."""
    nodes = {name: _waiting(node) if _brings(node) else node for name, node in graph.nodes.items()}
    return graph._replace(nodes=nodes)


def _waiting(node: Node) -> Node:
    """A node that waits for what it would read."""
    controls = (*(name for name, _ in node.inputs), *node.controls)
    return node._replace(inputs=(), controls=controls)


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

    def all(self) -> List[Input]:
        """Those that anything in the graph reads, in the order of their tensors."""
        edges = {edge for node in self._graph.nodes.values() for edge in node.inputs}
        found = map(self.of, sorted(edge for edge in edges if edge[0] in self._graph.nodes))
        return [one for one in found if one is not None]


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
