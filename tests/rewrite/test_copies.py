"""Copies of a layer that share its variables: only one of them has its updates run."""

import pytest

import graph_rewrite
from graph_rewrite import find_batch_norms
from semisync.common.compat import tf
from tests.rewrite import zoo


def towers():
    """As a job with two GPUs: the updates of the first tower run before the training."""
    for number in range(2):
        with tf.variable_scope("", reuse=number > 0), tf.name_scope("tower_%d" % number) as scope:
            y = zoo.layers.batch_normalization(zoo.rows(), training=True, name="bn")
            if number == 0:
                updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)
    return y, updates


def computed_again():
    """As gradient checkpointing does."""
    x = zoo.rows()
    y = zoo.layers.batch_normalization(x, training=True, name="bn")
    updates = list(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.variable_scope("", reuse=True):
        y += zoo.layers.batch_normalization(tf.stop_gradient(x), training=True, name="bn")
    return y, updates


def keras_model():
    """A model is built on an input of its own, then called on the job's."""
    inner = zoo.keras.Input((4,), name="inner")
    layer = zoo.keras.layers.BatchNormalization(name="bn")
    model = zoo.keras.Model(inner, layer(inner, training=True))
    first = len(layer.updates)
    return model(zoo.rows()), layer.updates[first:]


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [towers, computed_again, keras_model])
def test_the_one_that_is_updated_shares_its_statistics(build):
    with zoo.graph(resource=build is keras_model) as graph:
        y, updates = build()
        with tf.control_dependencies(updates):
            step = tf.train.get_or_create_global_step()
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y), step)
        meta = tf.train.export_meta_graph()
    found = find_batch_norms(meta)
    assert [bn.moving_mean for bn in found] == ["bn/moving_mean"] * 2
    assert [bn.finding for bn in found] == ["", ""]
    idle, runs = sorted(found, key=lambda bn: bn.left_alone == "")
    assert runs.left_alone == ""
    assert idle.left_alone == "'{}' updates 'bn/moving_mean' too".format(runs.op)
    _, report = graph_rewrite.semi_synchronize(meta, 2)
    assert "the moving statistics of 1 BatchNorm share" in str(report)
    # Of a graph that may still grow nobody can say which of them runs.
    assert all(bn.left_alone for bn in find_batch_norms(graph))
