"""Numbers that a graph computes from constants alone, as their author wrote them.

A float32 0.01 is 0.01 here, not 0.0099999998, and 1 - 0.99 is 0.01. A hyperparameter may be some
arithmetic on constants: TensorFlow 2's Ftrl gives its training op l2 + beta / (2 learning_rate).
"""

import itertools
import operator
from typing import Any, Callable, Dict, List, Optional

from semisync.common.walks import in_order

_MOST = 1 << 12  # tensors on the way from a number to its constants
_ROUNDING = 1e-6  # error of the sum of two float32 constants


def complement(value):
    """1 - value without the rounding error of the last digits: that of 0.99 is 0.01."""
    return float(round(1 - value, 12))


def _difference(left, right):
    return complement(right) if left == 1 else left - right


ARITHMETIC: Dict[str, Callable[[float, float], Optional[float]]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Maximum": max,
    "Mul": operator.mul,
    "RealDiv": lambda left, right: left / right if right else None,
    "Sub": _difference,
}


def folded(start, made, constant):
    """The number that a tensor holds; None where it depends on more than constants.

    Args:
        start: a tensor.
        made: function of a tensor: its op, and the tensors that it is computed from, two where the
            op is one of `ARITHMETIC`, else those of which it is one.
        constant: function of a tensor that is made from no other: its number, or None.
    """
    numbers: Dict[Any, Optional[float]] = {}
    # Inputs come before their users: a start beyond the limit is never reached, and so unknown.
    for one in itertools.islice(in_order([start], lambda one: made(one)[1]), _MOST):
        op, operands = made(one)
        given: List[Any] = [numbers.get(operand) for operand in operands]
        if not given:
            numbers[one] = constant(one)
        elif op in ARITHMETIC and len(given) == 2 and None not in given:
            numbers[one] = ARITHMETIC[op](*given)
        else:
            numbers[one] = given[0] if len(set(given)) == 1 else None
    return numbers.get(start)


def shortest(value):
    """The shortest decimal number that rounds to a NumPy scalar in its own type, as a float."""
    return float(str(value) if value.dtype.kind == "f" else value)


def make_one(one, other):
    """Whether two numbers are known and add up to 1, but for the rounding of float32."""
    return one is not None and other is not None and abs(one + other - 1) < _ROUNDING
