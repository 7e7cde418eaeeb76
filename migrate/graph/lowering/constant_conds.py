"""A tf.cond whose predicate is a constant, as the one branch that runs.

    Switch(x, constant)    becomes x in the branch that runs; nothing reads the other
    Merge(x, other)        becomes x, from the branch that runs
    the other branch       is left out; it never runs, its updates included

Jobs have such a cond if they know in Python whether they train, but still choose between two
BatchNorms by `tf.cond`: `tf.cond(tf.cast(True, tf.bool), lambda: trained, lambda: served)`.
"""

from __future__ import annotations

from typing import Dict, Optional, Set

from graph_rewrite.graph.ops import ENTER, KEEP, MERGE, SWITCH
from migrate.graph.index import index_of
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.graph.tensors import constant_array


def without_constant_conds(graph: Graph) -> Graph:
    """The graph with the branch that runs in place of each such cond; itself if it has none."""
    taken = {}
    origin = graph.ends(KEEP)
    for node in graph.nodes.values():
        whole = node.op in SWITCH and len(node.inputs) == 2  # else it is damaged
        branch = _branch(graph, origin(node.inputs[1])) if whole else None
        if branch is not None:
            taken[node.name] = branch
    if not taken:
        return graph
    # The output that is never taken starts what never runs.
    dead = _Dead(graph, {(name, 1 - branch) for name, branch in taken.items()})
    nodes: Dict[str, Node] = {}
    for node in graph.nodes.values():
        if node.name in dead.nodes:
            continue
        kept = tuple(edge for edge in node.inputs if not dead.has(edge))
        # A Switch becomes the Identity of its data; the predicate goes.
        if node.name in taken:
            kept = kept[:1]
        joined = node.op in MERGE and len(kept) == 1
        op = "Identity" if node.name in taken or joined else node.op
        inputs = tuple((name, 0) if name in taken else (name, place) for name, place in kept)
        nodes[node.name] = node._replace(op=op, inputs=inputs)
    return graph.replace(nodes=nodes)


def _branch(graph: Graph, edge: Edge) -> Optional[int]:
    """The output that a Switch with the predicate `edge` always takes; None if that varies."""
    predicate = graph.nodes.get(edge[0])
    if predicate is None or predicate.op != "Const":
        return None
    value = constant_array(graph, predicate)
    return int(value) if value.dtype == bool and not value.ndim else None


class _Dead:
    """The nodes, and the outputs of Switches, that never run."""

    def __init__(self, graph: Graph, outputs: Set[Edge]) -> None:
        self._outputs = outputs
        self._enters = {node.name for node in graph.nodes.values() if node.op in ENTER}
        self.nodes: Set[str] = set()
        following = index_of(graph).following
        pending = [name for name, _ in outputs]
        while pending:
            for name in following(pending.pop()):
                if name not in self.nodes and self._is_dead(graph.nodes[name]):
                    self.nodes.add(name)
                    pending.append(name)

    def has(self, edge: Edge) -> bool:
        """Whether `edge` never has a value."""
        return edge in self._outputs or edge[0] in self.nodes

    def _is_dead(self, node: Node) -> bool:
        inputs = [self.has(edge) for edge in node.inputs]
        if node.op in MERGE:
            # A loop's Merge is dead if its Enter is: the NextIteration depends on the Merge itself.
            entered = [edge[0] in self._enters for edge in node.inputs]
            inputs = [one for one, first in zip(inputs, entered) if first or not any(entered)]
            return all(inputs)
        return any(inputs) or any(name in self.nodes for name in node.controls)
