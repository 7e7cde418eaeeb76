"""The branches and loops under which each node of a graph runs.

TensorFlow 1 writes control flow as dataflow (tensorflow/python/ops/control_flow_ops.py):

    tf.cond         Switch(data, pred) has an output per branch, 0 false and 1 true; Merge takes
                    the one that is there. Every tf.cond has a node `pred` of its own
    tf.while_loop   Enter -> Merge -> Switch -> Exit, and Switch:1 -> body -> NextIteration ->
                    Merge; its Switches share one LoopCond, its Enters name one frame

1. A node's region is the set of its guards, each (cond, branch) or (loop, ""). It runs where
   TensorFlow's executor runs it: under the guards of all its inputs and control inputs
   (tensorflow/core/graph/control_flow.cc). A Switch's output adds the branch, a Merge removes the
   cond.
2. An Enter adds its loop to the guards of all Enters of that loop, an Exit returns to these guards:
   a loop starts where the last of its variables does, and in every iteration of a loop around it.
   Only needed Enters count: gradients add a counter and stacks to a loop, which wait for the inputs
   of the gradients, such as statistics of the loop's results. In a loop that is only waited for
   each Enter counts by itself.
3. A constant in a branch or a body has no input that shows it: it waits for the pivot of the
   branch, the Identity of Switch(pred, pred), beside which is `pred_id`, the pred of all other
   Switches; in a body for the Identity of the first variable's Switch.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Iterable, List, Optional, Tuple

from graph_rewrite.graph.ops import ENTER, EXIT, MERGE, NEXT, SWITCH
from migrate.graph.attributes import string
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.control.order import node_of, sort
from semisync.common.errors import BadInput

# CPython allows 100 levels of indentation and 20 nested loops.
_DEEPEST, _MOST_LOOPS = 64, 16

# The least number of inputs of each; a damaged graph may have fewer.
_INPUTS = {
    **dict.fromkeys(["Identity", "LoopCond", *ENTER, *EXIT, *NEXT], 1),
    **dict.fromkeys([*MERGE, *SWITCH], 2),
}

Guard = Tuple[str, str]
Region = FrozenSet[Guard]
NOWHERE: Region = frozenset()


class Guards:
    """The regions of the nodes passed to `add`, and of all nodes that these wait for.

    of          the region of each
    predicates  cond -> its predicate
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        for node in graph.nodes.values():
            # Checked once here: the code below takes inputs by their numbers.
            if len(node.inputs) < _INPUTS.get(node.op, 0):
                raise BadInput(
                    f"{graph.path}: node {node.name!r} ({node.op}) has {len(node.inputs)} inputs, "
                    f"expected {_INPUTS[node.op]}; the graph is damaged"
                )
        self._needed: Dict[str, Dict[str, Node]] = {}
        self._standing: Dict[str, Region] = {}
        self.of: Dict[str, Region] = {}
        self.predicates: Dict[str, Edge] = {}

    def add(self, names: Iterable[str]) -> None:
        """Finds where these nodes run."""
        names = list(names)
        for node in (node_of(self._graph, name) for name in names):
            if node.op in ENTER:
                # Before the sort: where a loop stands depends on all of its needed Enters (2.
                # above).
                self._needed.setdefault(_frame_name(self._graph, node), {})[node.name] = node
        for node in sort(self._graph, names, self._waits_for, self.of):
            region = self.of[node.name] = self._region(node)
            if len(region) > _DEEPEST or len(loops_of(region)) > _MOST_LOOPS:
                raise BadInput(
                    f"{self._graph.path}: node {node.name!r} lies in {len(region)} branches and "
                    f"loops, one in the other, expected at most {_DEEPEST}, of which {_MOST_LOOPS} "
                    "are loops: Python allows no more"
                )

    def along(self, edge: Edge) -> Region:
        """The guards of a value: those of its node, and the branch of a Switch."""
        node = node_of(self._graph, edge[0])
        region = self.of[node.name]
        if node.op not in SWITCH or self._is_loop_condition(node.inputs[1]):
            return region
        return region | {(self._cond(node), str(edge[1]))}

    def frame(self, merge: Node) -> Optional[str]:
        """The frame of the loop whose variable the Merge is; None for a branch's Merge."""
        sources = [node_of(self._graph, edge[0]) for edge in merge.inputs]
        enters = [node for node in sources if node.op in ENTER]
        # A loop's Merge joins an Enter and a NextIteration; a cond's has neither.
        if len(sources) != 2 or not enters or not any(node.op in NEXT for node in sources):
            return None
        return _frame_name(self._graph, enters[0])

    def left(self, node: Node) -> Optional[Tuple[str, str]]:
        """The frame and the LoopCond of the loop that an Exit leaves; None without one."""
        switch = left_from(self._graph, node)
        if switch.op not in SWITCH or not self._is_loop_condition(switch.inputs[1]):
            return None
        merge = node_of(self._graph, switch.inputs[0][0])
        frame = self.frame(merge) if merge.op in MERGE else None
        return None if frame is None else (frame, switch.inputs[1][0])

    def own(self, merge: Node) -> Optional[str]:
        """The cond whose branches a Merge joins; None where it does not join two branches."""
        by_cond: Dict[str, set] = {}
        along = [self.along(edge) for edge in self._forward(merge)]
        for guards in along:
            for cond, branch in guards:
                by_cond.setdefault(cond, set()).add(branch)
        own = [
            cond
            for cond, branches in by_cond.items()
            # The inputs lie in different branches of it, or one of them outside of it.
            if len(branches) > 1 or not all((cond, *branches) in guards for guards in along)
        ]
        return own[0] if len(own) == 1 and len(along) == 2 else None

    def _waits_for(self, node: Node) -> List[str]:
        """The nodes whose regions determine that of `node`."""
        nodes = self._entering(node) if node.op in ENTER else [node]
        names = [edge[0] for one in nodes for edge in self._forward(one)]
        return [*names, *(name for one in nodes for name in self._controls(one))]

    def _entering(self, enter: Node) -> Collection[Node]:
        """The Enters that determine where a loop runs."""
        needed = self._needed.get(_frame_name(self._graph, enter))
        return needed.values() if needed else [enter]

    def _forward(self, node: Node) -> List[Edge]:
        if node.op not in MERGE:
            return list(node.inputs)
        return [edge for edge in node.inputs if node_of(self._graph, edge[0]).op not in NEXT]

    def _controls(self, node: Node) -> List[str]:
        return [name for name in node.controls if name in self._graph.nodes]

    def _region(self, node: Node) -> Region:
        if node.op in ENTER:
            frame = _frame_name(self._graph, node)
            # Needed Enters are joined at once; of a loop that is only waited for, each adds its
            # guards.
            if frame not in self._standing or frame not in self._needed:
                around = NOWHERE.union(*map(self._guards, self._entering(node)))
                self._standing[frame] = self._standing.get(frame, NOWHERE) | around
            return self._standing[frame] | {loop_guard(frame)}
        if node.op in EXIT:
            left = self.left(node)
            return self._standing[left[0]] if left else self._guards(node)
        if node.op in MERGE and self.frame(node) is None:
            own = self.own(node)
            return frozenset(guard for guard in self._guards(node) if guard[0] != own)
        return self._guards(node)

    def _guards(self, node: Node) -> Region:
        """The guards of all inputs and control inputs of a node."""
        along = [self.along(edge) for edge in self._forward(node)]
        return NOWHERE.union(*along, *(self.of[name] for name in self._controls(node)))

    def _cond(self, switch: Node) -> str:
        """The name of a Switch's cond, after its `pred_id`; a pivot reads the predicate itself, and
        `pred_id` stands beside the pivot."""
        predicate = switch.inputs[1]
        beside = (switch.name.rpartition("/")[0] + "/pred_id", 0)
        if switch.inputs[0] == predicate and beside[0] in self._graph.nodes:
            predicate = beside
        name = "cond {}:{}".format(*predicate)
        self.predicates[name] = predicate
        return name

    def _is_loop_condition(self, edge: Edge) -> bool:
        return node_of(self._graph, edge[0]).op == "LoopCond"


def _frame_name(graph: Graph, enter: Node) -> str:
    return string(graph, enter, "frame_name").decode("utf-8", "replace")


def left_from(graph: Graph, leaving: Node) -> Node:
    """The Switch whose value an Exit takes, through an Identity in the loop of a gradient."""
    return node_of(graph, graph.beyond(leaving.inputs[0], {"Identity", "RefIdentity"})[0])


def loop_guard(frame: str) -> Guard:
    """The guard of nodes that run in every iteration of a loop."""
    return f"loop {frame}", ""


def loops_of(region: Region) -> FrozenSet[str]:
    """The loops in whose iterations a node of that region runs."""
    return frozenset(guard for guard, _ in region if guard.startswith("loop "))
