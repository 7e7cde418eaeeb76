"""Which ops of a training graph the chief runs once a global step, and which stay each worker's.

Everything downstream of the places where gradients go in (see `training_ops`) is run after the
gradients are applied: the optimizer's finish, the count of the global step, averages of variables,
the train op itself, perhaps the loss behind a control edge.

1. What writes there, and depends on no batch once the gradients are cut, is the chief's: it happens
   once a global step. So is all that these ops need.
2. So are the groups (NoOp) that wait for any of these, and what gives the value of a tf.cond or a
   loop in which any of these lies: what waits for a branch alone is run only where the branch is.
3. All else is the worker's, and comes after its own part of the training.
4. A control edge from an op with a batch to one of the chief's, such as UPDATE_OPS before the
   training ops, is cut; the worker's train op waits for it instead, and the chief's for what of
   its own came before it. So is one from an op that writes before the gradients are computed, such
   as a counter of batches.
5. What writes to a variable that a batch writes to, and that gradients are made of, is the
   worker's, too: such as the reset of a sum of gradients over several batches.
6. An op of the chief's that something else waits for, or that nothing uses, or that a collection
   names, is one that people fetch: its name must go on to train.
"""

import collections
from typing import Dict, List, Set, Tuple

from graph_rewrite.batch_norm.updates import is_no_update
from graph_rewrite.graph.index import split
from graph_rewrite.graph.passthrough import EXIT, MERGE
from graph_rewrite.training.places import gradients
from semisync.common.errors import BadInput

# `ops`: names of the ops downstream of the gradients that are the chief's, a set. `needs`: names of
# all that it runs, a set. `last`: names of those `ops` that no other of them needs. `fetched`:
# names of those that other processes' ops or people refer to. `tensors`: names of those of which an
# output is wanted too, and of what it is made of, a set. `edges`: {op: the control inputs that it
# has from now on}. `moved`: names of what the worker's train op waits for instead. `left`: names of
# ops downstream that stay the worker's.
ChiefPart = collections.namedtuple("ChiefPart", "ops needs last fetched tensors edges moved left")


