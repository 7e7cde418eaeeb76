"""A condition for `given`: two tensors are one, or the same computation of the same inputs.

TensorFlow converts IndexedSlices to a tensor anew wherever one is needed. So arithmetic that takes
the gradient of a table twice takes two tensors.
"""

from semisync.common.tensor_names import split
from semisync.common.walks import reachable

_DEEPEST = 4  # levels of inputs


def alike(one, other):
    """Whether the tensors that are bound to two names are alike, as a function for `given`."""

    def holds(nodes, bound):
        def before(pair):
            first, second, levels = pair
            if split(first) == split(second):
                return []
            inputs = (nodes.inputs(nodes.maker(tensor)) for tensor in (first, second))
            return [(*both, levels - 1) for both in zip(*inputs)]

        pairs = reachable([(bound[one], bound[other], _DEEPEST)], before)
        return all(_compute_alike(nodes, *pair) for pair in pairs)

    return holds


def _compute_alike(nodes, one, other, levels):
    """Whether the nodes of two tensors do the same computation, given equal inputs."""
    if split(one) == split(other):
        return True
    first, second = nodes.maker(one), nodes.maker(other)
    if (split(one)[1], first.op, first.attr) != (split(other)[1], second.op, second.attr):
        return False
    taken = len(nodes.inputs(first))
    if taken != len(nodes.inputs(second)):
        return False
    # Placeholders and other sources have no inputs either, and two of them are not one value.
    return first.op == "Const" or bool(levels and taken)
