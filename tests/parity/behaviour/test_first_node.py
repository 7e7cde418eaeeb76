"""Which node is named: the first whose difference goes on to an output."""

import pytest

from migrate.graph.metagraph import Graph, Node
from parity.behaviour.first_node import first_cause


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
        (["reorder"], "reorder"),
        ([], None),
    ],
)
def test_a_difference_that_ends_on_the_way_is_not_named(different, named):
    edges = [(name, 0) for name in ("reorder", "scatter", "product", "out")]
    found = first_cause(graph(), [(name, 0) for name in different], edges, {("out", 0)})
    assert found == (named and (named, 0))
