"""The axes that the statistics of a normalisation reduce, and the axes of its channels."""

from graph_rewrite.graph.constants import array
from graph_rewrite.graph.ops import CARRY, CAST, READ, SHAPE, VARIABLES
from graph_rewrite.graph.passthrough import trace
from semisync.common.tensor_names import split

# The channel axis of a FusedBatchNorm by its data_format.
CHANNEL_AXIS = {"NHWC": 3, "NCHW": 1, "NDHWC": 4, "NCDHW": 1}


def over_the_batch(view, statistic):
    """Whether a `Statistic` reduces the axis of a batch's rows."""
    if statistic.axes is None:
        return True
    rank = _rank(view, [], statistic)
    return 0 in statistic.axes or bool(rank and -rank in statistic.axes)


def channel_axes(view, statistics, names, variance):
    """The axes whose every element has its own mean and variance, a tuple.

    Args:
        view: the `View`.
        statistics: those of the batch, a list of `Statistic`.
        names: of variables whose shape is that of the channels; some may be None.
        variance: the tensor that the normalisation takes.
    """
    shapes = [shape for shape in (_shape(view, name) for name in names) if shape]
    for statistic in statistics:
        rank = _rank(view, shapes, statistic)
        if rank and statistic.axes is not None:
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
    """The rank of a statistic's input, from the shape of the tensor that it is multiplied with."""
    node = view.nodes.maker(statistic.x)
    shape = _known_shape(node, split(statistic.x)[1])
    if shape is not None:
        return len(shape)
    if shapes:
        wide = max(len(shape) for shape in shapes)
        return len(statistic.axes) + wide if wide == 1 else wide
    return None


def _known_shape(node, output):
    """The shape of an output in the node's attributes, a list; None where it is not there."""
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
