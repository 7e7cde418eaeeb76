"""Which nodes a model needs, in an order, and under which branches and loops each of them runs.

TensorFlow 1 writes control flow as dataflow (tensorflow/python/ops/control_flow_ops.py):

    tf.cond         Switch(data, pred) has an output per branch, 0 false and 1 true; Merge takes
                    the one that is there. Every tf.cond has a node `pred` of its own
    tf.while_loop   Enter -> Merge -> Switch -> Exit, and Switch:1 -> body -> NextIteration ->
                    Merge; its Switches share one LoopCond, its Enters name one frame

1. A node's region is the set of its guards, each (cond, branch) or (loop, ""). It runs where
   TensorFlow's executor runs it: under the guards of all that it waits for, inputs and control
   inputs alike (tensorflow/core/graph/control_flow.cc). A Switch's output adds the branch, a Merge
   takes the cond away.
2. An Enter adds its loop to the guards of all Enters of that loop, an Exit gives these guards back:
   a loop starts where the last of its variables does, and in every round of a loop around it.
3. A constant in a branch or a body has no input that says so: it waits for the pivot of the branch,
   the Identity of Switch(pred, pred), beside which `pred_id` stands, the pred of all other
   Switches; in a body for the Identity of the first variable's Switch.
4. Regions nest. Where they don't, the graph has control flow that is not tf.cond's or
   tf.while_loop's, and is refused.
"""

from __future__ import annotations

