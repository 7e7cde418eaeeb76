"""Which nodes change a variable after it has its first value."""

from __future__ import annotations

import re
from typing import Optional

from migrate.graph.lookups import PASS, origin
from migrate.graph.metagraph import Edge, Graph, Node

SETS = {"Assign": "set", "AssignVariableOp": "set"}
ADDS = {"AssignAdd": "add", "AssignAddVariableOp": "add"}
SUBTRACTS = {"AssignSub": "subtract", "AssignSubVariableOp": "subtract"}
WHOLE = {**SETS, **ADDS, **SUBTRACTS}
APPLIES = re.compile(r"(ById|Resource)?(Sparse)?Apply[A-Z]\w*")

_HOW = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
_SCATTERS = {f"Scatter{nd}{how}" for nd in ("", "Nd") for how in _HOW}
_RESOURCE_SCATTERS = {f"Resource{op}" for op in _SCATTERS}
# Ops on reference variables return the variable that they wrote, for further writes after them.
_THROUGH = PASS | _SCATTERS | {"Assign", "AssignAdd", "AssignSub"}
_RESTORES = {"RestoreSlice", "RestoreV2"}


def changed_variable(graph: Graph, node: Node) -> Optional[str]:
    """The variable that a node writes, unless it initialises or restores it; else None."""
    writes = node.op in WHOLE or node.op in _SCATTERS or node.op in _RESOURCE_SCATTERS
    if not node.inputs or not (writes or APPLIES.fullmatch(node.op)):
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
    if node is None or node.op not in SETS or len(node.inputs) < 2:
        return None
    return node.inputs[1] if node.inputs[0][0] == variable else None


def _is_first_value(graph: Graph, node: Node) -> bool:
    """Whether it initialises a variable, or restores it."""
    if node.op not in SETS:
        return False
    if node.name == initializer(node.inputs[0][0]):  # as tf.Variable names it
        return True
    source = graph.nodes.get(graph.beyond(node.inputs[1], {"Identity"})[0])
    return source is not None and source.op in _RESTORES
