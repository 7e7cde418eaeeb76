"""Ops of one number and of two, at all shapes that broadcast, and at the edges of their types."""

import inspect

import hypothesis
import numpy
import pytest
import torch
from hypothesis import strategies
from hypothesis.extra import numpy as arrays

from tests.model.ops.cases.arithmetic import (
    BINARY,
    BINARY_INTEGERS,
    BITS,
    DIVISIONS,
    UNARY,
    UNARY_INTEGERS,
)
from tests.model.ops.cases.case import raw
from tests.model.ops.one_op import Program

FEW = hypothesis.settings(max_examples=10, deadline=None, derandomize=True, database=None)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
EDGES = numpy.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-30, 1e30, numpy.inf, -numpy.inf])
INEXACT = {"Digamma": 1e-4, "Erfinv": 1e-4, "Lgamma": 1e-4, "Ndtri": 1e-4, "Pow": 1e-4, "Tan": 1e-4}
INEXACT.update({"FloorMod": 1e-4, "Mod": 1e-4, "TruncateMod": 1e-4})
NO_GRADIENT = {"Mod", "TruncateMod"}  # in TensorFlow
# What torch computes otherwise at an edge; docs/ops.md says so.
NAN_DIFFERS = {"Sign"}
EDGE_DIFFERS = {"Digamma", "Lgamma", "Erfinv", "Ndtri"}


def unary(op):
    name = next(iter(raw_arguments(op)))
    return lambda x: getattr(raw, op)(**{name: x})


def binary(op):
    first, second = list(raw_arguments(op))[:2]
    return lambda x, y: getattr(raw, op)(**{first: x, second: y})


def raw_arguments(op):
    return inspect.signature(getattr(raw, op)).parameters


def values(shapes, interval, dtype="float32"):
    low, high = (float(numpy.float32(end)) for end in interval)
    # TensorFlow's threads take subnormals for 0, some of the time; torch's do not.
    elements = strategies.floats(low, high, width=32, allow_subnormal=False)
    return arrays.arrays(dtype, shapes, elements=elements)


@pytest.mark.few(16)
@pytest.mark.parametrize("op", sorted(UNARY))
def test_a_function_of_one_number_is_tensorflows(op):
    program = Program(unary(op), [numpy.float32(0)], "none")

    @FEW
    @hypothesis.given(values(SHAPES, UNARY[op]))
    def check(x):
        program.check(x, rtol=INEXACT.get(op, 1e-5))

    check()


@pytest.mark.few(16)
@pytest.mark.parametrize("op", sorted(set(UNARY) - EDGE_DIFFERS))
def test_it_is_at_the_edges_too(op):
    edges = EDGES if op in NAN_DIFFERS else numpy.append(EDGES, numpy.nan)
    program = Program(unary(op), [numpy.float32(0)], "none")
    program.check(edges.astype("float32"), gradient=False)


@pytest.mark.parametrize("op", sorted(UNARY_INTEGERS))
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_function_of_one_integer_keeps_its_type(op, dtype):
    program = Program(unary(op), [numpy.zeros((), dtype)], "none")
    info = numpy.iinfo(dtype)
    program.check(numpy.array([0, 1, -1, 7, -7, info.max, info.min + 1], dtype))


@pytest.mark.few(8)
@pytest.mark.parametrize("op", sorted(BINARY))
def test_a_function_of_two_numbers_broadcasts_as_tensorflows(op):
    program = Program(binary(op), [numpy.float32(1)] * 2, "none")
    shapes = arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)

    @FEW
    @hypothesis.given(strategies.data(), shapes)
    def check(data, found):
        x, y = (data.draw(values(shape, BINARY[op])) for shape in found.input_shapes)
        atol, gradient = 1e-4 if op in INEXACT else 1e-6, op not in NO_GRADIENT
        program.check(x, y, rtol=INEXACT.get(op, 1e-5), atol=atol, gradient=gradient)

    check()


@pytest.mark.parametrize("op", sorted(set(BINARY) - {"Pow", "Atan2"}))
def test_of_two_edges_it_gives_what_tensorflow_gives(op):
    program = Program(binary(op), [numpy.float32(1)] * 2, "none")
    edges = numpy.append(EDGES, numpy.nan).astype("float32")
    with numpy.errstate(all="ignore"):
        program.check(edges[:, None], edges[None, :], gradient=False)


