"""Finding where gradients go into a graph's training ops.

An optimizer's update of a variable is one of three:

    a training op    (Resource)(Sparse)Apply...: the definition names its inputs "var", "grad" (or
                     "delta") and, sparse, "indices"
    several ops      that share the sum of the rows of each id, such as Adam's of a sparse gradient:
                     they read the sum and the ids as often as they like
    a plain step     ScatterSub, AssignSub and their like on a trainable variable: linear in the
                     gradient, such as gradient descent's of a sparse gradient

Where an optimizer computes with the gradient before, that is part of the update (`rules`). The
`Update` tells the gradient of the batch, as it was before the rows of an id were summed, and the
places where the gradient of the global batch, each id once, is to be put instead.
"""

import collections
import re

from graph_rewrite.batch_norm.updates import is_no_update
from graph_rewrite.graph.index import split
from graph_rewrite.graph.op_traits import ADDS_TO_ROWS, PLAIN_STEP, TRAINING_OP
from graph_rewrite.graph.passthrough import VARIABLES
from graph_rewrite.training.places import Place, Update
from graph_rewrite.training.rules import Rules
from semisync.common.errors import BadInput

_REPLACING = re.compile("(Resource)?ScatterUpdate$|Assign(VariableOp)?$")
_SUM = "UnsortedSegmentSum"
_UNIQUE = ("Unique", "UniqueV2")


