"""Under which conditions a node runs: the branches and loops that it lies in.

A graph does not say so of a node; it follows from its inputs, by these rules:

1. A node runs where all its inputs are: it has the guards of them all, data and control.
2. What leaves a Switch at output 1 has the guard "predicate is true", at output 0 "is false".
3. A Merge has those guards only that all its inputs share. An Enter adds its loop, an Exit takes
   it off.
4. A node of a function's body has the guards of its call and that of its branch
   (`graph_rewrite.opened`).
"""

from collections import deque, namedtuple
from typing import Dict, List

from graph_rewrite.hops import CARRY, EXIT, MERGE, back
from graph_rewrite.matching import attribute
from graph_rewrite.nodes import split
from graph_rewrite.opened import LOOPS, home

# A branch: the predicate's tensor at the top level, and the value that it has here (a number where
# a Case chooses). A loop: its name, and LOOP.
Guard = namedtuple("Guard", "predicate value")
LOOP = "loop"

_SWITCHES = ("Switch", "RefSwitch")
_ADDING = ("Enter", "RefEnter")
_TURNING = ("NextIteration", "RefNextIteration")
_NONE: frozenset = frozenset()
_LABELS = {"then_branch": True, "else_branch": False}


class Guards:
    """The guards of every node and tensor of a `Nodes`."""

    def __init__(self, nodes):
        self._nodes = nodes
        self._of = {}
        # What a function gives, by its name inside -> as which tensors its call gives it.
        self._results: Dict[str, List[str]] = {}
        for result, ends in nodes.results.items():
            for end in ends:
                self._results.setdefault(end, []).append(result)
        if nodes.results or nodes.of_type((_SWITCHES + _ADDING).__contains__):
            self._spread()

    def of(self, tensor):
        """The guards of a tensor, or of a node by its name with "^"; a frozenset."""
        name, output = split(tensor)
        found = self._of.get(name, _NONE)
        node = self._nodes.get(name)
        if node is not None and node.op in _SWITCHES and output >= 0:
            if self._nodes.maker(node.input[1]).op == "LoopCond":
                return found
            found = found | {Guard(self.root(node.input[1]), bool(output))}
        return found

    def of_node(self, name):
        """The guards of a node."""
        return self._of.get(name, _NONE)

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
        """The tensor of the top level whose very value this one has, as far up as that goes."""
        while True:
            behind = back(self._nodes, tensor, CARRY)
            if not behind:
                return tensor
            tensor = behind[0]

    def lift(self, tensor):
        """The same value outside of all branches and functions: the nearest tensor upstream.

        Where it is made inside, what that hands to the outside; where nothing does, itself.
        """
        up = tensor
        while self.inside(up):
            behind = back(self._nodes, up, CARRY)
            if not behind:
                return self._out(tensor)
            up = behind[0]
        return up

    def _out(self, tensor):
        """The tensor outside of all branches and functions that is made of this one, or itself."""
        seen, waiting = {tensor}, deque([tensor])
        while waiting:
            each = waiting.popleft()
            if not self.inside(each):
                return each
            name, output = split(each)
            handed = [
                use.node.name
                for use in self._nodes.uses(name)
                if use.output == output and (use.node.op in MERGE | CARRY)
            ]
            for further in handed + self._results.get(each, []):
                if further not in seen:
                    seen.add(further)
                    waiting.append(further)
        return tensor

    def _spread(self):
        """Fills in the guards of all nodes, inputs before users."""
        nodes = self._nodes
        users: Dict[str, List[str]] = {}
        missing, sources = {}, {}
        for node in nodes:
            makers = {split(tensor)[0] for tensor in node.input}
            makers = {name for name in makers if name in nodes}
            if node.op in MERGE:
                makers = {name for name in makers if nodes[name].op not in _TURNING}
            inside = home(node.name)
            if inside:
                makers.add(inside[0])
            missing[node.name], sources[node.name] = len(makers), makers
            for maker in makers:
                users.setdefault(maker, []).append(node.name)
        ready = deque(name for name, count in missing.items() if count == 0)
        while ready:
            name = ready.popleft()
            guards = self._guards(nodes[name], sources[name])
            if guards:
                self._of[name] = guards
            for user in users.get(name, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    ready.append(user)

    def _guards(self, node, makers):
        inside = home(node.name)
        if not (inside or node.op in _ADDING) and not any(
            name in self._of or self._nodes[name].op in _SWITCHES for name in makers
        ):
            return _NONE  # most nodes of most graphs
        inputs = [self.of(tensor) for tensor in node.input if split(tensor)[0] in makers]
        if node.op in MERGE:
            return frozenset.intersection(*inputs) if inputs else _NONE
        guards = _NONE.union(*inputs)
        if node.op in _ADDING:
            guards |= {Guard(attribute(node, "frame_name"), LOOP)}
        elif node.op in EXIT:
            guards -= {Guard(self._frame(node), LOOP)}
        if inside:
            guards |= self.of_node(inside[0]) | self._branch(*inside)
        return guards

    def _frame(self, exit_node):
        """The loop that an Exit leaves: Exit <- Switch <- Merge <- Enter."""
        node = exit_node
        for _ in range(3):
            node = self._nodes.maker(node.input[0])
        return attribute(node, "frame_name")

    def _branch(self, call, label):
        """The guard that the body of a call has, a set."""
        node = self._nodes[call]
        if node.op in LOOPS:
            return {Guard(call, LOOP)}
        if label in _LABELS:
            return {Guard(self.root(node.input[0]), _LABELS[label])}
        return {Guard(self.root(node.input[0]), int(label))} if label.isdigit() else _NONE


def opposite(guard):
    """The guard of the other branch."""
    return Guard(guard.predicate, not guard.value)