@pytest.mark.few(16)
@pytest.mark.parametrize("op", sorted({*BINARY_INTEGERS, *BITS}))
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_function_of_two_integers_keeps_their_type_and_wraps(op, dtype):
    program = Program(binary(op), [numpy.ones((), dtype)] * 2, "none")
    info = numpy.iinfo(dtype)
    x = numpy.array([0, 1, -1, 7, -7, 8, info.max, info.min + 1], dtype)
    y = numpy.array([1, -1, 3, -3, 2], dtype)
    if op not in (*DIVISIONS, *BITS):
        y = numpy.append(y, numpy.array([0, info.max, info.min], dtype))
    if op.endswith("Shift"):
        y = numpy.array([0, 1, 5], dtype)
    program.check(x[:, None], y[None, :])


@pytest.mark.parametrize("op", sorted(DIVISIONS))
def test_an_integer_divided_by_zero_is_an_error(op):
    program = Program(binary(op), [numpy.int32(1)] * 2, "none")
    with pytest.raises(RuntimeError):
        program.torch(torch.tensor(3), torch.tensor(0))


@pytest.mark.parametrize(
    "op", ["Add", "Mul", "Sub", "RealDiv", "Less", "Equal", "SquaredDifference"]
)
@FEW
@hypothesis.given(
    strategies.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False),
    strategies.booleans(),
)
def test_a_constant_operand_is_the_same_float32(op, constant, first):
    function = binary(op)
    constant = numpy.float32(constant)
    program = Program(
        (lambda x: function(constant, x)) if first else (lambda x: function(x, constant)),
        [numpy.float32(0)],
        "none",
    )
    x = numpy.append(numpy.array([0.1, -3.7, 1e20, 1.0], "float32"), constant)
    program.check(x, gradient=False, rtol=0, atol=0)


@pytest.mark.few(16)
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub", "Div", "FloorDiv", "FloorMod", "Less"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("first", [True, False])
def test_a_constant_operand_leaves_integers_their_type(op, dtype, first):
    function, constant = binary(op), numpy.array(100, dtype)
    if op in ("Div", "FloorDiv", "FloorMod") and dtype == "int8":
        return  # TensorFlow has no kernel for it
    program = Program(
        (lambda x: function(constant, x)) if first else (lambda x: function(x, constant)),
        [constant],
        "none",
    )
    program.check(numpy.array([1, 7, -7, 100, 127], dtype))


@pytest.mark.few(16)
@pytest.mark.parametrize(
    "source", ["float32", "float64", "int32", "int64", "bool", "uint8", "int8"]
)
@pytest.mark.parametrize(
    "target", ["float32", "float64", "float16", "int32", "int64", "bool", "int8"]
)
def test_a_cast_is_tensorflows(source, target):
    program = Program(lambda x: raw.Cast(x=x, DstT=target), [numpy.zeros((), source)], "none")
    x = numpy.array([0, 1, 2.7, 100.5, 16777217, 2**31 + 5, -1, -2.7, -100])
    small = source in ("uint8", "int8", "bool")
    limits = {"int8": 128, "int32": 2**31}
    if source.startswith("float") and target in limits:
        x = x[numpy.abs(x) < limits[target]]  # what does not fit is not defined
    if source == "float64" and target == "float16":
        x = x[numpy.abs(x) < 60000]
    kept = x[(x >= 0) & (x < 100)] if small else x
    program.check(kept.astype("int64").astype(source) if "int" in source else kept.astype(source))


@pytest.mark.parametrize(
    "between", ["bfloat16", "complex64", "complex128", "int16", "uint8", "uint16", "uint32"]
)
def test_a_cast_there_and_back_is_tensorflows(between):
    program = Program(
        lambda x: raw.Cast(x=raw.Cast(x=x, DstT=between), DstT="float32"),
        [numpy.float32(0)],
        "none",
    )
    program.check(numpy.array([0, 0.1, 1, 2.7, 100.5, 200], "float32"))


def test_a_cast_of_the_infinite_or_nan_to_an_integer_gives_the_lowest_one():
    program = Program(lambda x: raw.Cast(x=x, DstT="int32"), [numpy.float32(0)], "none")
    program.check(numpy.array([numpy.inf, -numpy.inf, numpy.nan, 3e9, -3e9], "float32"))


def test_the_first_operand_has_the_gradient_where_both_are_equal():
    for op in ("Maximum", "Minimum"):
        program = Program(binary(op), [numpy.float32(0)] * 2, "none")
        x = numpy.array([1, 2, 3], "float32")
        program.check(x, x[::-1].copy())


def test_nothing_overflows_in_softplus():
    program = Program(unary("Softplus"), [numpy.float64(0)], "none")
    program.check(numpy.linspace(-60, 60, 121), rtol=1e-12, atol=1e-15)
