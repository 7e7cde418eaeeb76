"""The raw features of a graph: their inputs, names, types and shapes.

    Placeholder                         its name; tf.sparse_placeholder's three are one feature,
                                        without a name too, see `sparse_placeholders`
    PlaceholderWithDefault              its name; may be left out
    IteratorGetNext, dequeued tensors   NAME:k, the k-th output
    ParseExample, ParseSingleExample    the name of the feature; of a sparse one the three parts
                                        together: (indices, values, dense_shape)
    DeserializeSparse                   its name; a sparse feature of an iterator, as above
    Fed                                 NAME:k; no op of TensorFlow's: what
                                        `migrate.model.inputs.cut_at` makes

A name from the caller or a SavedModel's signature comes first, see `signatures`; a tensor that an
iterator or a queue delivers has its feature's name, if the graph contains it, see `names`.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.graph.attributes import Shape, dtypes, output_shape, shapes
from migrate.graph.interface.examples import PARSING, keys_of, parsed_keys
from migrate.graph.interface.names import Name, delivered_names
from migrate.graph.interface.signatures import Key, input_keys
from migrate.graph.interface.sparse_placeholders import unnamed_sparse
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge, split

PLACEHOLDERS, DEFAULTED = {"Placeholder", "PlaceholderV2"}, {"PlaceholderWithDefault"}
DESERIALIZES = {"DeserializeSparse"}  # the sparse features of iterators
_DELIVERING = re.compile(r"Fed|IteratorGetNext(Sync)?|Queue\w*Dequeue\w*|ReaderRead\w*")
_PARTS = ("indices", "values", "shape")  # as tf.sparse_placeholder calls them
_PART_SHAPES: Tuple[Shape, ...] = ((None, 2), (None,), (2,))  # indices, values, dense_shape


class Input(NamedTuple):
    """One feature.

    Attributes:
        part: which of a sparse feature's three tensors; None: it is dense.
        optional: it has a default.
        tensors: the graph's tensors for it: one, or indices, values and dense_shape.
        guessed: whether the name is a guess, see `migrate.graph.interface.names`.
    """

    name: str
    dtype: Optional[str]
    shape: Shape
    part: Optional[int] = None
    optional: bool = False
    tensors: Tuple[str, ...] = ()
    guessed: bool = False


def is_input(node: Node) -> bool:
    """Whether a node brings features."""
    return node.op in PLACEHOLDERS or brings(node)


def brings(node: Node) -> bool:
    """Whether a node brings features from a node before it: a reader, a queue, a parser."""
    return node.op in PARSING | DESERIALIZES or _DELIVERING.fullmatch(node.op) is not None


class Inputs:
    """The features of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._keys = input_keys(graph)
        self._unnamed = _without(unnamed_sparse(graph), self._keys)
        self._delivered = delivered_names(graph)

    def of(self, edge: Edge) -> Optional[Input]:
        """The feature that `edge` brings; None where it is not an input of the graph."""
        found = input_at(self._graph, edge)
        if found is None:
            return None
        tensor = of_edge(edge)
        key = self._keys.get(tensor) or self._unnamed.get(tensor)
        if key is not None:
            return found._replace(name=key.name, part=key.part, tensors=key.tensors)
        called = self.called(edge)
        return found if called is None else found._replace(**called._asdict())

    def called(self, edge: Edge) -> Optional[Name]:
        """The name of `edge` by the caller, a signature or a data set; None: it has none there."""
        key = self._keys.get(of_edge(edge))
        if key is not None:
            return Name(key.name, False)
        node = self._graph.nodes[edge[0]]
        delivered = node.inputs[0] if node.op in DESERIALIZES and node.inputs else edge
        return self._delivered.get(delivered)

    def brought_by(self, node: Node) -> List[Input]:
        """The features that a node brings; for a sparse one its values, with the shape of a row."""
        edges = [(node.name, output) for output in range(_outputs(self._graph, node))]
        found = [one for one in map(self.of, edges) if one is not None]
        dense = [one for one in found if one.part is None]
        return [*dense, *(self._whole(one) for one in found if one.part == 1)]

    def _whole(self, values: Input) -> Input:
        edge = split(values.tensors[0])
        indices = input_at(self._graph, edge) if edge[0] in self._graph.nodes else None
        shape = None if indices is None else indices.shape
        rank = shape[1] if shape is not None and len(shape) == 2 else None
        return values._replace(shape=None if rank is None else (None,) * rank)


def _without(unnamed: Dict[str, Key], keys: Dict[str, Key]) -> Dict[str, Key]:
    """The inputs none of whose tensors has a name by the caller or a signature."""
    return {one: key for one, key in unnamed.items() if not keys.keys() & set(key.tensors)}


def _outputs(graph: Graph, node: Node) -> int:
    """How many of a node's outputs bring features."""
    if node.op in PARSING:
        return len(parsed_keys(graph, node))
    if _DELIVERING.fullmatch(node.op):
        return len(_types(graph, node))
    return len(_PARTS) if node.op in DESERIALIZES else int(node.op in PLACEHOLDERS | DEFAULTED)


def _types(graph: Graph, node: Node) -> List[str]:
    """The data types of the tensors that an iterator or a queue delivers."""
    return dtypes(graph, node, "output_types") or dtypes(graph, node, "component_types")


def input_at(graph: Graph, edge: Edge) -> Optional[Input]:
    """The feature that `edge` brings, by its name in the graph; None where it brings none."""
    node = graph.nodes[edge[0]]
    if node.op in PLACEHOLDERS or node.op in DEFAULTED:
        types, optional = dtypes(graph, node, "dtype"), node.op in DEFAULTED
        shape = output_shape(graph, node, 0)
        name, part = _sparse_placeholder(graph, node)
        tensors = (f"{name}:0",) if part is None else tuple(f"{name}/{one}:0" for one in _PARTS)
        return Input(name, types[0] if types else None, shape, part, optional, tensors)
    if _DELIVERING.fullmatch(node.op):
        types = _types(graph, node)
        listed = shapes(graph, node, "output_shapes")
        shape = listed[edge[1]] if edge[1] < len(listed) else output_shape(graph, node, edge[1])
        dtype = types[edge[1]] if edge[1] < len(types) else None
        name = of_edge(edge)
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
    """The feature of a placeholder, and which part it is; tf.sparse_placeholder makes three."""
    scope, _, last = node.name.rpartition("/")
    if last not in _PARTS or not _is_sparse_placeholder(graph, scope):
        return node.name, None
    return scope, _PARTS.index(last)


def _is_sparse_placeholder(graph: Graph, base: str) -> bool:
    """Whether the nodes `base`/... are a tf.sparse_placeholder; its shape may be a constant."""
    return f"{base}/shape" in graph.nodes and all(
        f"{base}/{part}" in graph.nodes
        and graph.nodes[f"{base}/{part}"].op in PLACEHOLDERS | DEFAULTED
        for part in _PARTS[:2]
    )


def _parsed(graph: Graph, node: Node, output: int) -> Input:
    """An output of a parser: indices, values and shapes of the sparse ones, then the dense."""
    keys = keys_of(graph, node)
    if keys is None:
        raise BadInput(
            f"{graph.path}: the feature names of {node.name!r} are computed, expected constants"
        )
    sparse, dense = keys
    # The indices of all sparse features, then all values, all shapes, and the dense features.
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
