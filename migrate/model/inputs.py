"""Where the raw features enter a graph, and what they are called.

    Placeholder                         its name; tf.sparse_placeholder's three are one feature
    PlaceholderWithDefault              its name; may be left out
    IteratorGetNext, dequeued tensors   NAME:k, the k-th output
    ParseExample, ParseSingleExample    the name of the feature; of a sparse one the three parts
                                        together: (indices, values, dense_shape)
    DeserializeSparse                   its name; a sparse feature of an iterator, as above

A bool placeholder whose name says that the model trains is no input: it is `self.training`.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from migrate.graph.attributes import Shape, dtypes, output_shape, shapes, strings
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.graph.tensors import constant_array
from semisync.common.errors import BadInput

_PLACEHOLDERS = {"Placeholder", "PlaceholderV2"}
_DELIVERING = re.compile(
    r"IteratorGetNext(Sync)?|IteratorGetNextAsOptional|Queue\w*Dequeue\w*|ReaderRead\w*"
)
_SPARSE = {"DeserializeSparse"}
_PARSING = {"ParseExample", "ParseExampleV2", "ParseSingleExample"}
_TRAINING = re.compile(
    r"(^|[/_])(is_?)?(train(ing)?|learning_phase|phase)(_?(flag|mode|phase))?(_\d+)?$"
)
_PARTS = ("indices", "values", "shape")  # as tf.sparse_placeholder calls them
_PART_SHAPES: Tuple[Shape, ...] = ((None, 2), (None,), (2,))  # indices, values, dense_shape


class Input(NamedTuple):
    """One feature. part: which of a sparse one's three; None: it is dense. optional: a default
    stands in for it."""

    name: str
    dtype: Optional[str]
    shape: Shape
    part: Optional[int] = None
    optional: bool = False


def is_training_flag(graph: Graph, node: Node) -> bool:
    """Whether a placeholder says if the model trains; by its type and its name."""
    if node.op not in _PLACEHOLDERS and node.op != "PlaceholderWithDefault":
        return False
    is_bool = "bool" in dtypes(graph, node, "dtype")
    return is_bool and _TRAINING.search(node.name.lower()) is not None


def cut_at_inputs(graph: Graph) -> Graph:
    """The graph without what is before its inputs: readers, queues, parsers."""
    nodes = {
        name: node._replace(inputs=()) if _brings(node) else node
        for name, node in graph.nodes.items()
    }
    return graph._replace(nodes=nodes)


def is_input(node: Node) -> bool:
    """Whether a node brings features."""
    return node.op in _PLACEHOLDERS or _brings(node)


def _brings(node: Node) -> bool:
    return node.op in _PARSING | _SPARSE or _DELIVERING.fullmatch(node.op) is not None


def input_of(graph: Graph, edge: Edge) -> Optional[Input]:
    """The feature that `edge` brings; None where it is no input of the graph."""
    node = graph.nodes[edge[0]]
    if node.op in _PLACEHOLDERS or node.op == "PlaceholderWithDefault":
        types = dtypes(graph, node, "dtype")
        optional = node.op == "PlaceholderWithDefault"
        shape = output_shape(graph, node, 0)
        name, part = _sparse_placeholder(graph, node)
        return Input(name, types[0] if types else None, shape, part, optional)
    if _DELIVERING.fullmatch(node.op):
        types = dtypes(graph, node, "output_types") or dtypes(graph, node, "component_types")
        listed = shapes(graph, node, "output_shapes")
        shape = listed[edge[1]] if edge[1] < len(listed) else output_shape(graph, node, edge[1])
        dtype = types[edge[1]] if edge[1] < len(types) else None
        name = "{}:{}".format(*edge)
        return Input(name, dtype, shape)
    if node.op in _PARSING:
        return _parsed(graph, node)[edge[1]]
    if node.op in _SPARSE:
        types = dtypes(graph, node, "dtype")
        dtype = (types[0] if types else None) if edge[1] == 1 else "int64"
        return Input(node.name, dtype, _PART_SHAPES[edge[1]], edge[1])
    return None


def _sparse_placeholder(graph: Graph, node: Node) -> Tuple[str, Optional[int]]:
    """The feature and the part of it that a placeholder is; tf.sparse_placeholder makes three."""
    scope, _, last = node.name.rpartition("/")
    beside = [graph.nodes.get(f"{scope}/{part}") for part in _PARTS[:2]]
    if last not in _PARTS or any(one is None or one.op not in _PLACEHOLDERS for one in beside):
        return node.name, None
    return scope, _PARTS.index(last)


def _parsed(graph: Graph, node: Node) -> List[Input]:
    """The outputs of a parser: indices, values and shapes of the sparse ones, then the dense."""
    sparse_types = dtypes(graph, node, "sparse_types")
    dense_types = dtypes(graph, node, "Tdense")
    sparse, dense = _keys(graph, node, len(sparse_types), len(dense_types))
    dense_shapes = shapes(graph, node, "dense_shapes")
    parts: List[List[Input]] = [[], [], []]
    for name, dtype in zip(sparse, sparse_types):
        for number, part in enumerate(parts):
            kind = dtype if number == 1 else "int64"
            part.append(Input(name, kind, _PART_SHAPES[number], number))
    whole = [
        Input(name, dtype, None if shape is None else (None, *shape))
        for name, dtype, shape in zip(dense, dense_types, dense_shapes)
    ]
    return [*parts[0], *parts[1], *parts[2], *whole]


def _keys(graph: Graph, node: Node, sparse: int, dense: int) -> Tuple[List[str], List[str]]:
    if node.op == "ParseSingleExample":
        return strings(graph, node, "sparse_keys"), strings(graph, node, "dense_keys")
    if node.op == "ParseExampleV2":
        return _constants(graph, node, 2), _constants(graph, node, 3)
    keys = [_constants(graph, node, 2 + k) for k in range(sparse + dense)]
    names = [name for key in keys for name in key]
    return names[:sparse], names[sparse:]


def _constants(graph: Graph, node: Node, position: int) -> List[str]:
    source = graph.nodes.get(node.inputs[position][0])
    if source is None or source.op != "Const":
        raise BadInput(
            f"{graph.path}: the feature names of {node.name!r} are computed, expected constants"
        )
    return [key.decode() for key in constant_array(graph, source).reshape(-1)]
