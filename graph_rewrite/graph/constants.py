"""The numbers in a graph: values of tensors that do not depend on the run."""

from graph_rewrite.graph.folding import ARITHMETIC, folded, shortest
from graph_rewrite.graph.ops import CARRY, CAST, JOIN
from graph_rewrite.graph.passthrough import back
from semisync.common.tensor_names import split
from semisync.common.walks import along

_STRAIGHT = CARRY | CAST


def array(nodes, tensor):
    """The value of a tensor that is a Const, or passed on from one; None of any other."""
    name, output = split(_origin(nodes, tensor))
    node = nodes.get(name)
    if node is None or node.op != "Const" or output != 0:
        return None
    return nodes.constant(node)


def _origin(nodes, tensor):
    """The tensor whose value a tensor passes on, possibly cast."""
    *_, end = along(tensor, lambda one: next(iter(back(nodes, one, _STRAIGHT)), None))
    return end


def number(nodes, tensor, allowed=None):
    """The number that a scalar tensor holds, as its author wrote it; None where that varies.

    A float32 0.01 is 0.01 here, not 0.0099999998.

    Args:
        nodes: a `Nodes`.
        tensor: a name.
        allowed: function of a tensor's name: whether a condition may choose it; None: any of them.
    """

    def made(one):
        # A Merge or call is one of several values; any other hop passes on its first input alone.
        node, chosen = nodes.get(split(one)[0]), back(nodes, one, JOIN)
        chosen = [choice for choice in chosen if not allowed or allowed(choice)]
        chosen = chosen or back(nodes, one, _STRAIGHT)[:1]
        op = node.op if node is not None else None
        # Control edges come after the two operands.
        return op, list(node.input[:2]) if op in ARITHMETIC else chosen

    def constant(one):
        value = array(nodes, one)
        return shortest(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    return folded(tensor, made, constant)
