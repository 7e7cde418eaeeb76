"""y = (x - mean) / sqrt(variance + epsilon) x gamma + beta, unfused, in the forms that occur.

All bind "x", "mean", "variance", "epsilon" and "root" (the Rsqrt, Sqrt or Pow), and "gamma" and
"beta" where there is one. In a form written by hand these two must be variables, or a residual
connection would match as a beta; tf.nn.batch_normalization is recognised by its form alone.
"""

from graph_rewrite.graph.constants import number
from graph_rewrite.graph.ops import CARRY, CAST, PLUS
from graph_rewrite.patterns.arithmetic import DIVIDE, plus, times
from graph_rewrite.patterns.language import both, either, given, op, via
from graph_rewrite.patterns.variables import shaped

ROOTS = ("Rsqrt", "Sqrt", "Pow")
# Ops between the root and y, and the most of them in a row.
STEPS = PLUS.union(DIVIDE, ["Mul", "Sub", "BiasAdd", "Cast", "Identity"])
LONGEST = 6


def _same(pattern):
    """The pattern's value, passed on with its gradient, in any type."""
    return via((CARRY | CAST) - {"StopGradient"}, pattern)


def _is_number(name):
    return lambda nodes, bound: number(nodes, bound[name]) is not None


_SHIFTED = _same(given(plus("variance", "epsilon"), _is_number("epsilon")))


def _power(exponent):
    return given(
        op("Pow", _SHIFTED, "exponent", name="root"),
        lambda nodes, bound: number(nodes, bound["exponent"]) == exponent,
    )


_INVERSE = either(op("Rsqrt", _SHIFTED, name="root"), _power(-0.5))
_DEVIATION = either(op("Sqrt", _SHIFTED, name="root"), _power(0.5))
_GAMMA, _BETA = shaped("gamma"), shaped("beta")

# tf.nn.batch_normalization: x * inv + (beta - mean * inv), inv = rsqrt(variance + epsilon) * gamma;
# gamma and beta may be missing (nn_impl.py).
_FACTOR = _same(both("factor", either(times(_INVERSE, "gamma"), _INVERSE)))
_AGAIN = _same("factor")
_OFFSET = either(op("Sub", "beta", times("mean", _AGAIN)), times(op("Neg", "mean"), _AGAIN))
TF_NN = op(PLUS, times("x", _FACTOR), _same(_OFFSET))

# By hand.
_CENTRED = op("Sub", "x", "mean")
_UNIT = _same(either(op(DIVIDE, _CENTRED, _DEVIATION), times(_CENTRED, _INVERSE)))
_STRETCHED = _same(times(_CENTRED, _GAMMA))
_SCALED = _same(
    either(
        times(_UNIT, _GAMMA),
        times(_CENTRED, _same(either(times(_INVERSE, _GAMMA), op(DIVIDE, _GAMMA, _DEVIATION)))),
        either(times(_STRETCHED, _INVERSE), op(DIVIDE, _STRETCHED, _DEVIATION)),
        _UNIT,  # without a gamma: last, since it is a part of the others
    )
)
BY_HAND = either(plus(_SCALED, _BETA), op("BiasAdd", _SCALED, _BETA), _SCALED)

NORMALIZATION = either(TF_NN, BY_HAND)
