"""A variable that moves towards a tensor: v <- v + rate x (source - v), in the forms that occur.

Every form binds "variable", "source" and "rate", all tensors. A form that divides binds a
"divisor", a constant, instead of a rate.
"""

from graph_rewrite.graph.constants import number
from graph_rewrite.graph.folding import make_one
from graph_rewrite.graph.ops import ADD, ASSIGN, CARRY, CAST, READ, SUBTRACT
from graph_rewrite.graph.partitions import CONCATS, joined, whole
from graph_rewrite.graph.partitions import number as number_of
from graph_rewrite.graph.passthrough import ends
from graph_rewrite.patterns.arithmetic import DIVIDE, plus, same_value, times
from graph_rewrite.patterns.language import either, given, op, via
from graph_rewrite.patterns.variables import read, variable
from semisync.common.tensor_names import split


def _adds_to_one(nodes, bound):
    kept, rate = bound["kept"], bound["rate"]
    if make_one(number(nodes, kept), number(nodes, rate)):
        return True
    return bool(_is_complement(nodes, kept, rate) or _is_complement(nodes, rate, kept))


def _is_complement(nodes, whole, rest):
    """Whether `whole` is made as 1 - `rest`."""
    name = split(whole)[0]
    if name not in nodes or nodes[name].op != "Sub":
        return False
    one, taken = nodes[name].input[:2]
    return number(nodes, one) == 1 and _origin(nodes, taken) == _origin(nodes, rest)


def _origin(nodes, tensor):
    """The tensors that a tensor passes on: each use of a variable may have a read of its own."""
    return ends(nodes, tensor, CARRY | READ | CAST)


def _is_number(nodes, bound):
    # A divisor of 0 makes no average, and the rate is 1 / divisor.
    return bool(number(nodes, bound["divisor"]))


def _some_of(way):
    return either(times(way, "rate"), given(op(DIVIDE, way, "divisor"), _is_number))


def _forms(old, again, change):
    """The forms of a moving average.

    Args:
        old, again: patterns for the variable's value, which a form may read twice.
        change: pattern for the value that the op takes -> pattern for its input.
    """
    apart, towards = _some_of(op("Sub", old, "source")), _some_of(op("Sub", "source", old))
    weights = given(plus(times(old, "kept"), times("source", "rate")), _adds_to_one)
    return [
        # v -= (v - s) x rate: assign_moving_average, tf.layers, contrib, ExponentialMovingAverage.
        op(SUBTRACT, variable(), change(apart)),
        # v += (s - v) x rate
        op(ADD, variable(), change(towards)),
        # v = v - (v - s) x rate
        op(ASSIGN, variable(), change(op("Sub", again, apart))),
        # v = v + (s - v) x rate
        op(ASSIGN, variable(), change(plus(again, towards))),
        # v = v x kept + s x rate, kept + rate = 1: by hand, and Keras 3.
        op(ASSIGN, variable(), change(weights)),
    ]


MOVING_AVERAGE = either(*_forms(read(), read(), same_value))


def _joined(name):
    return either(via(CARRY | CAST, op(CONCATS, name=name)), read())


def _part_of(value):
    cut = op("Split", "axis", value, name="part"), op("SplitV", value, name="part")
    return same_value(either(*cut))


def _is_the_part(nodes, bound):
    own = split(bound["variable"])[0]
    # A part's own slice of a change that is computed from the whole it is a part of.
    values = [joined(nodes, bound[name]) for name in ("old", "again") if name in bound]
    return split(bound["part"])[1] == number_of(own) and set(values) <= {whole(nodes, own)}


# The change of a partitioned variable is computed as a whole, and each part takes its slice of it.
MOVING_PART = given(either(*_forms(_joined("old"), _joined("again"), _part_of)), _is_the_part)

# The average divided by 1 - kept^step, which corrects its start at zero. Binds "variable", "kept",
# and the variables "biased" and "step", whose value is read or is the output of their update.
_BIASED, _STEP = (
    via(CARRY | READ | CAST, either(op(ADD | ASSIGN | SUBTRACT, variable(name)), read(name)))
    for name in ("biased", "step")
)
_CORRECTED = op(DIVIDE, _BIASED, op("Sub", "one", op("Pow", "kept", _STEP)))
ZERO_DEBIASED = either(
    op(ASSIGN, variable(), same_value(_CORRECTED)),
    op(SUBTRACT, variable(), same_value(op("Sub", read(), _CORRECTED))),
)
