"""The pattern language: what matches, and what it binds."""

import pytest
from hypothesis import given as supposing
from hypothesis import settings
from hypothesis import strategies as st

from graph_rewrite import Nodes, match
from graph_rewrite.graph.ops import CARRY, JOIN, READ
from graph_rewrite.patterns.language import both, given, op, via, ways
from graph_rewrite.patterns.moving_average import MOVING_AVERAGE
from semisync.common.compat import tf


def nodes(*rows):
    """Nodes from strings, "name Op input input ..."."""
    return Nodes([tf.NodeDef(name=r[0], op=r[1], input=r[2:]) for r in map(str.split, rows)])


AVERAGE = (
    "v VariableV2",
    "v/read Identity v",
    "x Placeholder",
    "rate Const",
    "sub Sub v/read x",
    "mul Mul sub rate",
    "moved AssignSub v mul",
)


def test_a_match_binds_the_names_of_tensors():
    average = match(MOVING_AVERAGE, nodes(*AVERAGE), "moved")
    assert average.bindings == {"variable": "v", "source": "x", "rate": "rate"}
    assert average.root == "moved"
    assert average.ops == ("moved", "v", "mul", "sub", "v")


def test_swapped_inputs_match_where_the_pattern_says_so():
    swapped = [row.replace("Mul sub rate", "Mul rate sub") for row in AVERAGE]
    assert match(MOVING_AVERAGE, nodes(*swapped), "moved")["rate"] == "rate"
    swapped = [row.replace("Sub v/read x", "Sub x v/read") for row in AVERAGE]
    assert not match(MOVING_AVERAGE, nodes(*swapped), "moved")


@pytest.mark.parametrize(
    "change",
    [
        ("mul Mul sub rate", "mul AddV2 sub rate"),
        ("sub Sub v/read x", "sub Sub w x"),
        ("sub Sub v/read x", "sub Sub other/read x"),
        ("moved AssignSub v mul", "moved NoOp"),
        ("moved AssignSub v mul", "moved AssignSub lost mul"),
    ],
)
def test_what_differs_in_one_op_does_not_match(change):
    more = ("w Placeholder", "other VariableV2", "other/read Identity other")
    changed = nodes(*(row.replace(*change) for row in AVERAGE + more))
    assert match(MOVING_AVERAGE, changed, "moved") is None


def test_an_attribute_and_an_output_are_part_of_the_pattern():
    graph = nodes("x Placeholder", "f FusedBatchNorm x x x x x", "y Identity f:1")
    graph["f"].attr["is_training"].b = True
    trains = op("FusedBatchNorm", "x", output=1, is_training=True)
    assert match(op("Identity", trains), graph, "y")["x"] == "x"
    assert not match(op("Identity", op("FusedBatchNorm", is_training=False)), graph, "y")
    assert not match(op("Identity", op("FusedBatchNorm", output=0)), graph, "y")


def test_hops_are_passed_both_ways_of_a_condition():
    graph = nodes(
        "v VarHandleOp", "p Placeholder", "s Switch v p", "r ReadVariableOp s:1",
        "x Placeholder", "m Merge x r", "y Neg m",
    )  # fmt: skip
    pattern = op("Neg", via(CARRY | READ | JOIN, op("VarHandleOp", name="v")))
    assert match(pattern, graph, "y")["v"] == "v"
    assert not match(op("Neg", via(CARRY | READ, op("VarHandleOp"))), graph, "y")


def test_a_circle_of_hops_ends():
    graph = nodes("a Merge b n", "n NextIteration a", "b Identity a", "y Neg a")
    assert not match(op("Neg", via(CARRY | JOIN, op("Const"))), graph, "y")


def test_a_name_and_what_it_stands_for_are_bound_together():
    graph = nodes("x Placeholder", "r Rsqrt x", "a Mul r r", "b Mul r x")
    pattern = op("Mul", both("factor", op("Rsqrt", "x")), "factor")
    assert match(pattern, graph, "a").bindings == {"factor": "r", "x": "x"}
    assert not match(pattern, graph, "b")


def test_a_condition_decides_whether_a_pattern_matches():
    graph = nodes("x Placeholder", "y Neg x")
    for holds in (True, False):
        pattern = given(op("Neg", "x"), lambda nodes, bound, holds=holds: holds)
        assert bool(match(pattern, graph, "y")) is holds


@st.composite
def products(draw):
    """(nodes, leaves): a tree of products over distinct leaves, each product either way round."""
    leaves = ["leaf{}".format(number) for number in range(draw(st.integers(2, 5)))]
    rows, made = [leaf + " Placeholder" for leaf in leaves], leaves[0]
    for number, leaf in enumerate(leaves[1:]):
        for hop in range(draw(st.integers(0, 2))):
            rows.append("hop{}_{} Identity {}".format(number, hop, made))
            made = "hop{}_{}".format(number, hop)
        pair = draw(st.permutations([made, leaf]))
        made = "product{}".format(number)
        rows.append("{} Mul {} {}".format(made, *pair))
    return nodes(*draw(st.permutations(rows))), leaves, made


def product(leaves):
    pattern = op("Placeholder", name=leaves[0])
    for leaf in leaves[1:]:
        pattern = op("Mul", via(CARRY, pattern), op("Placeholder", name=leaf), swap=True)
    return pattern


@settings(deadline=None)
@supposing(products())
def test_neither_the_order_of_inputs_and_nodes_nor_hops_matter(drawn):
    graph, leaves, root = drawn
    names = ["name{}".format(number) for number in range(len(leaves))]
    bound = [sorted(way.bindings.values()) for way in ways(product(names), graph, root)]
    assert bound
    assert all(names == sorted(leaves) for names in bound)
    assert not match(product(names + ["more"]), graph, root)


@settings(deadline=None)
@supposing(st.sampled_from(AVERAGE[4:]), st.sampled_from(["Neg", "NoOp", "Floor"]))
def test_any_op_in_the_place_of_another_does_not_match(row, other):
    kind = row.split()[1]
    changed = [r.replace(" {} ".format(kind), " {} ".format(other)) for r in AVERAGE[4:]]
    assert not match(MOVING_AVERAGE, nodes(*AVERAGE[:4], *changed), "moved")
