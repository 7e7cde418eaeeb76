"""Which node is named: the first whose difference goes on to an output."""

import pytest

from migrate.behaviour.first_node import first_cause
from migrate.behaviour.report import Place
from migrate.graph.metagraph import Graph, Node

PLACE = Place("rows.csv", None, (), "1", "2")


def graph():
    """reorder -> scatter -> hidden -> product -> out, where nothing tells the value of `hidden`."""
    names = ["reorder", "scatter", "hidden", "product", "out"]
    before = [(), *(((name, 0),) for name in names)]
    return Graph("", {name: Node(name, "", inputs, {}) for name, inputs in zip(names, before)})


@pytest.mark.parametrize(
    ("different", "named"),
    [
        (["reorder", "product", "out"], "product"),  # equal indices in another order, then summed
        (["scatter", "product", "out"], "scatter"),
        (["reorder", "scatter", "product", "out"], "reorder"),
        (["reorder"], None),
        ([], None),
    ],
)
def test_a_difference_that_ends_on_the_way_is_not_named(different, named):
    names = ("reorder", "scatter", "product", "out")
    compared = {(name, 0): PLACE if name in different else None for name in names}
    found = first_cause(graph(), compared, {("out", 0)})
    assert found == (named and ((named, 0), PLACE))


def test_what_a_side_does_not_tell_hides_no_cause():
    compared = {("reorder", 0): PLACE, ("product", 0): PLACE, ("out", 0): PLACE}
    assert first_cause(graph(), compared, {("out", 0)}) == (("reorder", 0), PLACE)
