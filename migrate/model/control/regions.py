"""The nodes that a model needs, in order, with the loops and the branches among them.

`guards` finds where each of them runs. Regions nest. A graph in which they do not has control flow
of neither tf.cond nor tf.while_loop, and is refused.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from graph_rewrite.graph.ops import ENTER, EXIT, MERGE, NEXT
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.control.guards import NOWHERE, Guards, loop_guard, loops_of
from migrate.model.control.order import node_of, sort
from semisync.common.errors import BadInput


class Loop(NamedTuple):
    """A tf.while_loop: its LoopCond, and its Merges with the inputs of Enter and NextIteration."""

    condition: str
    merges: Dict[str, Tuple[Edge, Edge]]


class Regions:
    """The needed part of a graph.

    needed      all nodes that the outputs depend on, and the predicates of the conds among them
    order       those that are to be written, inputs first; a loop's Enters and NextIterations, and
                nodes that `replace` leaves out, are not
    of          the region of each
    cond_of     Merge -> its cond
    predicates  cond -> its predicate
    loops       by frame
    conditions  their LoopConds
    frame_of    Merge or Exit -> its frame
    """

    def __init__(self, graph: Graph, outputs: Sequence[Edge]) -> None:
        self._graph, self._guards = graph, Guards(graph)
        self.of = self._guards.of
        self.cond_of: Dict[str, str] = {}
        self.predicates: Dict[str, Edge] = {}
        self.frame_of: Dict[str, str] = {}
        self.loops: Dict[str, Loop] = {}
        needed: Dict[str, Node] = {}
        names = [edge[0] for edge in outputs]
        while names:
            found = [node for node in _needed(graph, names) if node.name not in needed]
            self._guards.add(node.name for node in found)
            for node in found:
                needed[node.name] = node
                self._add(node)
            # constants in branches depend on the branch only, not on its predicate
            names = [edge[0] for edge in self.predicates.values() if edge[0] not in needed]
        self.needed = list(needed.values())
        self.conditions = frozenset(loop.condition for loop in self.loops.values())
        self._merges: Dict[str, List[str]] = {}
        for merge, cond in self.cond_of.items():
            self._merges.setdefault(cond, []).append(merge)
        self._names = [edge[0] for edge in outputs]
        self._replaced: Mapping[str, Sequence[Edge]] = {}
        self.order = sort(graph, self._names, self._before)

    def rounds(self, node: str) -> FrozenSet[str]:
        """The loops in whose iterations a node runs."""
        return loops_of(self.of.get(node, NOWHERE))

    def replace(self, inputs: Mapping[str, Sequence[Edge]]) -> None:
        """Sorts again, for nodes whose needed inputs differ from the graph's; by their names."""
        self._replaced = inputs
        self.order = sort(self._graph, self._names, self._before)

    def without(self, inputs: Mapping[str, Sequence[Edge]]) -> List[Node]:
        """The nodes that would be written after `replace`."""
        before, self._replaced = self._replaced, inputs
        try:
            return sort(self._graph, self._names, self._before)
        finally:
            self._replaced = before

    def read_by(self, node: Node) -> Sequence[Edge]:
        """The tensors that the statement of `node` reads."""
        if node.name in self._replaced:
            return self._replaced[node.name]
        frame = self.frame_of.get(node.name)
        if frame is not None and node.op in MERGE:
            return self.loops[frame].merges[node.name]
        return node.inputs

    def readers(self) -> Dict[str, List[Node]]:
        """The nodes whose statements read each node, by its name."""
        readers: Dict[str, List[Node]] = {}
        for node in self.order:
            for name in {name for name, _ in self.read_by(node)}:
                readers.setdefault(name, []).append(node)
        return readers

    def _before(self, node: Node) -> List[str]:
        """The nodes whose statements precede a node's: its whole cond, or the loop it leaves."""
        if node.name in self._replaced:
            return [edge[0] for edge in self._replaced[node.name]]
        if node.name in self.cond_of:
            # All Merges of a cond share its `if`, so that what any of them reads must come before
            # it.
            cond = self.cond_of[node.name]
            inputs = [
                edge for name in self._merges[cond] for edge in node_of(self._graph, name).inputs
            ]
            return [self.predicates[cond][0], *(edge[0] for edge in inputs)]
        frame = self.frame_of.get(node.name)
        if frame is None:
            return [edge[0] for edge in node.inputs]
        loop = self.loops[frame]
        entered = [entered[0] for entered, _ in loop.merges.values()]
        if node.op in MERGE:
            return entered
        following = [following[0] for _, following in loop.merges.values()]
        return [*entered, *loop.merges, loop.condition, *following]

    def _add(self, node: Node) -> None:
        """Records the loop or cond of a needed Merge or Exit."""
        if node.op in EXIT:
            frame, condition = self._guards.left(node) or ("", "")
            inside = self.of[node.name] | {loop_guard(frame)}
            if not frame or self.loops[frame].condition not in ("", condition):
                raise self._strange(node)
            # The condition must run in every iteration and under nothing else.
            if self.of[condition] != inside:
                raise self._strange(node_of(self._graph, condition))
            self.frame_of[node.name] = frame
            self.loops[frame] = self.loops[frame]._replace(condition=condition)
            return
        looped = self._guards.frame(node) if node.op in MERGE else None
        if looped is not None:
            self._add_to_loop(node, looped)
        elif node.op in MERGE:
            cond = self._guards.own(node)
            predicate = self._guards.predicates.get(cond or "")
            if cond is None or predicate is None:
                raise self._strange(node)
            self.cond_of[node.name] = cond
            self.predicates[cond] = predicate

    def _add_to_loop(self, merge: Node, frame: str) -> None:
        sources = [node_of(self._graph, edge[0]) for edge in merge.inputs]
        entered = next(node for node in sources if node.op in ENTER).inputs[0]
        following = next(node for node in sources if node.op in NEXT).inputs[0]
        self.frame_of[merge.name] = frame
        loop = self.loops.setdefault(frame, Loop("", {}))  # an Exit adds the LoopCond
        loop.merges[merge.name] = (entered, following)

    def branch_inputs(self, merge: Node) -> Tuple[Edge, Edge]:
        """The inputs of a branch's Merge: (if false, if true)."""
        cond = self.cond_of[merge.name]
        first, second = (
            {b for c, b in self._guards.along(edge) if c == cond} for edge in merge.inputs
        )
        # One input may be outside of both branches: the other one tells which is which.
        if first == {"1"} or second == {"0"}:
            return merge.inputs[1], merge.inputs[0]
        return merge.inputs[0], merge.inputs[1]

    def _strange(self, node: Node) -> BadInput:
        return BadInput(
            f"{self._graph.path}: node {node.name!r} ({node.op}) is control flow that neither "
            "tf.cond nor tf.while_loop writes; it cannot be converted"
        )


def _needed(graph: Graph, roots: Iterable[str]) -> List[Node]:
    """The ancestors of `roots`, inputs first, but a Merge before its NextIteration."""
    nexts: List[str] = []

    def before(node: Node) -> List[str]:
        names = [edge[0] for edge in node.inputs]
        if node.op not in MERGE:
            return names
        around = [name for name in names if node_of(graph, name).op in NEXT]
        nexts.extend(around)
        return [name for name in names if name not in around]

    order: Dict[str, Node] = {}
    pending = list(roots)
    while pending:
        order.update((node.name, node) for node in sort(graph, pending, before, order))
        pending = [name for name in nexts if name not in order]
        nexts.clear()
    return list(order.values())