from typing import (
    Callable,
    Container,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from migrate.graph.attributes import string
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.errors import BadInput

SWITCHES = {"RefSwitch", "Switch"}
MERGES = {"Merge", "RefMerge"}
ENTERS = {"Enter", "RefEnter"}
NEXTS = {"NextIteration", "RefNextIteration"}
EXITS = {"Exit", "RefExit"}

Guard = Tuple[str, str]
Region = FrozenSet[Guard]
NOWHERE: Region = frozenset()


class Loop(NamedTuple):
    """One tf.while_loop: its LoopCond, and its Merges by name, each with its Enter's input and its
    NextIteration's input."""

    condition: str
    merges: Dict[str, Tuple[Edge, Edge]]


class Regions:
    """The needed part of a graph.

    needed      all nodes that the outputs depend on, and the predicates of the conds among them
    order       those that are to be written, inputs first; a loop's Enters and NextIterations, and
                what `replace` leaves out, are not
    of          the region of each
    cond_of     Merge -> its cond
    predicates  cond -> what it depends on
    loops       by frame
    frame_of    Merge or Exit -> its frame
    """

    def __init__(self, graph: Graph, outputs: Sequence[Edge]) -> None:
        self._graph = graph
        self._enters: Dict[str, List[Node]] = {}
        for node in graph.nodes.values():
            if node.op in ENTERS:
                self._enters.setdefault(_frame_name(graph, node), []).append(node)
        self._switched: Dict[str, Edge] = {}
        self.of: Dict[str, Region] = {}
        self.cond_of: Dict[str, str] = {}
        self.predicates: Dict[str, Edge] = {}
        self.frame_of: Dict[str, str] = {}
        self.loops: Dict[str, Loop] = {}
        needed: Dict[str, Node] = {}
        names = [edge[0] for edge in outputs]
        while names:
            found = [node for node in _needed(graph, names) if node.name not in needed]
            for node in sort(graph, [node.name for node in found], self._waits_for, self.of):
                self.of[node.name] = self._region(node)
            for node in found:
                needed[node.name] = node
                self._add(node)
            # constants in branches depend on nothing but the branch: not on its predicate
            names = [edge[0] for edge in self.predicates.values() if edge[0] not in needed]
        self.needed = list(needed.values())
        self._merges: Dict[str, List[str]] = {}
        for merge, cond in self.cond_of.items():
            self._merges.setdefault(cond, []).append(merge)
        self._names = [edge[0] for edge in outputs]
        self._replaced: Mapping[str, Sequence[Edge]] = {}
        self.order = sort(graph, self._names, self._before)

    def rounds(self, node: str) -> FrozenSet[str]:
        """The loops in whose rounds a node runs."""
        around = self.of.get(node, NOWHERE)
        return frozenset(guard for guard, _ in around if guard.startswith("loop "))

    def replace(self, inputs: Mapping[str, Sequence[Edge]]) -> None:
        """Sorts again, for nodes that need other inputs than the graph says; by their names."""
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
        """What the statement of `node` reads."""
        if node.name in self._replaced:
            return self._replaced[node.name]
        frame = self.frame_of.get(node.name)
        if frame is not None and node.op in MERGES:
            return self.loops[frame].merges[node.name]
        return node.inputs

    def _before(self, node: Node) -> List[str]:
        """The nodes whose statements stand before that of `node`: all branches of its cond, or the
        whole loop that it leaves."""
        if node.name in self._replaced:
            return [edge[0] for edge in self._replaced[node.name]]
        if node.name in self.cond_of:
            cond = self.cond_of[node.name]
            inputs = [
                edge for name in self._merges[cond] for edge in _node(self._graph, name).inputs
            ]
            return [self.predicates[cond][0], *(edge[0] for edge in inputs)]
        frame = self.frame_of.get(node.name)
        if frame is None:
            return [edge[0] for edge in node.inputs]
        loop = self.loops[frame]
        entered = [entered[0] for entered, _ in loop.merges.values()]
        if node.op in MERGES:
            return entered
        following = [following[0] for _, following in loop.merges.values()]
        return [*entered, *loop.merges, loop.condition, *following]

    def _waits_for(self, node: Node) -> List[str]:
        """The nodes whose regions say that of `node`."""
        nodes = self._enters[_frame_name(self._graph, node)] if node.op in ENTERS else [node]
        names = [edge[0] for one in nodes for edge in self._forward(one)]
        return [*names, *(name for one in nodes for name in self._controls(one))]

    def _forward(self, node: Node) -> List[Edge]:
        if node.op not in MERGES:
            return list(node.inputs)
        return [edge for edge in node.inputs if _node(self._graph, edge[0]).op not in NEXTS]

    def _controls(self, node: Node) -> List[str]:
        return [name for name in node.controls if name in self._graph.nodes]

    def _region(self, node: Node) -> Region:
        if node.op in ENTERS:
            frame = _frame_name(self._graph, node)
            return self._around(frame) | {loop_guard(frame)}
        if node.op in EXITS:
            left = self._left(node)
            return self._around(left[0]) if left else self._guards(node)
        if node.op in MERGES and self._frame(node) is None:
            own = self._own(node)
            return frozenset(guard for guard in self._guards(node) if guard[0] != own)
        return self._guards(node)

    def _guards(self, node: Node) -> Region:
        """The guards of all that a node waits for."""
        along = [self._along(edge) for edge in self._forward(node)]
        return NOWHERE.union(*along, *(self.of[name] for name in self._controls(node)))

    def _around(self, frame: str) -> Region:
        """Where a loop stands."""
        return NOWHERE.union(*map(self._guards, self._enters[frame]))

    def _along(self, edge: Edge) -> Region:
        """The guards of a value: those of its node, and the branch of a Switch."""
        node = _node(self._graph, edge[0])
        region = self.of[node.name]
        if node.op not in SWITCHES or self._is_loop_condition(node.inputs[1]):
            return region
        return region | {(self._cond(node), str(edge[1]))}

    def _cond(self, switch: Node) -> str:
        """What tells the cond of a Switch: its `pred_id`; of a pivot the one beside it."""
        predicate = switch.inputs[1]
        beside = (switch.name.rpartition("/")[0] + "/pred_id", 0)
        if switch.inputs[0] == predicate and beside[0] in self._graph.nodes:
            predicate = beside
        name = "cond {}:{}".format(*predicate)
        self._switched[name] = predicate
        return name

    def _is_loop_condition(self, edge: Edge) -> bool:
        return _node(self._graph, edge[0]).op == "LoopCond"

    def _frame(self, merge: Node) -> Optional[str]:
        """The frame of the loop that the Merge is a variable of; None for a branch's Merge."""
        sources = [_node(self._graph, edge[0]) for edge in merge.inputs]
        enters = [node for node in sources if node.op in ENTERS]
        if len(sources) != 2 or not enters or not any(node.op in NEXTS for node in sources):
            return None
        return _frame_name(self._graph, enters[0])

    def _left(self, node: Node) -> Optional[Tuple[str, str]]:
        """The frame and the LoopCond of the loop that an Exit leaves; None if there is no such."""
        switch = _node(self._graph, node.inputs[0][0])
        if switch.op not in SWITCHES or not self._is_loop_condition(switch.inputs[1]):
            return None
        merge = _node(self._graph, switch.inputs[0][0])
        frame = self._frame(merge) if merge.op in MERGES else None
        return None if frame is None else (frame, switch.inputs[1][0])

    def _own(self, merge: Node) -> Optional[str]:
        """The cond whose branches a Merge joins; None where it does not join two branches."""
        by_cond: Dict[str, set] = {}
        along = [self._along(edge) for edge in self._forward(merge)]
        for guards in along:
            for cond, branch in guards:
                by_cond.setdefault(cond, set()).add(branch)
        own = [
            cond
            for cond, branches in by_cond.items()
            if len(branches) > 1 or not all((cond, *branches) in guards for guards in along)
        ]
        return own[0] if len(own) == 1 and len(along) == 2 else None

    def _add(self, node: Node) -> None:
        """Keeps what a needed Merge or Exit says of its loop or cond."""
        if node.op in EXITS:
            frame, condition = self._left(node) or ("", "")
            if not frame or self.loops[frame].condition not in ("", condition):
                raise self._strange(node)
            self.frame_of[node.name] = frame
            self.loops[frame] = self.loops[frame]._replace(condition=condition)
            return
        looped = self._frame(node) if node.op in MERGES else None
        if looped is not None:
            self._add_to_loop(node, looped)
        elif node.op in MERGES:
            cond = self._own(node)
            if cond is None or cond not in self._switched:
                raise self._strange(node)
            self.cond_of[node.name] = cond
            self.predicates[cond] = self._switched[cond]

    def _add_to_loop(self, merge: Node, frame: str) -> None:
        sources = [_node(self._graph, edge[0]) for edge in merge.inputs]
        entered = next(node for node in sources if node.op in ENTERS).inputs[0]
        following = next(node for node in sources if node.op in NEXTS).inputs[0]
        self.frame_of[merge.name] = frame
        loop = self.loops.setdefault(frame, Loop("", {}))
        loop.merges[merge.name] = (entered, following)

    def branch_inputs(self, merge: Node) -> Tuple[Edge, Edge]:
        """The inputs of a branch's Merge: (if false, if true)."""
        cond = self.cond_of[merge.name]
        first, second = ({b for c, b in self._along(edge) if c == cond} for edge in merge.inputs)
        if first == {"1"} or second == {"0"}:
            return merge.inputs[1], merge.inputs[0]
        return merge.inputs[0], merge.inputs[1]

    def _strange(self, node: Node) -> BadInput:
        return BadInput(
            f"{self._graph.path}: node {node.name!r} ({node.op}) is control flow that neither "
            "tf.cond nor tf.while_loop writes; it cannot be converted"
        )


def _node(graph: Graph, name: str) -> Node:
    node = graph.nodes.get(name)
    if node is None:
        raise BadInput(f"{graph.path}: the graph names {name!r}, which it does not have")
    return node


def _frame_name(graph: Graph, enter: Node) -> str:
    return string(graph, enter, "frame_name").decode("utf-8", "replace")


def loop_guard(frame: str) -> Guard:
    """What says that a node runs in the rounds of a loop."""
    return f"loop {frame}", ""


def _needed(graph: Graph, roots: Iterable[str]) -> List[Node]:
    """The ancestors of `roots`, inputs first; what a NextIteration brings to a Merge comes after
    the Merge."""
    nexts: List[str] = []

    def before(node: Node) -> List[str]:
        names = [edge[0] for edge in node.inputs]
        if node.op not in MERGES:
            return names
        around = [name for name in names if _node(graph, name).op in NEXTS]
        nexts.extend(around)
        return [name for name in names if name not in around]

    order: Dict[str, Node] = {}
    pending = list(roots)
    while pending:
        order.update((node.name, node) for node in sort(graph, pending, before, order))
        pending = [name for name in nexts if name not in order]
        nexts.clear()
    return list(order.values())


def sort(
    graph: Graph,
    roots: Iterable[str],
    before: Callable[[Node], List[str]],
    known: Container[str] = (),
) -> List[Node]:
    """`roots` and all that `before` says comes before them, sorted so; without those in `known`."""
    order: List[Node] = []
    begun, done = set(), set()
    stack = [(name, False) for name in reversed(list(roots))]
    while stack:
        name, finished = stack.pop()
        if finished:
            done.add(name)
            order.append(_node(graph, name))
        elif name not in done and name not in known:
            if name in begun:
                raise BadInput(f"{graph.path}: node {name!r} depends on itself")
            begun.add(name)
            stack.append((name, True))
            stack += [(other, False) for other in reversed(before(_node(graph, name)))]
    return order
