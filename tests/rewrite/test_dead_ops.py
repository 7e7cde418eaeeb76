"""Nothing waits for what a withdrawn update leaves with nothing to do; effects remain."""

import pytest

from graph_rewrite.batch_norm.updates import all_updates
from graph_rewrite.edit.detach import detach, disconnect
from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.view import View
from semisync.common.compat import tf
from tests.rewrite import zoo

WIDTH = 4


def trained_after(otherwise):
    """A graph with an update in a tf.cond, for whose value a train op waits.

    Args:
        otherwise: function (moving, counter) -> what the other branch of the tf.cond gives.

    Returns:
        The predicate, the counter, the op of the tf.cond's value, the train op.
    """
    moving, counter = zoo.variable("moving"), zoo.variable("counter")
    predicate = tf.placeholder_with_default(True, [])

    def update():
        with tf.control_dependencies([moving.assign_sub(tf.ones([WIDTH]))]):
            return tf.identity(moving.read_value())

    value = tf.cond(predicate, update, lambda: otherwise(moving, counter))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, value)
    with tf.control_dependencies([value]):
        train = tf.no_op("train")
    return predicate, counter, value.op, train


def counted(moving, counter):
    with tf.control_dependencies([counter.assign_add(tf.ones([WIDTH]))]):
        return tf.identity(moving.read_value())


def without_the_update(graph, live):
    """A MetaGraphDef of the graph without what updates the variable "moving"."""
    names = [u.op for u in all_updates(View(graph)) if u.variable == "moving"]
    assert names
    if live:
        disconnect(graph, names)
        return tf.train.export_meta_graph()
    meta = tf.train.export_meta_graph()
    detach(meta, View(meta).nodes, names)
    return meta


@pytest.mark.parametrize("live", [True, False], ids=["live", "exported"])
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_nothing_waits_for_what_hands_on_a_withdrawn_update(resource, live):
    with zoo.graph(resource=resource) as graph:
        _, _, value, train = trained_after(lambda moving, counter: moving.read_value())
        assert train.control_inputs == [value]
        meta = without_the_update(graph, live)
    nodes = Nodes.of(meta)
    assert nodes.control_inputs(nodes[train.name]) == ()
    assert tf.GraphKeys.UPDATE_OPS not in meta.collection_def


@pytest.mark.parametrize("live", [True, False], ids=["live", "exported"])
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_what_the_other_branch_does_is_waited_for_as_before(resource, live):
    with zoo.graph(resource=resource) as graph:
        predicate, counter, value, train = trained_after(counted)
        meta = without_the_update(graph, live)
    nodes = Nodes.of(meta)
    assert nodes.control_inputs(nodes[train.name]) == (value.name,)
    with tf.Graph().as_default() as imported, tf.Session() as session:
        tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        for yes in (True, False, False):
            session.run(train.name, {predicate.name: yes})
        reads = session.run({v.op.name: v for v in imported.get_collection("variables")})
    assert reads["counter"].tolist() == [2.0] * WIDTH
    assert reads["moving"].tolist() == [0.0] * WIDTH


@pytest.mark.parametrize("live", [True, False], ids=["live", "exported"])
def test_a_value_that_somebody_takes_stays_and_is_the_variable(live):
    with zoo.graph() as graph:
        _, _, value, _ = trained_after(lambda moving, counter: moving.read_value())
        taken = tf.add(value.outputs[0], 5.0, name="taken")
        meta = without_the_update(graph, live)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        assert session.run(taken.name).tolist() == [5.0] * WIDTH


@pytest.mark.parametrize("live", [True, False], ids=["live", "exported"])
def test_a_value_that_a_function_takes_stays(live):
    with zoo.graph(control_flow=2) as graph:
        moving, predicate = zoo.variable("moving"), tf.placeholder_with_default(True, [])
        with tf.control_dependencies([moving.assign_sub(tf.ones([WIDTH]))]):
            value = tf.identity(moving.read_value())
        taken = tf.cond(predicate, lambda: value + 5.0, lambda: value)
        with tf.control_dependencies([value]):
            train = tf.no_op("train")
        meta = without_the_update(graph, live)
    nodes = Nodes.of(meta)
    assert nodes.control_inputs(nodes[train.name]) == (value.op.name,)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            assert session.run(taken.name).tolist() == [5.0] * WIDTH


@pytest.mark.parametrize("live", [True, False], ids=["live", "exported"])
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_what_has_nothing_to_do_updates_nothing_where_it_is_fetched(resource, live):
    with zoo.graph(resource=resource) as graph:
        _, _, value, _ = trained_after(lambda moving, counter: moving.read_value())
        meta = without_the_update(graph, live)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            assert session.run(value.outputs[0].name).tolist() == [0.0] * WIDTH
