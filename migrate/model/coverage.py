"""Whether a graph's model can be written: which of its ops are not known.

An op is known to the emitter if it is in the registry, passes on its input, or is a part of control
flow, a variable, an input or a lookup table.

A variable that is missing from the checkpoint is assigned by the graph in each run, as by TFRA's
look-ups in hash tables: the ops that compute its value are needed, too.
"""

from __future__ import annotations

from typing import Collection, Dict, Iterator, List, Optional, Sequence

from graph_rewrite.graph.ops import ASSIGN, EXIT, MERGE, VARIABLES
from migrate.graph.changes import changed_variable
from migrate.graph.interface.inputs import is_input
from migrate.graph.lowering.by_id import FIND
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.control.regions import Regions
from migrate.model.inputs import cut_at_inputs
from migrate.model.layers.layer import SAME
from migrate.model.lookup_tables import TABLES
from migrate.model.ops.registry import OPS
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of

_HANDLED = {
    "Const",
    FIND,
    "PlaceholderWithDefault",
    *(EXIT | MERGE | SAME | VARIABLES),
    *TABLES,
}
_PYTHON = {"EagerPyFunc", "PyFunc", "PyFuncStateless"}
_NAMED = 3  # nodes, and readers of a node, that an error lists


def unknown_ops(
    graph: Graph, outputs: Sequence[Edge], held: Optional[Collection[str]] = None
) -> Dict[str, List[Node]]:
    """The nodes that the outputs need and whose ops are not known, by op.

    Args:
        graph: lowered.
        held: the variable nodes that the checkpoint has; None: all.
    """
    cut = cut_at_inputs(graph)
    needed = list(Regions(cut, outputs).needed)
    if held is not None:
        # The ops behind such an assignment are needed, though they are no ancestors of the outputs.
        filled = [edge for node in needed for edge in _filled_by(cut, node, held)]
        seen = {node.name for node in needed}
        needed += [node for node in Regions(cut, filled).needed if node.name not in seen]
    unknown: Dict[str, List[Node]] = {}
    for node in needed:
        if node.op not in OPS and node.op not in _HANDLED and not is_input(node):
            unknown.setdefault(node.op, []).append(node)
    return unknown


def _filled_by(graph: Graph, variable: Node, held: Collection[str]) -> Iterator[Edge]:
    """The tensors that the graph assigns to `variable`, if the checkpoint lacks it."""
    if variable.op in VARIABLES and variable.name not in held:
        for node in graph.nodes.values():
            if node.op in ASSIGN and changed_variable(graph, node) == variable.name:
                yield from node.inputs[1:]


def refuse_unknown(graph: Graph, outputs: Sequence[Edge], held: Collection[str]) -> None:
    """Raises BadInput with every unknown op, a node of each, and its readers.

    Args:
        held: as for `unknown_ops`.
    """
    unknown = unknown_ops(graph, outputs, held)
    if unknown:
        named = "; ".join(_described(graph, op, nodes) for op, nodes in unknown.items())
        raise BadInput(
            f"{graph.path}: the model cannot be converted, as it has unknown ops: "
            f"{named}. docs/ops.md lists the known ones; --output may name a tensor before them, "
            "--input one behind them, and a plug-in those of your own server (docs/servers.md)"
        )


def _described(graph: Graph, op: str, nodes: Sequence[Node]) -> str:
    first = nodes[0]
    readers = [
        node.name
        for node in graph.nodes.values()
        if any(name == first.name for name, _ in node.inputs)
    ]
    read = f", read by {some_of(map(repr, readers), _NAMED)}" if readers else ""
    named = some_of((repr(node.name) for node in nodes), most=1)
    given = [f"{name!r} ({graph.nodes[name].op})" for name, _ in first.inputs]
    op += ", Python code that is not in the graph," if op in _PYTHON else ""
    return f"{op} of node {named} (of {some_of(given, _NAMED) or 'nothing'}{read})"
