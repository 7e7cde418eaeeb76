"""An indicator column of weighted ids: vectors of the sums of each id's weights.

    SparseReorder(concat(rows, ids), weights)     sparse_merge
    SparseSlice from [0, 0]                       negative ids are left out
    ScatterNd                                     the weights of equal ids are summed

Source: IndicatorColumn._transform_feature, tensorflow/python/feature_column/feature_column_v2.py
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Subject

_CONCATS = {"Concat", "ConcatV2"}


class WeightedOneHot(NamedTuple):
    """The ids, their weights, the length of a vector, and the nodes that serve only this."""

    ids: Edge
    weights: Edge
    depth: int
    nodes: Tuple[str, ...]


def find_weighted_one_hot(subject: Subject, node: Node) -> Optional[WeightedOneHot]:
    """The source of the vectors of `node`; None where it is another op, or form."""
    if node.op != "ScatterNd":
        return None
    cut = subject.node(node.inputs[0])
    if cut.op != "SparseSlice" or not _are(subject, node, cut):
        return None
    first, merged = subject.constant(cut.inputs[3]), subject.node(cut.inputs[0])
    if first is None or first.any() or merged.op != "SparseReorder":
        return None
    places, shape = subject.node(merged.inputs[0]), subject.node(merged.inputs[2])
    if places.op not in _CONCATS or shape.op not in _CONCATS or not _are(subject, cut, merged):
        return None
    column = subject.node(_last(places))
    depth = subject.constant(_last(shape))
    if column.op != "ExpandDims" or depth is None or depth.size != 1:
        return None
    names = (node.name, cut.name, merged.name, places.name, column.name)
    return WeightedOneHot(column.inputs[0], merged.inputs[1], int(depth.reshape(-1)[0]), names)


def _are(subject: Subject, node: Node, before: Node) -> bool:
    """Whether the first two inputs of a node are the indices and the values of the one before."""
    edges = [subject.beyond(edge) for edge in node.inputs[:2]]
    return edges == [(before.name, 0), (before.name, 1)]


def _last(concat: Node) -> Edge:
    return concat.inputs[-2] if concat.op == "ConcatV2" else concat.inputs[-1]
