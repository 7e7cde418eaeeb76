"""The nodes of a training graph that a batch reaches, and those of them that write a variable."""

import re

from graph_rewrite.graph.ops import PLAIN_STEP
from graph_rewrite.patterns.variables import initialises
from semisync.common.tensor_names import split

_REPLACES = re.compile("(Resource)?ScatterUpdate$|Assign(VariableOp)?$")


class BatchFlow:
    """The flow of one graph's batches.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        trainable: names of the trainable variables.

    Attributes:
        nodes, traits: the same.
        trainable: the same, a set.
        sources: names of the nodes that bring a batch, a list.
        reached: names of the nodes whose values depend on a batch, a set.
        written: {name of a node that writes: name of its variable}, in the graph's order.
    """

    def __init__(self, nodes, traits, trainable):
        self.nodes, self.traits, self.trainable = nodes, traits, set(trainable)
        self.sources = [node.name for node in nodes if traits.brings_batch(node)]
        self.reached = traits.flow(self.sources)
        self.written = {}
        for node in nodes:
            variable = traits.written(node.name)
            if variable is not None:
                self.written[node.name] = variable

    def trains(self, name):
        """Whether an op writes a trainable variable."""
        return self.written.get(name) in self.trainable

    def step_input(self, name):
        """The number of the input by which a batch reaches a plain step, as ScatterSub, if any."""
        node = self.nodes[name]
        if not PLAIN_STEP.match(node.op) or not self.trains(name):
            return None
        number = self.traits.position(node, "updates", "value")
        return number if split(node.input[number])[0] in self.reached else None

    def replaces(self, name):
        """Whether an op gives a trainable variable a value that depends on a batch."""
        node = self.nodes[name]
        if not _REPLACES.match(node.op) or not self.trains(name):
            return False
        return not self.reached.isdisjoint(self.nodes.makers(node)[1:])  # input 0 is the variable

    def changed_variables(self):
        """The names of the variables that a batch changes, as an optimizer does its slots, a set.

        An op that initialises a variable, at random, or restores it, does not count.
        """
        changed = set()
        for name in self.reached.intersection(self.written):
            if not initialises(self.nodes, self.nodes[name], self.written[name]):
                changed.add(self.written[name])
        # A call does not say which of its variables it writes: all that it takes count.
        for node in [self.nodes[name] for name in self.reached]:
            if self.traits.bodies(node) and self.traits.writes(node):
                changed.update(self.nodes.makers(node))
        return changed
