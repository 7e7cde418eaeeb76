"""x[x != missing]: the values that a feature column takes from a dense feature.

    GatherNd(x, Where(x != ""))    of text; -1 of integers

Source: _to_sparse_input_and_drop_ignore_values in tensorflow/python/feature_column/
feature_column_v2.py
"""

from __future__ import annotations

from typing import List, Optional

from migrate.graph.metagraph import Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters


def find_present(subject: Subject, node: Node) -> Optional[Layer]:
    """The choice that `node` is."""
    if node.op != "GatherNd":
        return None
    where = subject.node(node.inputs[1])
    differs = subject.node(where.inputs[0]) if where.op == "Where" else where
    if differs.op != "NotEqual":
        return None
    missing = subject.constant(differs.inputs[1])
    same = subject.beyond(differs.inputs[0]) == subject.beyond(node.inputs[0])
    if not same or missing is None or missing.ndim:
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"{values[0].tensor}[{values[1].tensor}]"

    return Layer((node.inputs[0], where.inputs[0]), write)
