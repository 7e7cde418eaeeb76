"""The features that a graph parses out of serialized tf.train.Examples.

    ParseExample    (serialized, names, sparse_keys * Nsparse, dense_keys * Ndense, defaults...)
    ParseExampleV2  (serialized, names, sparse_keys, dense_keys, ragged_keys, defaults...)
                    both give the sparse indices, values and shapes, then the dense values
    ParseSingleExample   the same of one row, with the keys as attributes
Source: tensorflow/core/ops/parsing_ops.cc
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.graph.attributes import Shape, dtypes, integer, shapes, strings
from migrate.graph.constants import constant_strings
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Graph, Node

PARSING = {"ParseExample", "ParseExampleV2", "ParseSingleExample"}


class Feature(NamedTuple):
    """A feature of an Example: sparse, with any number of values, or dense, of a shape per row."""

    name: str
    dtype: str
    sparse: bool
    shape: Shape


def features(walks: Walks) -> Dict[Edge, Tuple[Feature, ...]]:
    """By the serialized tensor, the features that are parsed out of it."""
    parsed: Dict[Edge, Tuple[Feature, ...]] = {}
    for node in walks.nodes.values():
        keys = keys_of(walks.graph, node) if node.inputs else None
        if keys is not None:
            edge = walks.origin(node.inputs[0])[1]
            parsed[edge] = (*parsed.get(edge, ()), *_described(walks.graph, node, *keys))
    return parsed


def keys_of(graph: Graph, node: Node) -> Optional[Tuple[List[str], List[str]]]:
    """The sparse and the dense keys; None for a node that parses nothing, or unknown keys."""
    if node.op not in PARSING:
        return None
    if node.op == "ParseSingleExample":
        return strings(graph, node, "sparse_keys"), strings(graph, node, "dense_keys")
    dense = len(dtypes(graph, node, "Tdense"))
    if node.op == "ParseExample":
        sparse = integer(graph, node, "Nsparse")
        listed = [_constants(graph, edge, 1) for edge in node.inputs[2 : 2 + sparse + dense]]
        keys = [key for constants in listed for key in constants or []]
        return (keys[:sparse], keys[sparse:]) if len(keys) == sparse + dense else None
    if len(node.inputs) < 4:
        return None
    counts = (integer(graph, node, "num_sparse"), dense)
    sparse_keys, dense_keys = (
        _constants(graph, edge, count) for edge, count in zip(node.inputs[2:4], counts)
    )
    return None if sparse_keys is None or dense_keys is None else (sparse_keys, dense_keys)


def parsed_keys(graph: Graph, node: Node) -> List[str]:
    """The key of each output of a node that parses; none of another."""
    sparse, dense = keys_of(graph, node) or ([], [])
    return [*sparse, *sparse, *sparse, *dense]


def _constants(graph: Graph, edge: Edge, count: int) -> Optional[List[str]]:
    return constant_strings(graph, edge[0], count) if count else []


def _described(
    graph: Graph, node: Node, sparse_keys: List[str], dense_keys: List[str]
) -> List[Feature]:
    sparse = zip(sparse_keys, dtypes(graph, node, "sparse_types"))
    dense = zip(dense_keys, dtypes(graph, node, "Tdense"), shapes(graph, node, "dense_shapes"))
    return [
        *(Feature(name, dtype, True, None) for name, dtype in sparse),
        *(Feature(name, dtype, False, shape) for name, dtype, shape in dense),
    ]
