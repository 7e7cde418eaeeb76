"""The numbers in a graph: values of tensors that do not depend on the run."""

import functools
import operator
from typing import Dict, Optional

import numpy as np

from graph_rewrite.graph.ops import CARRY, CAST, JOIN
from graph_rewrite.graph.passthrough import back
from semisync.common.compat import tf
from semisync.common.tensor_names import split
from semisync.common.walks import along, in_order

_STRAIGHT = CARRY | CAST
_MOST_VALUES = 1 << 20


def array(nodes, tensor):
    """The value of a tensor that is a Const, or passed on from one; None of any other."""
    name, output = split(_origin(nodes, tensor))
    node = nodes.get(name)
    if node is None or node.op != "Const" or output != 0:
        return None
    told = node.attr["value"].tensor
    sizes = [dim.size for dim in told.tensor_shape.dim]
    # A damaged Const may repeat its one value to fill more than the memory.
    few = functools.reduce(operator.mul, sizes, 1) <= _MOST_VALUES
    return tf.make_ndarray(told) if few else None


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
    numbers: Dict[str, Optional[float]] = {}

    def before(one):
        chosen = back(nodes, one, JOIN)
        if chosen:
            return [choice for choice in chosen if not allowed or allowed(choice)]
        return back(nodes, one, _STRAIGHT)[:1] or _operands(nodes, one)

    for one in in_order([tensor], before):
        given = [numbers.get(source) for source in before(one)]
        if _operands(nodes, one):
            numbers[one] = _difference(*given)
        elif given:
            numbers[one] = given[0] if len(set(given)) == 1 else None
        else:
            value = array(nodes, one)
            numbers[one] = _shortest(value) if value is not None and value.size == 1 else None
    return numbers.get(tensor)


def _operands(nodes, tensor):
    """The two tensors of a subtraction; none of another op."""
    node = nodes.get(split(tensor)[0])
    return list(node.input[:2]) if node is not None and node.op == "Sub" else []


def _difference(left, right):
    if left is None or right is None:
        return None
    return complement(right) if left == 1 else left - right


def complement(value):
    """1 - value without the rounding error of the last digits: that of 0.99 is 0.01."""
    return float(round(1 - value, 12))


def _shortest(value):
    """The shortest decimal number that rounds to this one in its own type."""
    if value.dtype.kind == "f":
        return float(np.format_float_positional(value.reshape(-1)[0], unique=True, trim="0"))
    return float(value.astype(np.float64).reshape(()))
