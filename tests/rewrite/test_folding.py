"""A number that a graph computes from constants is the one that its author wrote."""

import numpy
import pytest

from graph_rewrite.graph.constants import number
from graph_rewrite.graph.folding import folded, shortest
from graph_rewrite.graph.nodes import Nodes
from tests.support.graph_file import GraphFile

FLOAT = numpy.float32


def of(graph):
    """The folded number of {tensor: a constant, or (op, operands)}."""
    made = {one: value for one, value in graph.items() if isinstance(value, tuple)}
    return lambda start: folded(start, lambda one: made.get(one, ("", [])), graph.get)


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [("Sub", 1, 0.99, 0.01), ("Sub", 3, 1, 2), ("Mul", 0.5, 0.5, 0.25), ("RealDiv", 1, 0, None)],
)
def test_arithmetic_is_computed(op, left, right, result):
    assert of({"left": left, "right": right, "top": (op, ["left", "right"])})("top") == result


def test_a_choice_of_two_numbers_is_none_and_of_one_is_that():
    graph = {"one": 0.5, "two": 0.25, "same": ("Merge", ["one", "one"])}
    graph["other"] = ("Merge", ["one", "two"])
    assert of(graph)("same") == 0.5
    assert of(graph)("other") is None


def test_what_is_not_constant_makes_all_that_is_computed_from_it_unknown():
    assert of({"one": 0.5, "top": ("Add", ["one", "fed"])})("top") is None


def test_a_float32_is_the_decimal_number_that_was_written():
    assert shortest(FLOAT(0.01)) == 0.01
    assert shortest(numpy.int64(3)) == 3


def test_a_rewrite_knows_a_rate_that_is_a_product():
    graph = GraphFile()
    rate = graph.add(
        "rate", "Mul", graph.constant("a", FLOAT(0.5)), graph.constant("b", FLOAT(0.5))
    )
    assert number(Nodes.of(graph.graph_def), rate) == 0.25
