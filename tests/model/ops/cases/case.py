"""One case of an op, and small arrays to run it on."""

from typing import Any, Callable, NamedTuple, Sequence

import numpy
import tensorflow

raw = tensorflow.raw_ops


class Case(NamedTuple):
    """op: that must be in the graph. build, inputs: as of one_op.Program. gradient: whether it is
    compared. shapes: what the graph may know of the inputs' shapes."""

    op: str
    build: Callable
    inputs: Sequence[Any]
    gradient: bool = True
    shapes: Sequence[str] = ("all", "none")
    rtol: float = 1e-5

    def __str__(self):
        return self.op


def floats(*shape, dtype="float32", low=-2.0, high=2.0):
    """Numbers between low and high, the same ones for the same shape."""
    generator = numpy.random.default_rng(sum(shape) + 17 * len(shape))
    return generator.uniform(low, high, shape).astype(dtype)


def integers(*shape, dtype="int32", low=-5, high=6):
    """Integers of low ... high - 1."""
    generator = numpy.random.default_rng(sum(shape) + 17 * len(shape))
    return generator.integers(low, high, shape).astype(dtype)


def bools(*shape):
    """Half of them true."""
    return floats(*shape) > 0


def strings(*values):
    """A vector of strings."""
    return numpy.array(values, object)


def vector(*values, dtype="int32"):
    """These numbers."""
    return numpy.array(values, dtype)
