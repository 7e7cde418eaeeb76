"""Graphs that are long, circular, or of functions that call each other, end; see tests/model's."""

import re

import numpy as np
import pytest

import graph_rewrite
from graph_rewrite.graph.constants import array, number
from graph_rewrite.graph.nodes import Nodes
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.support.graph_file import GraphFile, called

FLOAT = np.float32
LENGTH = 3000


def test_functions_of_which_each_calls_the_next_twice_are_refused():
    graph = GraphFile()
    graph.function("f39", "end:y:0", ("end", "Sigmoid", ["a"], {"T": FLOAT}))
    for k in range(39):
        one = ("one", "PartitionedCall", ["a"], called("f{}".format(k + 1)))
        two = ("two", "PartitionedCall", ["one:output:0"], called("f{}".format(k + 1)))
        graph.function("f{}".format(k), "two:output:0", one, two)
    graph.call("call", "f0", "x")
    with pytest.raises(BadInput, match="functions call each other to more than [0-9]+ ops"):
        graph_rewrite.find_batch_norms(graph.graph_def)


def test_a_number_is_found_however_often_it_is_handed_on():
    graph = GraphFile()
    last = graph.constant("rate", FLOAT(0.1))
    for k in range(LENGTH):
        last = graph.add("same_{}".format(k), "Identity", last, T=FLOAT)
    nodes = Nodes.of(graph.graph_def)
    assert number(nodes, last) == 0.1
    assert array(nodes, last) == FLOAT(0.1)


def test_a_number_is_found_once_of_differences_of_differences():
    graph = GraphFile()
    last = graph.constant("rate", FLOAT(0.5))
    for k in range(LENGTH):
        last = graph.add("sub_{}".format(k), "Sub", last, last, T=FLOAT)
    assert number(Nodes.of(graph.graph_def), last) == 0


def test_a_number_that_is_computed_from_itself_is_none():
    graph = GraphFile()
    graph.add("one", "Sub", "two", "two", T=FLOAT)
    graph.add("two", "Sub", "one", "one", T=FLOAT)
    assert number(Nodes.of(graph.graph_def), "one") is None


def test_what_hands_on_itself_is_damaged():
    graph = GraphFile()
    graph.add("one", "Identity", "two", T=FLOAT)
    graph.add("two", "Identity", "one", T=FLOAT)
    with pytest.raises(BadInput, match="is computed from itself; the graph is damaged"):
        array(Nodes.of(graph.graph_def), "one")


def test_one_value_for_all_is_no_array_of_terabytes():
    graph = GraphFile()
    graph.spread("big", FLOAT(1), 1 << 40)
    assert array(Nodes.of(graph.graph_def), "big") is None


def calls_itself(graph):
    graph.function("f", "again:output:0", ("again", "PartitionedCall", ["a"], called("f")))
    graph.call("call", "f", "x")


def call_each_other(graph):
    graph.function("f2000", "end:y:0", ("end", "Sigmoid", ["a"], {"T": FLOAT}))
    for k in range(2000):
        one = ("one", "PartitionedCall", ["a"], called("f{}".format(k + 1)))
        graph.function("f{}".format(k), "one:output:0", one)
    graph.call("call", "f0", "x")


def unpack(graph):
    graph.add("big", "Unpack", "x", T=FLOAT, num=10**9, axis=1)


def split(graph):
    graph.constant("axis", np.int32(1))
    graph.add("big", "Split", "axis", "x", T=FLOAT, num_split=10**9)


DEADLY = {
    calls_itself: "the graph's functions: 'f' is computed from itself; the graph is damaged",
    call_each_other: "calls another, which calls another, 257 deep: expected at most 256",
    unpack: "big (Unpack) has 1000000000 outputs, expected at most 65536",
    split: "big (Split) has 1000000000 outputs, expected at most 65536",
}


@pytest.mark.parametrize("build", DEADLY, ids=lambda build: build.__name__)
def test_what_tensorflow_does_not_survive_is_refused_before_it_is_asked(build):
    graph = GraphFile()
    build(graph)
    meta = tf.MetaGraphDef(graph_def=graph.graph_def)
    with pytest.raises(BadInput, match=re.escape(DEADLY[build])):
        graph_rewrite.semi_synchronize(meta, batches_per_step=2)


@pytest.mark.long
def test_a_train_op_may_be_a_group_of_a_group_of_a_group():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.get_variable("w", [3, 1], use_resource=False)
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        last = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
        for _ in range(LENGTH):
            with tf.control_dependencies([last]):
                last = tf.no_op()
        meta = tf.train.export_meta_graph()
    _, report = graph_rewrite.semi_synchronize(meta, batches_per_step=2, train_op=last.name)
    assert report.stand_ins
