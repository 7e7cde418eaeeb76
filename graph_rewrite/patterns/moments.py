"""Patterns of the mean and the variance of a batch, in the forms that occur.

All bind "x". A mean binds "mean"; a variance binds the mean that it is taken around, and that of a
fused op "variance" instead. Forms without a fused op bind "axes", too.
"""

from graph_rewrite.graph.constants import array, number
from graph_rewrite.graph.ops import CARRY, FUSED, SHAPE
from graph_rewrite.graph.passthrough import ends
from graph_rewrite.patterns.arithmetic import handed, over, square, times
from graph_rewrite.patterns.language import either, given, op

FUSED_MEAN = op(FUSED, "x", name="mean", output=1, is_training=True)
FUSED_VARIANCE = op(FUSED, "x", name="variance", output=2, is_training=True)


def of_rows(nodes, kernel):
    """Whether a fused kernel's channels are rows, of a number computed in the graph: the kernel of
    Keras' LayerNormalization, whose scale is filled with ones."""
    scales = ends(nodes, nodes[kernel].input[1], CARRY | SHAPE)
    makers = [nodes.maker(scale) for scale in scales]
    # tf.ones of a thousand channels is a Fill, too: of a constant.
    return any(one.op == "Fill" and array(nodes, one.input[0]) is None for one in makers)


def _around(mean):
    centre = handed(mean)
    return either(op("SquaredDifference", "x", centre, swap=True), square(op("Sub", "x", centre)))


def _is_zero(nodes, bound):
    return number(nodes, bound["least"]) == 0


def _positive(variance):
    """A difference, possibly clipped at 0 against rounding errors."""
    largest = given(op("Maximum", variance, "least", swap=True), _is_zero)
    return either(variance, op("Relu", variance), largest)


def _same_axes(nodes, bound):
    """Whether a variance reduces the axes of its mean."""
    axes, spread = array(nodes, bound["axes"]), array(nodes, bound["spread"])
    if axes is None or spread is None:
        return bound["axes"] == bound["spread"]
    return sorted(axes.flat) == sorted(spread.flat)


# tf.nn.moments and by hand
MEAN = op("Mean", "x", "axes", name="mean")
VARIANCE = given(
    either(
        op("Mean", _around(MEAN), "spread"),
        _positive(op("Sub", op("Mean", square("x"), "spread"), square(handed(MEAN)))),
    ),
    _same_axes,
)

# tf.nn.sufficient_statistics, tf.nn.normalize_moments
SUM_MEAN = over(op("Sum", "x", "axes"), "count", name="mean")
SUM_VARIANCE = given(
    either(
        over(op("Sum", _around(SUM_MEAN), "spread"), "count"),
        _positive(
            op("Sub", over(op("Sum", square("x"), "spread"), "count"), square(handed(SUM_MEAN)))
        ),
    ),
    _same_axes,
)

# tf.nn.weighted_moments: listed, since otherwise they would match as sums of a plain batch.
_TOTAL_WEIGHT = op("Sum", name="total")
WEIGHTED_MEAN = over(op("Sum", times("weights", "x"), "axes"), _TOTAL_WEIGHT, name="mean")
WEIGHTED_VARIANCE = given(
    over(op("Sum", times("weights", _around(WEIGHTED_MEAN)), "spread"), _TOTAL_WEIGHT), _same_axes
)
