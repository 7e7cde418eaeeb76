"""x[x != missing]: the values that a feature column takes from a dense feature.

    GatherNd(x, Where(x != ""))    of text; -1 of integers

Source: _to_sparse_input_and_drop_ignore_values in tensorflow/python/feature_column/
feature_column_v2.py
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters


class Present(NamedTuple):
    """The values that a GatherNd chooses: x where `mask` is true, x != missing.

    Attributes:
        where: the node that lists their places.
    """

    x: Edge
    missing: numpy.ndarray
    mask: Edge
    where: str


def present(subject: Subject, node: Node) -> Optional[Present]:
    """The choice that `node`, a GatherNd, makes; None where it is another."""
    where = subject.node(node.inputs[1])
    differs = subject.node(where.inputs[0]) if where.op == "Where" else where
    if differs.op != "NotEqual":
        return None
    missing, x = subject.constant(differs.inputs[1]), subject.beyond(node.inputs[0])
    if subject.beyond(differs.inputs[0]) != x or missing is None or missing.ndim:
        return None
    return Present(x, missing, where.inputs[0], where.name)


def find_present(subject: Subject, node: Node) -> Optional[Layer]:
    """The choice that ends at `node`."""
    chosen = present(subject, node) if node.op == "GatherNd" else None
    if chosen is None:
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"{values[0].tensor}[{values[1].tensor}]"

    return Layer((node.inputs[0], chosen.mask), write)
