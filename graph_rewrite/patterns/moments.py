"""The mean and the variance of a batch, in the forms that occur. Unfused; fused: patterns/fused.py.

All bind "x", "axes" and "mean"; that of a variance is the mean that it is taken around.
"""

from graph_rewrite.graph.constants import array, number
from graph_rewrite.graph.passthrough import CARRY, CAST, JOIN, SHAPE
from graph_rewrite.patterns.arithmetic import handed, over, plus, square, times
from graph_rewrite.patterns.fused import FUSED_VARIANCE
from graph_rewrite.patterns.language import either, given, op, via


def _around(mean):
    """(x - mean) squared."""
    centre = handed(mean)
    return either(op("SquaredDifference", "x", centre, swap=True), square(op("Sub", "x", centre)))


def _is_zero(nodes, bound):
    return number(nodes, bound["least"]) == 0


def _positive(variance):
    """A difference, also where its noise below 0 is cut off."""
    largest = given(op("Maximum", variance, "least", swap=True), _is_zero, "0 or more")
    return either(variance, op("Relu", variance), largest)


def _same_axes(nodes, bound):
    axes, spread = array(nodes, bound["axes"]), array(nodes, bound["spread"])
    if axes is None or spread is None:
        return bound["axes"] == bound["spread"]
    return sorted(axes.flat) == sorted(spread.flat)


def _over_its_axes(pattern):
    return given(pattern, _same_axes, "the axes of its mean")


# tf.nn.moments and by hand
MEAN = op("Mean", "x", "axes", name="mean")
VARIANCE = _over_its_axes(
    either(
        op("Mean", _around(MEAN), "spread"),
        _positive(op("Sub", op("Mean", square("x"), "spread"), square(handed(MEAN)))),
    )
)

# tf.nn.sufficient_statistics, tf.nn.normalize_moments
SUM_MEAN = over(op("Sum", "x", "axes"), "count", name="mean")
SUM_VARIANCE = _over_its_axes(
    either(
        over(op("Sum", _around(SUM_MEAN), "spread"), "count"),
        _positive(
            op("Sub", over(op("Sum", square("x"), "spread"), "count"), square(handed(SUM_MEAN)))
        ),
    )
)

# tf.nn.weighted_moments
_TOTAL_WEIGHT = op("Sum", name="total")
WEIGHTED_MEAN = over(op("Sum", times("weights", "x"), "axes"), _TOTAL_WEIGHT, name="mean")
WEIGHTED_VARIANCE = _over_its_axes(
    over(op("Sum", times("weights", _around(WEIGHTED_MEAN)), "spread"), _TOTAL_WEIGHT)
)

# What is computed from moments, and is none itself: of groups of rows, or a standard deviation, or
# a variance times something.
_HANDED = CARRY | CAST | SHAPE | JOIN
_SOME_VARIANCE = via(_HANDED, either(VARIANCE, FUSED_VARIANCE))
OF_GROUPS = op("Mean", via(_HANDED, either(VARIANCE, MEAN)), "over")
DEVIATION = op("Sqrt", plus(_SOME_VARIANCE, "epsilon"))
SCALED = times(_SOME_VARIANCE, "factor")

# The variance that belongs to a kept standard deviation; binds "kept".
FROM_DEVIATION = op("Relu", op("Sub", square("kept"), "epsilon"))
