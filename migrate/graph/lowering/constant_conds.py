"""A tf.cond whose predicate is a constant, as the one branch that runs.

    Switch(x, constant)    hands on x in that branch; nothing reads the other
    Merge(x, other)        hands on x, which runs
    all else of the other  is left out; it never runs, its updates included

A job that says in Python whether it trains, but chooses between two BatchNorms by `tf.cond` all the
same, has such: `tf.cond(tf.cast(True, tf.bool), lambda: trained, lambda: served)`.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Set

from migrate.graph.metagraph import Edge, Graph, Node
from migrate.graph.tensors import constant_array

_SWITCHES, _MERGES = {"RefSwitch", "Switch"}, {"Merge", "RefMerge"}
_ENTERS = {"Enter", "RefEnter"}


def without_constant_conds(graph: Graph) -> Graph:
    """The graph with the branches that run in the place of such conds; itself if it has none."""
    taken = {}
    origin = graph.ends({"Identity"})
    for node in graph.nodes.values():
        whole = node.op in _SWITCHES and len(node.inputs) == 2  # else the graph is damaged
        branch = _branch(graph, origin(node.inputs[1])) if whole else None
        if branch is not None:
            taken[node.name] = branch
    if not taken:
        return graph
    dead = _Dead(graph, {(name, 1 - branch) for name, branch in taken.items()})
    nodes: Dict[str, Node] = {}
    for node in graph.nodes.values():
        if node.name in dead.nodes:
            continue
        kept = tuple(edge for edge in node.inputs if not dead.has(edge))
        if node.name in taken:
            kept = kept[:1]
        joined = node.op in _MERGES and len(kept) == 1
        op = "Identity" if node.name in taken or joined else node.op
        inputs = tuple((name, 0) if name in taken else (name, place) for name, place in kept)
        nodes[node.name] = node._replace(op=op, inputs=inputs)
    return graph._replace(nodes=nodes)


def _branch(graph: Graph, edge: Edge) -> Optional[int]:
    """The output of a Switch by `edge` that there always is; None where that is no constant."""
    predicate = graph.nodes.get(edge[0])
    if predicate is None or predicate.op != "Const":
        return None
    value = constant_array(graph, predicate)
    return int(value) if value.dtype == bool and not value.ndim else None


class _Dead:
    """What never runs: nodes by name, and of the Switches the outputs."""

    def __init__(self, graph: Graph, outputs: Set[Edge]) -> None:
        self._outputs = outputs
        self._enters = {node.name for node in graph.nodes.values() if node.op in _ENTERS}
        self.nodes: Set[str] = set()
        readers: Dict[str, List[Node]] = {}
        for node in graph.nodes.values():
            for name in {*(edge[0] for edge in node.inputs), *node.controls}:
                readers.setdefault(name, []).append(node)
        pending = [name for name, _ in outputs]
        while pending:
            for reader in readers.get(pending.pop(), ()):
                if reader.name not in self.nodes and self._is_dead(reader):
                    self.nodes.add(reader.name)
                    pending.append(reader.name)

    def has(self, edge: Edge) -> bool:
        """Whether `edge` never has a value."""
        return edge in self._outputs or edge[0] in self.nodes

    def _is_dead(self, node: Node) -> bool:
        inputs = [self.has(edge) for edge in node.inputs]
        if node.op in _MERGES:  # of a loop the Enter decides, since the NextIteration follows it
            entered = [edge[0] in self._enters for edge in node.inputs]
            inputs = [one for one, first in zip(inputs, entered) if first or not any(entered)]
            return all(inputs)
        return any(inputs) or any(name in self.nodes for name in node.controls)
