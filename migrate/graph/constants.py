"""Numbers that a graph computes from constants alone.

A hyperparameter is a constant, or some arithmetic on constants: TensorFlow 2's Ftrl, for one, gives
its training op l2 + beta / (2 learning_rate).
"""

from __future__ import annotations

import operator
from typing import Callable, Dict, Optional

from migrate.graph.metagraph import Graph, constant_float

_PASS = {"Identity", "ReadVariableOp", "Cast"}
_ARITHMETIC: Dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Maximum": max,
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Sub": operator.sub,
}
_MAX_DEPTH = 16  # a damaged graph may be circular


def constant(graph: Graph, name: str, depth: int = _MAX_DEPTH) -> Optional[float]:
    """The number that node `name` computes; None where it depends on more than constants."""
    node = graph.nodes.get(name)
    if node is None or not depth:
        return None
    if node.op in _PASS and node.inputs:
        return constant(graph, node.inputs[0][0], depth - 1)
    if node.op in _ARITHMETIC and len(node.inputs) == 2:
        left, right = (constant(graph, edge[0], depth - 1) for edge in node.inputs)
        if left is None or right is None or (node.op == "RealDiv" and not right):
            return None
        return _ARITHMETIC[node.op](left, right)
    return constant_float(graph, name)
