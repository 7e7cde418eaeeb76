"""The numbers in a graph: what a tensor holds that nothing computes at run time."""

import numpy as np

from graph_rewrite.graph.passthrough import CARRY, CAST, JOIN, back
from semisync.common.compat import tf
from semisync.common.tensor_names import split

_STRAIGHT = CARRY | CAST


def array(nodes, tensor):
    """The value of a tensor that is a Const, or handed on from one; None of any other."""
    while True:
        name, output = split(tensor)
        if name not in nodes:
            return None
        node = nodes[name]
        if node.op == "Const" and output == 0:
            return tf.make_ndarray(node.attr["value"].tensor)
        behind = back(nodes, tensor, _STRAIGHT)
        if not behind:
            return None
        tensor = behind[0]


def number(nodes, tensor, allowed=None):
    """The number that a scalar tensor holds, as its author wrote it; None where that varies.

    A float32 0.01 is 0.01 here, not 0.0099999998.

    Args:
        nodes: a `Nodes`.
        tensor: a name.
        allowed: function of a tensor's name: whether a condition may choose it; None: any of them.
    """
    behind = back(nodes, tensor, JOIN)
    if behind:
        choices = [choice for choice in behind if not allowed or allowed(choice)]
        values = {number(nodes, choice, allowed) for choice in choices}
        return values.pop() if len(values) == 1 else None
    for hop in back(nodes, tensor, _STRAIGHT):
        return number(nodes, hop, allowed)
    value = array(nodes, tensor)
    if value is not None:
        return _shortest(value) if value.size == 1 else None
    node = nodes.get(split(tensor)[0])
    if node is not None and node.op == "Sub":
        left, right = (number(nodes, operand, allowed) for operand in node.input[:2])
        if left is not None and right is not None:
            return complement(right) if left == 1 else left - right
    return None


def complement(value):
    """1 - value without the noise of the last digits: that of 0.99 is 0.01."""
    return float(round(1 - value, 12))


def _shortest(value):
    """The shortest decimal number that is this one in its own type."""
    if value.dtype.kind == "f":
        return float(np.format_float_positional(value.reshape(-1)[0], unique=True, trim="0"))
    return float(value.astype(np.float64).reshape(()))
