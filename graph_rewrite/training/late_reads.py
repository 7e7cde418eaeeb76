"""Ops behind the training read the variables after it.

    with tf.control_dependencies([train_op]):
        clipped = weight.assign(tf.clip_by_value(weight, -0.01, 0.01))

All uses of a reference variable share one read, which waits for nothing. In one process its value
is the variable's memory, so that later computations see the trained variable. On another machine it
is a copy from before the step, which the assignment would write back. So each op that waits for a
write of a variable, and takes it from such a read, gets a read of its own that waits, too.

A value that is computed from the variable in any other way, without waiting, may be from before the
step or after it: an op that writes with such a value is refused by its name.
"""

import collections
import itertools
from typing import Dict, FrozenSet, List, Set

from graph_rewrite.graph.meta_graph import names, variables
from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.op_traits import OpTraits
from graph_rewrite.graph.ops import VARIABLES
from graph_rewrite.patterns.variables import initialises
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from semisync.common.tensor_names import CONTROL, join, split

_REFERENCES = VARIABLES - {"VarHandleOp"}
LATE = "semisync/late/"  # before the names of the reads that are added


def read_late(meta):
    """Has ops that wait for a write of a trained variable, or the global step, read it afterwards.

    Args:
        meta: a MetaGraphDef, which is changed.

    Returns:
        The names of the ops that read later now, a list.

    Raises:
        BadInput: one writes with a value that may be computed before.
    """
    finder = _Finder(meta)
    late = list(finder.late())
    for number, (node, at, controls) in enumerate(late):
        read = meta.graph_def.node.add()
        read.CopyFrom(finder.nodes.maker(node.input[at]))
        read.name = "{}{}_{}".format(LATE, node.name, number)
        read.input.extend(join(control, CONTROL) for control in controls)
        node.input[at] = read.name
    return list(collections.OrderedDict.fromkeys(node.name for node, _, _ in late))


class _Finder:
    """Finds the early reads of a MetaGraphDef, whose `Nodes` are `nodes`."""

    def __init__(self, meta):
        self.nodes = Nodes.of(meta)
        self._traits = OpTraits(self.nodes, meta.graph_def.library)
        steps = [split(name)[0] for name in names(meta, tf.GraphKeys.GLOBAL_STEP)]
        steps += variables(meta, tf.GraphKeys.GLOBAL_STEP)
        self._changed = {*variables(meta, tf.GraphKeys.TRAINABLE_VARIABLES), *steps}
        sources = [node.name for node in self.nodes if self._traits.brings_batch(node)]
        self._fed = self._traits.flow(sources)
        self._writers: Dict[str, List[str]] = {}  # variable -> the ops that write it
        for node in self.nodes:
            variable = self._traits.written(node.name)
            if variable in self._changed and not initialises(self.nodes, node, variable):
                self._writers.setdefault(variable, []).append(node.name)
        self._made_of: Dict[str, Set[str]] = {}
        self._following: Dict[str, FrozenSet[str]] = {}  # variable -> nodes after its writers
        self._behind: Dict[FrozenSet[str], Set[str]] = {}

    def late(self):
        """(node, number of its input, the nodes its read must wait for) of every early read."""
        written = itertools.chain.from_iterable(self._writers.values())
        after = self.nodes.descendants(written) - self._fed
        for node in [self.nodes[name] for name in self.nodes.ordered(after)]:
            for number, maker in enumerate(self.nodes.makers(node)):
                for variable in sorted(self._variables_of(maker)):
                    if node.name in self._after(variable) and maker not in self._after(variable):
                        waits = self._waits(node, maker, variable)
                        if waits:
                            yield node, number, waits

    def _variables_of(self, maker):
        """The names of the trained variables on which an op's value depends, a set."""
        if maker in self._fed or self.nodes[maker].op in VARIABLES:
            return set()
        if maker not in self._made_of:
            above = self.nodes.reachable([maker], self.nodes.makers)
            self._made_of[maker] = self._writers.keys() & above
        return self._made_of[maker]

    def _after(self, variable):
        """The names of the ops that wait for one that writes a variable, a set."""
        if variable not in self._following:
            waiting = map(self.nodes.following, self._writers[variable])
            self._following[variable] = frozenset(itertools.chain.from_iterable(waiting))
        following = self._following[variable]  # mostly the same of all variables
        if following not in self._behind:
            self._behind[following] = self.nodes.descendants(following)
        return self._behind[following]

    def _waits(self, node, maker, variable):
        """The ops that a node's own read of a variable must wait for, instead of the op `maker`."""
        read = self.nodes[maker]
        of_reference = self.nodes[self.nodes.makers(read)[0]].op in _REFERENCES
        if read.op == "Identity" and of_reference:
            after, writers = self._after(variable), self._writers[variable]
            above = [*self.nodes.makers(node), *self.nodes.control_inputs(node)]
            return [name for name in above if name in after or name in writers]
        below = self.nodes.reachable([node.name], self._takers)
        if not any(self._traits.written(name) for name in below):
            return []
        raise BadInput(
            "{} waits for the training, and takes {}, which is made of {} and does not wait: it "
            "may be of before the step or after it; compute it within tf.control_dependencies("
            "[train_op]), and export again".format(node.name, maker, variable)
        )

    def _takers(self, node):
        return [use.node.name for use in self.nodes.uses(node.name)]
