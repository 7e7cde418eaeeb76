"""Finds every normalisation by a mean and a variance, fused or not, whatever updates there are.

A layer whose `training` is a predicate has two of them when it is fused (one in each branch), and
one that takes its statistics from a condition when it is not.
"""

from collections import namedtuple

from graph_rewrite.batch_norm.statistics import MEAN, VARIANCE, statistics, variables
from graph_rewrite.graph.constants import array, number
from graph_rewrite.graph.index import attribute, join, split
from graph_rewrite.graph.passthrough import CARRY, CAST, READ, SHAPE, VARIABLES, trace
from graph_rewrite.patterns.fused import CHANNEL_AXIS, FUSED
from graph_rewrite.patterns.language import ways
from graph_rewrite.patterns.normalization import LONGEST, NORMALIZATION, ROOTS, STEPS

# One of them.
#   kind: "fused" or "unfused"; op: the FusedBatchNorm, or the root; x: the tensor at the top level
#   mean, variance: tensors that it takes; of a FusedBatchNorm in training: that it gives
#   statistics: those of a batch that these may be; moving: (mean's, variance's) variables, sets
#   gamma, beta: variables or None; epsilon: float; axis: tuple of channel axes
#   over_batch: whether its statistics, if any, run over the rows of a batch
Normalisation = namedtuple(
    "Normalisation",
    "kind op x mean variance statistics moving gamma beta epsilon axis over_batch",
)


def normalisations(view):
    """Every Normalisation of a `View`, in the order of the graph."""
    found = []
    for node in view.nodes.of_type((FUSED + ROOTS).__contains__):
        if node.op in FUSED:
            found.append(_fused(view, node))
        else:
            best = _largest(view.nodes, node)
            if best:
                found.append(_unfused(view, best))
    return [each for each in found if each]


def _fused(view, node):
    training = attribute(node, "is_training") is not False
    mean, variance = node.input[3:5]
    moving = tuple({name for name, _ in variables(view, each)} for each in (mean, variance))
    if training:
        mean, variance = join(node.name, 1), join(node.name, 2)
    return Normalisation(
        "fused",
        node.name,
        view.guards.lift(node.input[0]),
        mean,
        variance,
        statistics(view, mean) + statistics(view, variance) if training else [],
        moving,
        _variable(view, node.input[1]),
        _variable(view, node.input[2]),
        _epsilon(attribute(node, "epsilon")),
        (CHANNEL_AXIS.get(attribute(node, "data_format") or "NHWC"),),
        True,
    )


def _unfused(view, found):
    own = [
        [each for each in statistics(view, found[name]) if each.kind == kind]
        for name, kind in (("mean", MEAN), ("variance", VARIANCE))
    ]
    keys = {each.key for each in own[0]} & {each.key for each in own[1]}
    taken = [each for each in own[0] + own[1] if each.key in keys]
    moving = tuple({n for n, _ in variables(view, found[name])} for name in ("mean", "variance"))
    if not taken and not (moving[0] and moving[1]):
        return None
    gamma, beta = (_variable(view, found[n]) if found.get(n) else None for n in ("gamma", "beta"))
    return Normalisation(
        "unfused",
        split(found["root"])[0],
        view.guards.lift(taken[0].x if taken else found["x"]),
        found["mean"],
        found["variance"],
        taken,
        moving,
        gamma,
        beta,
        number(view.nodes, found["epsilon"]),
        _channel_axes(view, taken, [*sorted(moving[1]), gamma, beta], found["variance"]),
        not taken or any(_over_the_batch(view, each) for each in taken),
    )


def _largest(nodes, root):
    """The Match with the most ops whose root, the op under the fraction, is `root`; or None."""
    found, layer, seen = [], [root.name], set()
    for _ in range(LONGEST):
        users = [use.node for name in layer for use in nodes.uses(name)]
        layer = [node.name for node in users if node.op in STEPS and node.name not in seen]
        seen.update(layer)
        for name in layer:
            found += [m for m in ways(NORMALIZATION, nodes, name) if m["root"] == root.name]
    return max(found, key=lambda match: len(match.ops)) if found else None


def _variable(view, tensor):
    """The one variable whose value a tensor is, or None."""
    found = {name for name, _ in variables(view, tensor)}
    return found.pop() if len(found) == 1 else None


def _epsilon(value):
    return float("{:.7g}".format(value)) if value is not None else None


def _over_the_batch(view, statistic):
    """Whether the rows of a batch are among what a statistic runs over."""
    if statistic.axes is None:
        return True
    rank = _rank(view, [], statistic)
    return 0 in statistic.axes or bool(rank and -rank in statistic.axes)


def _channel_axes(view, taken, names, variance):
    """The axes that are normalised each by its own numbers, a tuple."""
    shapes = [shape for shape in (_shape(view, name) for name in names) if shape]
    for statistic in taken:
        rank = _rank(view, shapes, statistic)
        if rank and statistic.axes is not None:
            over = {axis % rank for axis in statistic.axes}
            return tuple(axis for axis in range(rank) if axis not in over)
    for tensor in trace(view.nodes, variance, CARRY | CAST | SHAPE | READ):
        node = view.nodes.maker(tensor)
        if node.op == "Reshape":
            shapes = [array(view.nodes, node.input[1])]
            shapes = [list(shape.flat) for shape in shapes if shape is not None]
            break
    for shape in shapes:
        wide = tuple(axis for axis, size in enumerate(shape) if size != 1)
        return wide if len(shape) > 1 else (-1,)
    return (-1,)


def _rank(view, shapes, statistic):
    """The rank of what a statistic is taken of, from the shape of what it is multiplied with."""
    node = view.nodes.maker(statistic.x)
    shape = _known_shape(node, split(statistic.x)[1])
    if shape is not None:
        return len(shape)
    if shapes:
        wide = max(len(shape) for shape in shapes)
        return len(statistic.axes) + wide if wide == 1 else wide
    return None


def _known_shape(node, output):
    """The shape that a node says its output has, a list; None where it says none."""
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
    if len(shapes) > output and not shapes[output].unknown_rank:
        return [dim.size for dim in shapes[output].dim]
    if node.op in VARIABLES | {"Placeholder"} and "shape" in node.attr:
        shape = node.attr["shape"].shape
        return None if shape.unknown_rank or not shape.dim else [dim.size for dim in shape.dim]
    return None


def _shape(view, name):
    if name is None or name not in view.nodes:
        return None
    return _known_shape(view.nodes[name], 0)
