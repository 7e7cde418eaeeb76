"""Which ops of a training graph the chief runs once per global step, and which stay each worker's.

Everything downstream of the inputs where gradients go in (`training.gradient_inputs`) runs after
the gradients are applied: the optimizer's finish, the count of the global step, averages of
variables, the train op itself, perhaps the loss behind a control edge.

1. An op that writes there, and depends on no batch once the gradients are cut, is the chief's: it
   runs once per global step. So are all ops that it needs.
2. So are the groups (NoOp) that wait for any of these, and the outputs of a tf.cond or a loop in
   which any of these lies: an op that waits for one in a branch runs only if the branch does.
3. All else is the worker's, and comes after its own part of the training.
4. A control edge from an op with a batch to one of the chief's, such as UPDATE_OPS before the
   training ops, is cut; the worker's train op waits for that op instead, and the chief's op for
   those of its own that came before it. So is an edge from an op that writes before the gradients
   are computed, such as a counter of batches.
5. An op that writes a variable which a batch also writes, and from which gradients are computed, is
   the worker's, too: such as the reset of a sum of gradients over several batches.
6. An op of the chief's that something else waits for, or that nothing uses, or that a collection
   names, is one that people fetch: its name must continue to train.
"""

import collections
from typing import Dict, List, NamedTuple, Set, Tuple

from graph_rewrite.graph.ops import EXIT, MERGE
from graph_rewrite.patterns.variables import initialises
from graph_rewrite.training.gradient_inputs import gradients
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split
from semisync.common.walks import in_order


class ChiefPart(NamedTuple):
    """The part of a training graph that the chief runs; all names of ops.

    Attributes:
        ops: the chief's, downstream of the gradients.
        needs: all that it runs.
        last: those of `ops` that no other of them needs.
        fetched: those of `ops` that other processes' ops or people refer to.
        tensors: those of `ops` with an output that is wanted too, and the ops that it comes from.
        edges: {op: its new control inputs}.
        moved: the ops that the worker's train op waits for instead.
        left: ops downstream that stay the worker's.
    """

    ops: Set[str]
    needs: Set[str]
    last: List[str]
    fetched: List[str]
    tensors: Set[str]
    edges: Dict[str, Tuple[str, ...]]
    moved: List[str]
    left: List[str]


def split_off(nodes, traits, trained, sync, collected, until=()):
    """The `ChiefPart` of a graph.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        trained: list of `TrainedVariable`, with the batch's own gradients.
        sync: the graph's `SyncReplicas`.
        collected: {op: whether one of its outputs is meant} for all that the collections name.
        until: names of the ops by which the training ends; none for all that is downstream.

    Raises:
        BadInput: the chief would need a batch.
    """
    return _Split(nodes, traits, trained, sync, until).part(collected)