class TrainingOps:
    """Finds the updates of one graph.

    Args:
      nodes, kinds: the graph's `Nodes` and `OpKinds`.
      trainable: names of the trainable variables.

    Attributes:
      updates: list of `Update`, in the graph's order.
    """

    def __init__(self, nodes, kinds, trainable):
        self._nodes, self._kinds, self._trainable = nodes, kinds, set(trainable)
        self._sources = [node.name for node in nodes if kinds.brings_batch(node)]
        self._fed = kinds.flow(self._sources)
        self._order = {node.name: number for number, node in enumerate(nodes)}
        self._written = {}  # name of a node that writes -> name of its variable
        for node in nodes:
            variable = kinds.written(node.name)
            if variable is not None:
                self._written[node.name] = variable
        rules = Rules(nodes, kinds, self._fed, self._written)
        single = [rules.whole(self._single(node)) for node in nodes.of_type(TRAINING_OP.match)]
        self._claimed = {name for update in single for name in update.ops}
        several = self._of_several_ops()
        self._claimed.update(name for update in several for name in update.ops)
        steps = [self._step(nodes[name]) for name in self._written if self._is_step(name)]
        steps += [self._replacing(nodes[name]) for name in self._written if self._replaces(name)]
        ruled = [step for step in steps if rules.inner(step)]
        steps = [step for step in steps if step.places and not rules.inner(step)]
        self._refuse_slots(steps)
        found = single + several + steps
        found += rules.others(ruled, found)
        self._claimed.update(name for update in found for name in update.ops)
        self.updates = sorted(found, key=lambda u: self._order[u.ops[0]])
        self._refuse_conditional()
        self._refuse_unknown()

    def _single(self, node):
        """The update of a training op."""
        places = [Place(node.name, self._kinds.position(node, "grad", "delta"), "values")]
        if "Sparse" in node.op:
            places.append(Place(node.name, self._kinds.position(node, "indices"), "indices"))
        name = self._written.get(node.name)
        if name is None or any(place.number is None for place in places):
            raise BadInput(
                "the training op {} of type {} is not known: no variable, or no input named grad "
                "(and indices)".format(node.name, node.op)
            )
        variable = self._nodes[name]
        values, indices = ([node.input[place.number] for place in places] + [None])[:2]
        summed = self._summed(values)
        if not summed or indices != summed.unique:
            return Update(variable, [node.name], values, indices, places)
        beside, between = self._beside(summed, name)
        places += [
            Place(use.node.name, use.input, "indices")
            for use in self._rows(summed)
            if use.node.name in between
        ]
        return Update(variable, [node.name] + beside, summed.values, summed.indices, places)

    def _rows(self, summed):
        """Every `Use` of the ids, each of them once, that a sum by id has rows for."""
        uses = self._nodes.uses(summed.unique)
        return [use for use in uses if use.output == 0 and use.node.op != "Shape"]

    def _beside(self, summed, variable):
        """What else writes to the rows of a variable, and needs no more of the batch than the ids.

        Such as a decay of the rows that a batch touches (contrib.opt's "W" optimizers).

        Returns: the names of these ops, and of all that lies between the ids and them.
        """
        found, between = [], set()
        for use in self._rows(summed):
            name = use.node.name
            if self._written.get(name) != variable or not ADDS_TO_ROWS.match(use.node.op):
                continue
            above = self._nodes.reachable([name], lambda node: self._fed_makers(node, summed))
            if not any(self._kinds.brings_batch(self._nodes[each]) for each in above):
                found.append(name)
                between |= above
        return found, between

    def _fed_makers(self, node, summed):
        """The names of those that make of a batch what a node takes, but for the ids."""
        makers = [maker for maker in self._nodes.makers(node) if maker in self._fed]
        return [maker for maker in makers if maker != summed.unique]

    def _summed(self, tensor):
        """The `_Summed` that a tensor is, or None."""
        node = self._nodes.maker(tensor)
        if node.op != _SUM:
            return None
        unique, output = split(node.input[1])
        unique = self._nodes[unique]
        if output != 1 or unique.op not in _UNIQUE:
            return None
        return _Summed(node.name, unique.name, node.input[0], unique.input[0])

    def _of_several_ops(self):
        """The updates whose ops share one sum by id, list."""
        found = []
        for node in self._nodes.of_type(_SUM.__eq__):
            summed = self._summed(node.name)
            if not summed or not self._scatters(summed):
                continue
            written = self._writes_below(summed.sum)
            trained = sorted({self._written[name] for name in written} & self._trainable)
            if len(trained) != 1 or self._claimed.intersection(written):
                continue
            places = [
                Place(use.node.name, use.input, "values") for use in self._nodes.uses(summed.sum)
            ] + [Place(use.node.name, use.input, "indices") for use in self._rows(summed)]
            written += self._beside(summed, trained[0])[0]
            # The variable's own op first, then those of its slots.
            written.sort(key=lambda name: (self._written[name] != trained[0], self._order[name]))
            variable = self._nodes[trained[0]]
            found.append(Update(variable, written, summed.values, summed.indices, places))
        return found

    def _scatters(self, summed):
        """True when the ids address rows of a variable directly."""
        return any(
            use.node.name in self._written and use.output == 0 and use.input == 1
            for use in self._nodes.uses(summed.unique)
        )

    def _writes_below(self, name):
        """The names of the ops that write what is computed from a tensor."""

        def follow(node):
            trained = self._written.get(node.name) in self._trainable
            return [] if trained else self._kinds.values_of(node)

        return [found for found in self._nodes.reachable([name], follow) if found in self._written]

    def _is_step(self, name):
        node = self._nodes[name]
        return (
            name not in self._claimed
            and PLAIN_STEP.match(node.op)
            and self._written[name] in self._trainable
            and self._delta(node) is not None
        )

    def _delta(self, node):
        """The number of the input of a plain step that comes from a batch, or None."""
        number = self._kinds.position(node, "updates", "value")
        return number if split(node.input[number])[0] in self._fed else None

    def _step(self, node):
        """The update of a plain step."""
        place, values = Place(node.name, self._delta(node), "values"), None
        while values != place:
            values = place
            maker = self._nodes.maker(self._nodes[place.node].input[place.number])
            fed = [n for n, t in enumerate(maker.input) if split(t)[0] in self._fed and t[0] != "^"]
            linear = maker.op in ("Neg", "Identity", "Mul") and len(fed) == 1
            if linear and len(self._nodes.uses(maker.name)) == 1:
                place = Place(maker.name, fed[0], "values")
        gradient = self._nodes[place.node].input[place.number]
        places = [place]
        number = self._kinds.position(node, "indices")
        if number is not None:
            places.append(Place(node.name, number, "indices"))
        indices = None if number is None else node.input[number]
        variable = self._nodes[self._written[node.name]]
        return Update(variable, [node.name], gradient, indices, places)

    def _replaces(self, name):
        """True for what gives a trainable variable a value that depends on a batch."""
        node = self._nodes[name]
        if not _REPLACING.match(node.op) or self._written[name] not in self._trainable:
            return False
        return not self._fed.isdisjoint(self._nodes.makers(node)[1:])

    def _replacing(self, node):
        """The update that assigns a value; without a place, which only a rule's scope can tell."""
        variable = self._nodes[self._written[node.name]]
        return Update(variable, [node.name], node.input[1], None, [])

    def _refuse_slots(self, steps):
        """What depends on a slot of the trained variable is no gradient, but a rule's result."""
        if not steps:
            return
        above = self._nodes.reachable([split(u.values)[0] for u in steps], self._nodes.makers)
        moved = sorted(self._moved() & above - self._trainable)
        slots = [name for name in moved if self._nodes[name].op in VARIABLES]
        for update in steps:
            shape = update.variable.attr["shape"]
            like = [name for name in slots if self._nodes[name].attr["shape"] == shape]
            if not like:
                continue  # as with most: there are many steps, and much is above each
            data = self._nodes.reachable([split(update.values)[0]], self._nodes.makers)
            for name in like:
                if name in data:
                    raise BadInput(
                        "the op {} trains {} by a rule that is not known, with {}".format(
                            update.ops[0], update.variable.name, name
                        )
                    )

    def _moved(self):
        """The names of what is written with a batch, as a rule does its slots, a set.

        Not so what initialises a variable, at random, or restores it.
        """
        found = set()
        for name in self._fed.intersection(self._written):
            if not is_no_update(self._nodes, self._nodes[name], self._written[name]):
                found.add(self._written[name])
        for name in self._fed:
            node = self._nodes[name]
            if self._kinds.bodies(node) and self._kinds.writes(node):
                found.update(self._nodes.makers(node))
        return found

    def _refuse_conditional(self):
        """Raises BadInput where a batch does not always reach a training op."""
        found = [name for name in self._claimed if self._kinds.is_conditional(self._nodes[name])]
        calls = [node for node in self._nodes if not TRAINING_OP.match(node.op)]
        found += [node.name for node in calls if self._kinds.trains(node)]
        if found:
            raise BadInput(
                "the op {} trains inside a tf.cond, a loop or a function: take the gradients out "
                "of it and export again".format(self._nodes.ordered(found)[0])
            )

    def _refuse_unknown(self):
        """Raises BadInput where a trainable variable gets a value made of itself and a batch.

        What is trained may be read again, and changed: by a constraint, or a decay.
        """
        found = [self._nodes[name] for name in self._written if self._is_made_of_itself(name)]
        places = {(place.node, place.number) for update in self.updates for place in update.places}
        fed = self._kinds.flow(self._sources, places) if found else set()
        for node in found:
            if not fed.isdisjoint(self._nodes.makers(node)):
                raise BadInput(
                    "the op {} of type {} makes the trainable variable {} of itself and a batch, "
                    "by a rule that is not known".format(
                        node.name, node.op, self._written[node.name]
                    )
                )

    def _is_made_of_itself(self, name):
        """True for what replaces a trainable variable by a value made of it, if not of it alone."""
        if name in self._claimed or not self._replaces(name):
            return False
        makers = self._nodes.makers(self._nodes[name])
        return self._written[name] in self._nodes.reachable(makers[1:], self._nodes.makers)


# `sum` and `unique` name the two ops, `values` and `indices` what they are made of.
_Summed = collections.namedtuple("_Summed", "sum unique values indices")
