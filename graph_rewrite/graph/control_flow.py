"""Under which conditions a node runs: the branches and loops that it lies in.

A graph does not state them; they follow from a node's inputs, by these rules:

1. A node runs where all its inputs are: it has the guards of them all, data and control.
2. Output 1 of a Switch has the guard "predicate is true", output 0 "is false".
3. A Merge has only those guards that all its inputs share. An Enter adds its loop, an Exit removes
   it.
4. A node of a function's body has the guards of its call and that of its branch
   (`graph_rewrite.graph.functions`).
"""

from collections import namedtuple
from typing import Any, Dict, List, Set

from graph_rewrite.graph.functions import home
from graph_rewrite.graph.index import attribute
from graph_rewrite.graph.ops import CARRY, ENTER, EXIT, KEEP, LOOPS, MERGE, NEXT, SWITCH
from graph_rewrite.graph.passthrough import back, trace
from semisync.common.tensor_names import split
from semisync.common.walks import along, reachable

# A branch: the predicate's tensor at the top level, and the value that it has here (a number where
# a Case chooses). A loop: its name, and LOOP.
Guard = namedtuple("Guard", "predicate value")
LOOP = "loop"

_NONE: frozenset = frozenset()
_LABELS = {"then_branch": True, "else_branch": False}


class Guards:
    """The guards of every node and tensor of a `Nodes`."""

    def __init__(self, nodes):
        self._nodes = nodes
        self._of: Dict[Any, frozenset] = {}
        self._together: Dict[int, Set[str]] = {}  # id of control inputs -> these
        # A function's result, by its name inside -> the outputs of the call that it becomes.
        self._results: Dict[str, List[str]] = {}
        for result, ends in nodes.results.items():
            for end in ends:
                self._results.setdefault(end, []).append(result)
        self._switches, self._turning = (
            {node.name for node in nodes.of_type(kinds.__contains__)} for kinds in (SWITCH, NEXT)
        )
        self._any = bool(nodes.results or self._switches or nodes.of_type(ENTER.__contains__))

    def of(self, tensor):
        """The guards of a tensor, or of a node by its name with "^"; a frozenset."""
        name, output = split(tensor)
        guards = self.of_node(name)
        node = self._nodes.get(name)
        if node is not None and node.op in SWITCH and output >= 0:
            # A loop's Switch chooses between one more iteration and the end: no branch.
            if self._nodes.maker(node.input[1]).op == "LoopCond":
                return guards
            guards = guards | {Guard(self.root(node.input[1]), bool(output))}
        return guards

    def of_node(self, name):
        """The guards of a node."""
        if not self._any:  # most graphs: nothing in them is conditional
            return _NONE
        if name not in self._of:
            self._find(name)
        return self._of[name]

    def inside(self, tensor):
        """Whether a tensor is made in a branch, a loop or a function."""
        return bool(self.of(tensor) or home(split(tensor)[0]))

    def looped(self, name):
        """Whether a node lies in a loop."""
        return any(guard.value == LOOP for guard in self.of_node(name))

    def branches(self, tensor):
        """The guards of a tensor without loops, a frozenset."""
        return frozenset(guard for guard in self.of(tensor) if guard.value != LOOP)

    def root(self, tensor):
        """The furthest tensor upstream, at the top level if possible, that has the same value."""
        *_, root = along(tensor, self._carried)
        return root

    def _carried(self, tensor):
        return next(iter(back(self._nodes, tensor, CARRY)), None)

    def lift(self, tensor):
        """The same value outside of all branches and functions: the nearest tensor upstream.

        For a tensor that is made inside, the one by which it leaves; if it does not, itself.
        """
        way = along(tensor, self._carried)
        outside = next((up for up in way if not self.inside(up)), None)
        return self._out(tensor) if outside is None else outside

    def _out(self, tensor):
        """The tensor by which this one leaves all branches and functions, or itself."""

        def further(current):
            name, output = split(current)
            handed = [
                use.node.name
                for use in self._nodes.uses(name)
                if use.output == output and (use.node.op in MERGE | CARRY)
            ]
            return handed + self._results.get(current, [])

        found = reachable([tensor], further)
        return next((current for current in found if not self.inside(current)), tensor)

    def _find(self, key):
        """Fills in the guards of a node and of all above it, inputs before users."""
        waiting: List[Any] = [key]
        makers: Dict[Any, Set[Any]] = {}
        while waiting:
            key = waiting[-1]
            if key in makers:
                self._of[waiting.pop()] = self._guards(key, makers[key])
            else:
                self._of[key] = _NONE  # until its makers' are known; ends the walk in a circle
                makers[key] = self._makers(key)
                waiting += [maker for maker in makers[key] if maker not in self._of]

    def _makers(self, key):
        """The keys on which the guards of a node depend, a set.

        They are the nodes that it takes tensors from, the call that it is in, and its control
        inputs. There may be millions of control edges, but nodes with the same ones share their
        guards: these are found once, as if they were those of one more node, named by a number.
        """
        if key in self._together:
            return self._together[key]
        node = self._nodes.get(key)
        if node is None:
            return set()
        makers = set(self._nodes.makers(node))
        if node.op in MERGE:
            makers -= self._turning  # a loop's Merge has its guards from before the first iteration
        inside = home(node.name)
        if inside:
            makers.add(inside[0])
        controls = self._nodes.control_inputs(node)
        if controls:
            # `Index` keeps each distinct tuple for as long as the graph: its id stays its own.
            self._together[id(controls)] = set(controls)
            makers.add(id(controls))
        return makers

    def _guards(self, key, makers):
        """The guards of a node, or of all with the same control edges, from those of its makers."""
        guards = _NONE.union(*[self._of.get(maker, _NONE) for maker in makers])
        node = self._nodes.get(key)
        if node is None:
            return guards
        if node.op in MERGE:
            inputs = [t for t in self._nodes.inputs(node) if split(t)[0] in makers]
            guards = frozenset.intersection(*map(self.of, inputs)) if inputs else _NONE
        elif not self._switches.isdisjoint(makers):
            # Only a Switch's guards depend on which of its outputs is taken.
            guards = guards.union(*map(self.of, self._nodes.inputs(node)))
        if node.op in ENTER:
            guards |= {Guard(attribute(node, "frame_name"), LOOP)}
        elif node.op in EXIT:
            guards -= {Guard(self._frame(node), LOOP)}
        inside = home(node.name)
        if inside:
            guards |= self.of_node(inside[0]) | self._branch(*inside)
        return guards

    def _frame(self, exit_node):
        """The loop that an Exit leaves: Exit <- Switch <- Merge <- Enter.

        In the loop of a gradient an Identity may stand before the Exit.
        """
        *_, switched = trace(self._nodes, exit_node.input[0], KEEP)
        node = self._nodes.maker(switched)
        for _ in range(2):
            node = self._nodes.maker(node.input[0])
        return attribute(node, "frame_name")

    def _branch(self, call, label):
        """The guard that the body of a call has, a set."""
        node = self._nodes[call]
        if node.op in LOOPS:
            return {Guard(call, LOOP)}
        if label in _LABELS:
            return {Guard(self.root(node.input[0]), _LABELS[label])}
        return {Guard(self.root(node.input[0]), int(label))} if label.isdecimal() else _NONE


def opposite(guard):
    """The guard of the other branch."""
    return Guard(guard.predicate, not guard.value)