class _Split:
    def __init__(self, nodes, kinds, updates, sync, collected, until):
        self._nodes, self._kinds, self._sync = nodes, kinds, sync
        places = [place for update in updates for place in update.places]
        cut = {(place.node, place.number) for place in places}
        self._sources = {node.name for node in nodes if kinds.brings_batch(node)}
        self._fed = kinds.flow(self._sources, cut)
        self._downstream = downstream = nodes.descendants([place.node for place in places])
        self._each = self._written_by_each_batch(updates) | self._resets(updates)
        if until:
            downstream &= nodes.ancestors(until)
        self._waits: Dict[str, bool] = {}  # NoOp -> whether it waits for a batch
        first = {place.node for place in places}.union(*[update.ops for update in updates])
        first |= {name for name in downstream if self._is_chiefs(nodes[name])}
        ends = self._values_of_branches(first)
        first |= ends
        self.edges: Dict[str, Tuple[str, ...]] = {}
        self._cut = cut
        moved: Set[str] = set()
        needs = self._needs(first, moved)
        ops = needs & downstream
        last = ops.difference(*[self.above(nodes[name]) for name in ops])
        self._ignored = sync.unused | self._dead(downstream - ops, ops - last, collected)
        inside = ops | self._ignored
        fetched = last | {n for n in ops if nodes.users(n) - inside} | (collected.keys() & ops)
        tensors = {n for n in ops if {use.node.name for use in nodes.uses(n)} - inside}
        tensors |= {n for n in collected.keys() & ops if collected[n]} | (last & ends)
        self.part = ChiefPart(
            ops,
            needs,
            self._nodes.ordered(last),
            self._nodes.ordered(fetched),
            self._wanted(ops, tensors),
            self.edges,
            self._nodes.ordered(moved),
            self._nodes.ordered(downstream - ops - self._ignored),
        )

    def _written_by_each_batch(self, updates):
        """The names of ops that the gradients wait for, and that write or wait for what does."""
        above = self._nodes.ancestors(gradients(updates))
        writes = [n for n in above - self._fed if self._kinds.writes(self._nodes[n])]
        return above & self._nodes.descendants(writes)

    def _resets(self, updates):
        """The names of ops after the training that reset what batches add up; see 5."""
        above = self._nodes.reachable(gradients(updates), self._nodes.makers)
        states = above - {update.variable.name for update in updates}
        summed = {self._moved(name) for name in self._fed} & states
        after = self._downstream - self._fed - {op for update in updates for op in update.ops}
        return {name for name in after if self._kinds.written(name) in summed}

    def _moved(self, name):
        """The name of the variable that an op changes, or None; at its start no op does."""
        variable = self._kinds.written(name)
        starts = variable and is_no_update(self._nodes, self._nodes[name], variable)
        return None if starts else variable

    def _is_chiefs(self, node):
        if node.op == "NoOp":
            return not self._waits_for_batch(node.name)
        alone = node.name not in self._fed and node.name not in self._each
        return alone and self._kinds.writes(node)

    def _values_of_branches(self, names):
        """The names of the ops that give the values of what these write in, a tf.cond or a loop."""
        found: Set[str] = set()
        for node in [self._nodes[name] for name in self._nodes.ordered(names)]:
            if self._kinds.bodies(node):
                # TensorFlow runs no branch of an op that is only waited for.
                found.update(use.node.name for use in self._nodes.uses(node.name))
            elif self._kinds.writes(node) and self._kinds.is_conditional(node):
                found |= self._ends(node.name)
        return (found & self._downstream) - self._fed

    def _ends(self, name):
        """The names of the ops where the branch or loop ends in which an op writes."""
        after = (self._nodes.descendants([name]) & self._downstream) - self._fed
        ends = {each for each in after if self._nodes[each].op in MERGE | EXIT}
        if not ends:
            raise BadInput(
                "the op {} writes {} after the gradients are applied, in a tf.cond whose value "
                "needs a batch, and the chief, which applies them, has none: let it write in a "
                "tf.cond of its own, and export again".format(name, self._kinds.written(name))
            )
        return ends

    def _wanted(self, ops, tensors):
        """The names of `tensors` and of those of `ops` that a stand-in takes their values from."""

        def follow(node):
            makers = self._nodes.makers(node)
            return ops.intersection(makers[:1] if self._kinds.written(node.name) else makers)

        return self._nodes.reachable(tensors, follow)

    def _dead(self, left, inner, collected):
        """Of what is left those that read between two ops of the chief's, for nobody.

        Such as the value of a variable that an optimizer has assigned, and does not use.
        """
        found: Set[str] = set()
        for name in self._nodes.ordered(left - self._fed - collected.keys())[::-1]:
            users = self._nodes.users(name)
            after = {split(tensor)[0] for tensor in self._nodes[name].input} & self._downstream
            if users <= found and after <= inner:
                found.add(name)
        return found

    def _waits_for_batch(self, name):
        """True for what needs a batch, and for groups of such ops."""
        if name in self._fed or name in self._sync.unused or name in self._each:
            return True
        if self._nodes[name].op != "NoOp":
            return False
        if name not in self._waits:
            self._waits[name] = False
            controls = self._nodes.control_inputs(self._nodes[name])
            if name in self._downstream:
                after = [control for control in controls if control in self._downstream]
                self._waits[name] = all(map(self._waits_for_batch, after))
            else:
                self._waits[name] = any(map(self._waits_for_batch, controls))
        return self._waits[name]

    def above(self, node):
        """The names of what a node of the chief's needs, as it will be, a list."""
        controls = self._nodes.control_inputs(node)
        return [*self._nodes.makers(node), *self.edges.get(node.name, controls)]

    def _needs(self, starts, moved):
        """The names of all that `starts` need without a batch; fills `edges` and `moved`."""
        known: Dict[int, Tuple[str, ...]] = {}  # control inputs, by their id -> those kept

        def follow(node):
            makers = [
                maker
                for number, maker in enumerate(self._nodes.makers(node))
                if (node.name, number) not in self._cut
            ]
            for maker in makers:
                if maker in self._fed:
                    self._refuse(node, maker)
            return makers

        def kept(node):
            controls = self._nodes.control_inputs(node)
            if id(controls) not in known:
                known[id(controls)] = self._kept(controls, moved)
            if known[id(controls)] is not controls:
                self.edges[node.name] = known[id(controls)]
            return known[id(controls)]

        return self._nodes.reachable(self._nodes.ordered(starts), follow, kept)

    def _kept(self, controls, moved):
        """Of control inputs those that the chief can wait for, a tuple: the same if all are."""
        kept = collections.OrderedDict()
        for name in controls:
            if not self._waits_for_batch(name):
                kept[name] = True
                continue
            if name not in self._sync.unused:
                moved.add(name)
            kept.update((above, True) for above in self._above(name))
        return controls if tuple(kept) == controls else tuple(kept)

    def _above(self, name):
        """What comes after the gradients are applied, without a batch, and before an op with one.

        The chief waits for these where it cannot wait for that op.
        """
        found: List[str] = []
        seen, waiting = {name}, [name]
        while waiting:
            for tensor in self._nodes[waiting.pop()].input:
                maker = split(tensor)[0]
                if maker in seen or maker not in self._downstream:
                    continue
                seen.add(maker)
                (waiting if self._waits_for_batch(maker) else found).append(maker)
        return found

    def _refuse(self, node, maker):
        above = self._nodes.reachable(
            [maker],
            lambda n: [split(t)[0] for t in self._nodes.inputs(n) if split(t)[0] in self._fed],
        )
        source = self._nodes.ordered(above & self._sources)[0]
        raise BadInput(
            "{} ({}) needs {}, which depends on {} ({}): the chief applies global batches without "
            "a batch of its own, so make it a variable or a function of the global step".format(
                node.name, node.op, maker, source, self._nodes[source].op
            )
        )


def split_off(nodes, kinds, updates, sync, collected, until=()):
    """Returns the `ChiefPart` of a graph.

    Args:
      nodes, kinds: the graph's `Nodes` and `OpKinds`.
      updates: list of `Update`, with the batch's own gradients.
      sync: the graph's `SyncReplicas`.
      collected: {op: whether one of its outputs is meant} for all that the collections name.
      until: names of the ops by which the training ends; none for all that is downstream.

    Raises:
      BadInput: the chief would need a batch.
    """
    return _Split(nodes, kinds, updates, sync, collected, until).part
