"""Which ops have nothing left to do when updates are taken out of a graph.

The value of an update inside a tf.cond is passed on by the cond's Merge, which UPDATE_OPS names and
the train op waits for; the value of an assignment to a resource is passed on by a read. Without the
update both read the variable, possibly from a parameter server, and nothing uses it.
"""

from graph_rewrite.graph.functions import home
from graph_rewrite.graph.ops import CARRY, MERGE, PLACEHOLDERS, READ, TELLS

_PASSES_ON = CARRY | READ | MERGE


def dead_ops(nodes, traits, names):
    """The names of the ops that need not be waited for any more, a set.

    Each only passes on the value of an op of `names`, nothing takes its own value, and apart from
    `names` nothing that has an effect comes before it.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        names: of the ops at the top level that are taken out, a set.
    """

    def takers(node):
        takers = [use.node for use in nodes.uses(node.name)]
        return [taker.name for taker in takers if taker.op in _PASSES_ON and not home(taker.name)]

    after = [
        name
        for controls, waiting in nodes.alike()
        if not names.isdisjoint(controls)
        for name in waiting
        if nodes[name].op in _PASSES_ON and not home(name)
    ]
    dead = nodes.reachable(names.union(after), takers) - names
    # An op behind a side effect must still be waited for.
    above = nodes.ancestors(dead, without=names)
    effects = [name for name in above if _has_effect(traits, nodes[name])]
    dead -= nodes.descendants(effects)
    # An op that anything alive takes stays, and so do its own makers.
    waiting = list(dead)
    while waiting:
        name = waiting.pop()
        if name in dead and any(use.node.name not in dead for use in nodes.uses(name)):
            dead.remove(name)
            waiting += nodes.makers(nodes[name])
    return dead


def _has_effect(traits, node):
    batch = traits.brings_batch(node) and node.op not in PLACEHOLDERS
    return batch or node.op in TELLS or traits.writes(node)
