"""Arithmetic as Python's operators build it."""

from graph_rewrite.graph.ops import CARRY, CAST, PLUS, SHAPE
from graph_rewrite.patterns.language import either, op, via

DIVIDE = ("RealDiv", "Div", "DivNoNan")
RECIPROCAL = ("Reciprocal", "Inv")


def times(first, second, name=None):
    """A product, either way round."""
    return op("Mul", first, second, swap=True, name=name)


def plus(first, second):
    """A sum, either way round."""
    return op(PLUS, first, second, swap=True)


def square(pattern):
    """pattern x pattern."""
    return either(op("Square", pattern), op("Mul", pattern, pattern))


def over(total, count, name=None):
    """A quotient, also as the product with the reciprocal."""
    return either(times(total, op(RECIPROCAL, count), name), op(DIVIDE, total, count, name=name))


def same_value(pattern):
    """The pattern's value, passed on, in any type."""
    return via(CARRY | CAST, pattern)


def handed(pattern):
    """The pattern's value, passed on, in any type and shape."""
    return via(CARRY | CAST | SHAPE, pattern)