class _Split:
    def __init__(self, nodes, traits, trained, sync, until):
        self._nodes, self._traits, self._sync = nodes, traits, sync
        inputs = [taken for variable in trained for taken in variable.inputs]
        self._cut = {(taken.node, taken.number) for taken in inputs}
        self._trained_by = {taken.node for taken in inputs}.union(
            *[variable.ops for variable in trained]
        )
        self._sources = {node.name for node in nodes if traits.brings_batch(node)}
        self._fed = traits.flow(self._sources, self._cut)
        self._downstream = nodes.descendants([taken.node for taken in inputs])
        self._each_batch = self._written_by_each_batch(trained) | self._resets(trained)
        if until:
            self._downstream &= nodes.ancestors(until)
        self._waits: Dict[str, bool] = {}  # NoOp -> whether it waits for a batch
        self._edges: Dict[str, Tuple[str, ...]] = {}

    def part(self, collected):
        """See `split_off`."""
        nodes, downstream = self._nodes, self._downstream
        first = self._trained_by | {name for name in downstream if self._is_chiefs(nodes[name])}
        ends = self._values_of_branches(first)
        moved: Set[str] = set()
        needs = self._needs(first | ends, moved)
        ops = needs & downstream
        last = ops.difference(*[self._above(nodes[name]) for name in ops])
        ignored = self._sync.unused | self._dead(downstream - ops, ops - last, collected)
        inside = ops | ignored
        # See 6. An op is fetched for its output, too, where something takes that, or a collection
        # names it.
        fetched = last | {n for n in ops if nodes.users(n) - inside} | (collected.keys() & ops)
        tensors = {n for n in ops if {use.node.name for use in nodes.uses(n)} - inside}
        tensors |= {n for n in collected.keys() & ops if collected[n]} | (last & ends)
        return ChiefPart(
            ops=ops,
            needs=needs,
            last=nodes.ordered(last),
            fetched=nodes.ordered(fetched),
            tensors=self._wanted(ops, tensors),
            edges=self._edges,
            moved=nodes.ordered(moved),
            left=nodes.ordered(downstream - ops - ignored),
        )

    def _written_by_each_batch(self, trained):
        """The names of ops before the gradients that write, or wait for one that writes; see 4."""
        above = self._nodes.ancestors(gradients(trained))
        writes = [n for n in above - self._fed if self._traits.writes(self._nodes[n])]
        return above & self._nodes.descendants(writes)

    def _resets(self, trained):
        """The names of ops after the training that reset sums over batches; see 5."""
        above = self._nodes.reachable(gradients(trained), self._nodes.makers)
        states = above - {variable.node.name for variable in trained}
        summed = {self._changed(name) for name in self._fed} & states
        after = self._downstream - self._fed - {op for variable in trained for op in variable.ops}
        return {name for name in after if self._traits.written(name) in summed}

    def _changed(self, name):
        """The name of the variable that an op changes, or None; initialising does not count."""
        variable = self._traits.written(name)
        starts = variable and initialises(self._nodes, self._nodes[name], variable)
        return None if starts else variable

    def _is_chiefs(self, node):
        if node.op == "NoOp":
            return not self._waits_for_batch(node.name)
        alone = node.name not in self._fed and node.name not in self._each_batch
        return alone and self._traits.writes(node)

    def _values_of_branches(self, names):
        """The names of the outputs of each tf.cond or loop in which one of these ops writes."""
        values: Set[str] = set()
        for node in [self._nodes[name] for name in self._nodes.ordered(names)]:
            if self._traits.bodies(node):
                # TensorFlow runs no branch of an op that is only waited for.
                values.update(use.node.name for use in self._nodes.uses(node.name))
            elif self._traits.writes(node) and self._traits.is_conditional(node):
                values |= self._ends(node.name)
        return (values & self._downstream) - self._fed

    def _ends(self, name):
        """The names of the ops that end the branch or loop in which an op writes."""
        after = (self._nodes.descendants([name]) & self._downstream) - self._fed
        ends = {name for name in after if self._nodes[name].op in MERGE | EXIT}
        if not ends:
            raise BadInput(
                "the op {} writes {} after the gradients are applied, in a tf.cond whose value "
                "needs a batch, and the chief, which applies them, has none: let it write in a "
                "tf.cond of its own, and export again".format(name, self._traits.written(name))
            )
        return ends

    def _wanted(self, ops, tensors):
        """The names of `tensors` and of those of `ops` that a stand-in takes their values from."""

        def follow(node):
            makers = self._nodes.makers(node)
            # A stand-in for a write reads the variable alone, not the value that was written.
            return ops.intersection(makers[:1] if self._traits.written(node.name) else makers)

        return self._nodes.reachable(tensors, follow)

    def _dead(self, left, inner, collected):
        """The ops left that read between two of the chief's, and that nothing uses.

        Such as the value of a variable that an optimizer has assigned, and does not use.
        """
        dead: Set[str] = set()
        # Users before what they use, so that a chain of dead ops falls as a whole.
        for name in self._nodes.ordered(left - self._fed - collected.keys())[::-1]:
            users = self._nodes.users(name)
            after = {split(tensor)[0] for tensor in self._nodes[name].input} & self._downstream
            if users <= dead and after <= inner:
                dead.add(name)
        return dead

    def _waits_for_batch(self, name):
        """True for ops that need a batch, and for groups of such ops."""
        if not self._is_group(name):
            return self._needs_batch(name)
        for group in in_order([name], self._groups_before, self._waits):
            # After the gradients one op of the chief's makes a group the chief's; before them one
            # op with a batch suffices for the chief not to wait for it.
            both = all if group in self._downstream else any
            self._waits[group] = both(
                self._waits.get(one, False) if self._is_group(one) else self._needs_batch(one)
                for one in self._waited_for(group)
            )
        return self._waits[name]

    def _needs_batch(self, name):
        return name in self._fed or name in self._sync.unused or name in self._each_batch

    def _is_group(self, name):
        return self._nodes[name].op == "NoOp" and not self._needs_batch(name)

    def _groups_before(self, name):
        return filter(self._is_group, self._waited_for(name))

    def _waited_for(self, name):
        """The ops that decide whether a group waits for a batch: those after the gradients."""
        controls = self._nodes.control_inputs(self._nodes[name])
        if name not in self._downstream:
            return controls
        return [control for control in controls if control in self._downstream]

    def _above(self, node):
        """The names of the ops that a node of the chief's will need, a list."""
        controls = self._nodes.control_inputs(node)
        return [*self._nodes.makers(node), *self._edges.get(node.name, controls)]

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
                self._edges[node.name] = known[id(controls)]
            return known[id(controls)]

        return self._nodes.reachable(self._nodes.ordered(starts), follow, kept)

    def _kept(self, controls, moved):
        """The control inputs that the chief can wait for, a tuple: the same if that is all."""
        kept = collections.OrderedDict()
        for name in controls:
            if not self._waits_for_batch(name):
                kept[name] = True
                continue
            if name not in self._sync.unused:
                moved.add(name)
            kept.update((above, True) for above in self._chiefs_before(name))
        return controls if tuple(kept) == controls else tuple(kept)

    def _chiefs_before(self, name):
        """The ops without a batch between the applied gradients and an op with a batch.

        The chief waits for these where it cannot wait for that op.
        """
        chiefs: List[str] = []
        seen, waiting = {name}, [name]
        while waiting:
            for tensor in self._nodes[waiting.pop()].input:
                maker = split(tensor)[0]
                if maker in seen or maker not in self._downstream:
                    continue
                seen.add(maker)
                (waiting if self._waits_for_batch(maker) else chiefs).append(maker)
        return chiefs

    def _refuse(self, node, maker):
        above = self._nodes.reachable(
            [maker],
            lambda n: [split(t)[0] for t in self._nodes.inputs(n) if split(t)[0] in self._fed],
        )
        source = self._nodes.ordered(above & self._sources)[0]  # the same one in every run
        raise BadInput(
            "{} ({}) needs {}, which depends on {} ({}): the chief applies global batches without "
            "a batch of its own, so make it a variable or a function of the global step".format(
                node.name, node.op, maker, source, self._nodes[source].op
            )
        )
