"""The report says once what holds for several BatchNorms, and what became of UPDATE_OPS."""

import pytest

import graph_rewrite
from semisync.common.compat import tf
from tests.rewrite import zoo

pytestmark = pytest.mark.one_tensorflow

LAYERS = 3


def deep(towers=1, run=True, training=True):
    """The MetaGraphDef of a job with LAYERS BatchNorms in each of its towers, which share them.

    Args:
        run: whether the train op waits for UPDATE_OPS.
        training: of the BatchNorms.
    """
    with zoo.graph():
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op("checked"))
        y = []
        for number in range(towers):
            x = zoo.rows(name="x%d" % number)
            with tf.variable_scope("", reuse=number > 0), tf.name_scope("tower%d" % number):
                for layer in range(LAYERS):
                    x = zoo.layers.batch_normalization(x, training=training, name="bn%d" % layer)
            y.append(tf.reduce_mean(x))
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates if run else []):
            step = tf.train.get_or_create_global_step()
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(y), step)
        return tf.train.export_meta_graph()


def report(*args, **kwargs):
    return graph_rewrite.semi_synchronize(deep(*args, **kwargs), 2)[1]


def test_what_holds_for_several_batch_norms_is_said_once():
    (said,) = [sentence for sentence in report(training=False).left if "BatchNorm" in sentence]
    assert said == (
        "3 BatchNorms: nothing updates 'moving_mean' and 'moving_variance': training is False "
        "(bn0, bn1, bn2)"
    )


@pytest.mark.long
def test_copies_are_counted_beside_the_batch_norms_that_they_are_of():
    left = [each for each in report(towers=2).left if "BatchNorm" in each]
    assert len(left) == 1
    assert left[0].startswith("3 BatchNorms, 6 copies: 'tower")
    assert left[0].endswith("updates 'moving_mean' too (bn0, bn1, bn2)")


def test_update_ops_are_told_apart_by_who_runs_them():
    found = report()
    assert any("6 of 7 ops were taken out of UPDATE_OPS" in each for each in found.changes)
    (left,) = [each for each in found.left if "UPDATE_OPS" in each]
    assert left == "1 ops of UPDATE_OPS, which the chief runs once per global step (checked)"


def test_update_ops_that_nothing_waits_for_run_where_they_are_fetched():
    found = graph_rewrite.semi_synchronize(deep(run=False), 2, batch_norm="async")[1]
    (left,) = [each for each in found.left if "UPDATE_OPS" in each]
    assert left.startswith("7 ops of UPDATE_OPS, which run where they are fetched (checked, ")


def test_update_ops_that_stay_run_with_every_batch():
    found = graph_rewrite.semi_synchronize(deep(), 2, batch_norm="async")[1]
    left = [each for each in found.left if "UPDATE_OPS" in each]
    assert left[0].startswith("6 ops of UPDATE_OPS, which each worker still runs with every batch")
