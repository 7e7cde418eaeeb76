"""Which ops are left with nothing to do when updates are taken out of a graph.

The value of an update inside a tf.cond is handed on by the cond's Merge, and it is this that
UPDATE_OPS names and that the train op waits for; behind an assignment to a resource it is a read.
Without the update both read the variable, from a parameter server perhaps, for nobody.
"""

from graph_rewrite.graph.functions import home
from graph_rewrite.graph.op_traits import PLACEHOLDERS, TELLS
from graph_rewrite.graph.passthrough import CARRY, MERGE, READ

_HANDS_ON = CARRY | READ | MERGE


def idle(nodes, kinds, names):
    """The names of the ops that need not be waited for any more, a set.

    Each does no more than hand on what an op of `names` gave, nobody takes its value, and nothing
    that has an effect comes before it, but for `names`.

    Args:
      nodes, kinds: the graph's `Nodes` and `OpKinds`.
      names: of the ops at the top level that are taken out, a set.
    """

    def takers(node):
        takers = [use.node for use in nodes.uses(node.name)]
        return [each.name for each in takers if each.op in _HANDS_ON and not home(each.name)]

    after = [
        name
        for controls, waiting in nodes.alike()
        if not names.isdisjoint(controls)
        for name in waiting
        if nodes[name].op in _HANDS_ON and not home(name)
    ]
    found = nodes.reachable(names.union(after), takers) - names
    above = nodes.ancestors(found, without=names)
    effects = [name for name in above if _has_effect(kinds, nodes[name])]
    found -= nodes.descendants(effects)
    taken = list(found)
    while taken:
        name = taken.pop()
        if name in found and any(use.node.name not in found for use in nodes.uses(name)):
            found.remove(name)
            taken += nodes.makers(nodes[name])
    return found


def _has_effect(kinds, node):
    batch = kinds.brings_batch(node) and node.op not in PLACEHOLDERS
    return batch or node.op in TELLS or kinds.writes(node)
