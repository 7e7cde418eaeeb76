"""Finds every normalisation by a mean and a variance, fused or not, with or without updates.

A fused layer whose `training` is a predicate has two of them, one in each branch; an unfused one
has one, which takes its statistics from a condition.
"""

from typing import Any, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.batch_norm.statistics import MEAN, VARIANCE, Statistic, statistics, variables
from graph_rewrite.graph.constants import array, number
from graph_rewrite.graph.index import attribute
from graph_rewrite.graph.ops import CARRY, CAST, FUSED, READ, SHAPE, VARIABLES
from graph_rewrite.graph.passthrough import trace
from graph_rewrite.patterns.language import ways
from graph_rewrite.patterns.moments import of_rows
from graph_rewrite.patterns.normalization import LONGEST, NORMALIZATION, ROOTS, STEPS
from semisync.common.tensor_names import join, split

# The channel axis of a FusedBatchNorm by its data_format.
_CHANNEL_AXIS = {"NHWC": 3, "NCHW": 1, "NDHWC": 4, "NCDHW": 1}


class Normalisation(NamedTuple):
    """One normalisation.

    Attributes:
        kind: "fused" or "unfused".
        op: the FusedBatchNorm, or the root.
        x: the tensor that is normalised, at the top level.
        mean, variance: the tensors that it normalises with; of a FusedBatchNorm in training these
            are outputs of its own.
        statistics: the statistics of a batch that these may be.
        moving: the variables from which the mean, and the variance, may be read.
        gamma, beta: variables or None.
        epsilon: a float, or None.
        axis: the channel axes.
        over_batch: whether its statistics, if any, run over the rows of a batch.
    """

    kind: str
    op: str
    x: str
    mean: str
    variance: str
    statistics: List[Statistic]
    moving: Tuple[Set[str], Set[str]]
    gamma: Optional[str]
    beta: Optional[str]
    epsilon: Any
    axis: Tuple[int, ...]
    over_batch: bool


def normalisations(view):
    """Every Normalisation of a `View`, in the order of the graph."""
    made = []
    for node in view.nodes.of_type(FUSED.union(ROOTS).__contains__):
        if node.op in FUSED:
            made.append(_fused(view, node))
        else:
            best = _largest(view.nodes, node)
            made.append(_unfused(view, best) if best else None)
    return [normalisation for normalisation in made if normalisation]


def _fused(view, node):
    training = attribute(node, "is_training")
    mean, variance = node.input[3:5]
    # Before these are replaced: in training the moving ones may still be its inputs.
    moving = variables(view, mean), variables(view, variance)
    if training:
        mean, variance = join(node.name, 1), join(node.name, 2)
    return Normalisation(
        kind="fused",
        op=node.name,
        x=view.guards.lift(node.input[0]),
        mean=mean,
        variance=variance,
        statistics=statistics(view, mean) + statistics(view, variance) if training else [],
        moving=moving,
        gamma=_variable(view, node.input[1]),
        beta=_variable(view, node.input[2]),
        epsilon=_epsilon(attribute(node, "epsilon")),
        axis=(_CHANNEL_AXIS.get(attribute(node, "data_format"), -1),),
        over_batch=not of_rows(view.nodes, node.name),
    )


def _unfused(view, match):
    """The Normalisation of a Match of NORMALIZATION; None where it takes no batch's statistics."""
    means = [s for s in statistics(view, match["mean"]) if s.kind == MEAN]
    variances = [s for s in statistics(view, match["variance"]) if s.kind == VARIANCE]
    # A mean and a variance of different tensors are no pair.
    keys = {s.key for s in means} & {s.key for s in variances}
    taken = [s for s in means + variances if s.key in keys]
    moving = variables(view, match["mean"]), variables(view, match["variance"])
    if not taken and not all(moving):
        return None
    gamma, beta = (_variable(view, match[n]) if match.get(n) else None for n in ("gamma", "beta"))
    return Normalisation(
        kind="unfused",
        op=split(match["root"])[0],
        x=view.guards.lift(taken[0].x if taken else match["x"]),
        mean=match["mean"],
        variance=match["variance"],
        statistics=taken,
        moving=moving,
        gamma=gamma,
        beta=beta,
        epsilon=number(view.nodes, match["epsilon"]),
        axis=_channel_axes(view, taken, [*sorted(moving[1]), gamma, beta], match["variance"]),
        over_batch=not taken or any(_over_the_batch(view, s) for s in taken),
    )


def _largest(nodes, root):
    """The Match with the most ops whose denominator is the op `root`; or None."""
    # A match also exists at every op before the last one, without gamma or beta.
    matches, layer, seen = [], [root.name], set()
    for _ in range(LONGEST):  # no form of a normalisation ends further below its root
        users = [use.node for name in layer for use in nodes.uses(name)]
        layer = [node.name for node in users if node.op in STEPS and node.name not in seen]
        seen.update(layer)
        for name in layer:
            matches += [m for m in ways(NORMALIZATION, nodes, name) if m["root"] == root.name]
    return max(matches, key=lambda match: len(match.ops)) if matches else None


def _variable(view, tensor):
    """The one variable whose value a tensor is, or None."""
    names = variables(view, tensor)
    return names.pop() if len(names) == 1 else None


def _epsilon(value):
    # The attribute is a float32: 0.001 would come out as 0.0010000000474974513.
    return float("{:.7g}".format(value))


def _over_the_batch(view, statistic):
    """Whether a `Statistic` reduces the axis of a batch's rows."""
    if statistic.axes is None:
        return True
    rank = _rank(view, [], statistic)
    # -rank is axis 0, too; it can be told only where the rank is known.
    return 0 in statistic.axes or bool(rank and -rank in statistic.axes)


def _channel_axes(view, statistics, names, variance):
    """The axes whose every element has its own mean and variance, a tuple.

    Args:
        view: the `View`.
        statistics: those of the batch, a list of `Statistic`.
        names: of variables whose shape is that of the channels; some may be None.
        variance: the tensor that the normalisation takes.
    """
    shapes = [shape for shape in (_shape(view, name) for name in names) if shape]
    for statistic in statistics:
        rank = _rank(view, shapes, statistic) if statistic.axes is not None else None
        if rank:
            over = {axis % rank for axis in statistic.axes}
            return tuple(axis for axis in range(rank) if axis not in over)
    # Where the axes are not constant, a Reshape for broadcasting still shows the channels.
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
    """The rank of a statistic's input: its own, else derived from the shapes of the channels."""
    node = view.nodes.maker(statistic.x)
    shape = _known_shape(node, split(statistic.x)[1])
    if shape is not None:
        return len(shape)
    if shapes:
        wide = max(len(shape) for shape in shapes)
        # A vector has the axes that are not reduced; any other shape was kept to broadcast.
        return len(statistic.axes) + wide if wide == 1 else wide
    return None


def _known_shape(node, output):
    """The shape of an output in the node's attributes, a list; None where it is not there."""
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
    if len(shapes) > output and not shapes[output].unknown_rank:
        return [dim.size for dim in shapes[output].dim]
    if node.op in VARIABLES | {"Placeholder"} and "shape" in node.attr:
        shape = node.attr["shape"].shape
        # Old GraphDefs write an unknown shape as a scalar's (array_ops.cc, state_ops.cc).
        return None if shape.unknown_rank or not shape.dim else [dim.size for dim in shape.dim]
    return None


def _shape(view, name):
    if name is None or name not in view.nodes:
        return None
    return _known_shape(view.nodes[name], 0)
