"""The tf.sparse_placeholders that have no name: three ops without a scope that would join them.

1. TensorFlow makes the dense shape, the values and the indices one after the other.
2. An op of sparse tensors reads the indices beside the values or the shape; or the rows of the
   indices are the segments of a look-up, which reads no shape. Other placeholders of the same types
   and order are separate features.

Source: sparse_placeholder in tensorflow/python/ops/array_ops.py of 1.15 and 2.21.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List

from graph_rewrite.graph.index import Use
from migrate.graph.attributes import dtypes, output_shape
from migrate.graph.index import index_of
from migrate.graph.interface.signatures import Key
from migrate.graph.metagraph import Graph, Node
from semisync.common.tensor_names import in_session

_UNNAMED = re.compile(r"(.*/)?Placeholder(_\d+)?")
_PLACEHOLDERS = {"Placeholder", "PlaceholderV2"}
_GIVEN = {"Const", "PlaceholderWithDefault"}  # a shape that the caller gave


def unnamed_sparse(graph: Graph) -> Dict[str, Key]:
    """The indices, values and dense shape of each, by tensor, under the name of the values."""
    keys: Dict[str, Key] = {}
    nodes = list(graph.nodes.values())
    for shape, values, indices in zip(nodes, nodes[1:], nodes[2:]):
        parts = (indices.name, values.name, shape.name)
        if _are_parts(graph, shape, values, indices) and _is_read_as_sparse(graph, *parts):
            tensors = tuple(map(in_session, parts))
            keys.update((one, Key(values.name, tensors, k)) for k, one in enumerate(tensors))
    return keys


def _are_parts(graph: Graph, shape: Node, values: Node, indices: Node) -> bool:
    """Whether three nodes have the ops, types and ranks of a tf.sparse_placeholder's parts."""
    fed = (values, indices) if shape.op in _GIVEN else (shape, values, indices)
    return (
        all(node.op in _PLACEHOLDERS and _UNNAMED.fullmatch(node.name) for node in fed)
        and all("int64" in dtypes(graph, node, "dtype") for node in (shape, indices))
        and _rank(graph, values) == 1
        and _rank(graph, indices) == 2
        and (shape.op == "Const" or _rank(graph, shape) == 1)
    )


def _rank(graph: Graph, node: Node) -> int:
    return len(output_shape(graph, node, 0) or ())


def _is_read_as_sparse(graph: Graph, indices: str, values: str, shape: str) -> bool:
    for user, _, _ in index_of(graph).uses(indices):
        read = {name for name, _ in user.inputs}
        if "Sparse" in user.op and (values in read or shape in read):
            return True
    # A look-up alone reads no shape; a shape that is read otherwise is a feature of its own.
    return not index_of(graph).uses(shape) and any(_segments(graph, indices))


def _segments(graph: Graph, indices: str) -> Iterator[bool]:
    """For each column that is sliced from the indices, whether an op takes it as its segments."""
    for user, _, _ in index_of(graph).uses(indices):
        if user.op == "StridedSlice":
            users = _users(graph, user.name)
            yield any("Segment" in one.op and at == len(one.inputs) - 1 for one, at, _ in users)


def _users(graph: Graph, name: str) -> List[Use]:
    """The nodes that read a tensor, directly or cast to another type."""
    uses = index_of(graph).uses
    cast = (user.name for user, _, _ in uses(name) if user.op == "Cast")
    return [*uses(name), *(use for one in cast for use in uses(one))]
