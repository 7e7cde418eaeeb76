"""Which nodes change a variable after it has its first value."""

from __future__ import annotations

from typing import Optional

from graph_rewrite.graph.ops import ASSIGN, PASS, RESTORES, SCATTER, TRAINING_OP, WHOLE
from migrate.graph.lookups import origin
from migrate.graph.metagraph import Edge, Graph, Node

# Ops on reference variables return the variable that they wrote, for further writes after them.
_CHANGES = SCATTER.union(WHOLE)
_THROUGH = PASS | _CHANGES


def changed_variable(graph: Graph, node: Node) -> Optional[str]:
    """The variable that a node writes, unless it initialises or restores it; else None."""
    if not node.inputs or not (node.op in _CHANGES or TRAINING_OP.match(node.op)):
        return None
    return None if _is_first_value(graph, node) else origin(graph, node.inputs[0], _THROUGH)


def is_written(graph: Graph, variable: str) -> bool:
    """Whether anything in the graph changes a variable after its first value."""
    return any(changed_variable(graph, node) == variable for node in graph.nodes.values())


def initializer(variable: str) -> str:
    """The name of the node that gives a variable its first value."""
    return f"{variable}/Assign"


def first_value(graph: Graph, variable: str) -> Optional[Edge]:
    """The initial value of a variable; None if it has no initializer."""
    node = graph.nodes.get(initializer(variable))
    if node is None or node.op not in ASSIGN or len(node.inputs) < 2:
        return None
    return node.inputs[1] if node.inputs[0][0] == variable else None


def _is_first_value(graph: Graph, node: Node) -> bool:
    """Whether it initialises a variable, or restores it."""
    if node.op not in ASSIGN:
        return False
    if node.name == initializer(node.inputs[0][0]):  # as tf.Variable names it
        return True
    source = graph.nodes.get(graph.beyond(node.inputs[1], PASS)[0])
    return source is not None and source.op in RESTORES
