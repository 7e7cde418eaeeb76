"""Updates inside a branch of control flow 2, which is a function, share their batch's fate too."""

import numpy as np
import pytest

import graph_rewrite
import semisync
from graph_rewrite.batch_norm.updates import all_updates
from graph_rewrite.edit.detach import detach, disconnect
from graph_rewrite.graph.view import View
from semisync.common.compat import tf
from tests.rewrite import zoo
from tests.wrap.one_process import PATIENCE

WIDTH = 4


def by_hand(x, training):
    """The branch for training updates, and hands the statistics out."""
    moving_mean, moving_variance = zoo.moving()
    mean, variance = tf.nn.moments(x, [0])

    def update():
        updates = [
            tf.assign(moving, moving * 0.9 + now * 0.1)
            for moving, now in ((moving_mean, mean), (moving_variance, variance))
        ]
        with tf.control_dependencies(updates):
            return tf.identity(mean), tf.identity(variance)

    def read():
        return moving_mean.read_value(), moving_variance.read_value()

    statistics = tf.cond(training, update, read)
    return tf.nn.batch_normalization(x, *statistics, None, zoo.variable("gamma", 1.0), 1e-3)


def layer(x, training):
    return zoo.layers.batch_normalization(x, momentum=0.9, training=training, name="bn")


def trained(build, feeds, batches_per_step=None, rewrite=False):
    """The moving mean and variance after these batches, of a job with control flow 2."""
    options = {"batches_per_step": batches_per_step, "paced": True, "batch_norm": "aggregate-once"}
    hooks = []
    with zoo.graph(control_flow=2) as graph:
        x, training = zoo.rows(WIDTH), zoo.predicate()
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        if batches_per_step and not rewrite:
            optimizer = semisync.GlobalBatchOptimizer(optimizer, **options)
        kernel = tf.get_variable("kernel", [WIDTH, 1])
        loss = tf.reduce_mean(tf.matmul(build(x, training), kernel) ** 2)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.get_or_create_global_step()
            train_op = optimizer.minimize(loss, step, [kernel]).name
        if hasattr(optimizer, "make_session_run_hook"):
            hooks = [optimizer.make_session_run_hook(True, patience=PATIENCE)]
        meta = tf.train.export_meta_graph()
    if rewrite:
        meta, _ = graph_rewrite.semi_synchronize(meta, **options)
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(meta)
            hooks = [semisync.restore_hook(True, patience=PATIENCE)]
    with graph.as_default(), tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        for rows, is_training in feeds:
            session.run(train_op, {x.name: rows, training.name: is_training})
        return session.run([v for v in tf.global_variables() if "moving" in v.name])


@pytest.mark.parametrize("rewrite", [False, True], ids=["wrapped", "rewritten"])
@pytest.mark.parametrize("build", [by_hand, layer])
@pytest.mark.few(1)
def test_statistics_that_a_branch_updates(build, rewrite):
    random = np.random.RandomState(0)
    parts = [random.randn(size, WIDTH) * size + size for size in (4, 7, 3)]
    aside = random.randn(3, WIDTH)
    expected = trained(build, [(np.concatenate(parts), True)])
    feeds = [(part, True) for part in parts] + [(aside, False)]
    found = trained(build, feeds, batches_per_step=4, rewrite=rewrite)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("live", [True, False])
def test_an_update_of_a_function_in_a_function_is_taken_out_of_that_call_alone(live):
    with zoo.graph(control_flow=2) as graph:
        yes = tf.placeholder_with_default(True, [])
        seen, others = zoo.variable("seen"), zoo.variable("others")

        def count(variable):
            def inner():
                with tf.control_dependencies([variable.assign_add(tf.ones([WIDTH]))]):
                    return tf.constant(1.0)

            return tf.cond(yes, lambda: tf.cond(yes, inner, lambda: 2.0), lambda: 3.0)

        both = [count(seen).name, count(others).name]
        updates = [u.op for u in all_updates(View(graph)) if u.variable == "seen"]
        if live:
            disconnect(graph, updates)
        meta = tf.train.export_meta_graph()
        if not live:
            detach(meta, View(meta).nodes, updates)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        assert session.run(both) == [1.0, 1.0]
        found = session.run({v.op.name: v for v in tf.global_variables()})
    np.testing.assert_array_equal(found["seen"], np.zeros(WIDTH))
    np.testing.assert_array_equal(found["others"], np.ones(WIDTH))


def test_a_batch_norm_inside_a_function_that_is_called_is_left_alone():
    """As tf.function makes it, without a condition."""
    with zoo.graph(control_flow=2) as graph:
        x, moving = zoo.rows(WIDTH), zoo.moving()

        def norm(x):
            mean, variance = tf.nn.moments(x, [0])
            for variable, now in zip(moving, (mean, variance)):
                variable.assign_sub((variable - now) * 0.1)
            return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)

        call = tf.wrap_function(norm, [tf.TensorSpec([None, WIDTH])])
        kernel = tf.get_variable("kernel", [WIDTH, 1])
        loss = tf.reduce_mean(tf.matmul(call(x), kernel))
        step = tf.train.get_or_create_global_step()
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, step, [kernel])
        meta = tf.train.export_meta_graph()
    (bn,) = graph_rewrite.find_batch_norms(graph)
    assert (bn.input, len(bn.updates)) == ("x", 2)
    assert bn.left_alone == "its statistic '{}' is made inside a function".format(bn.mean)
    _, report = graph_rewrite.semi_synchronize(meta, 2)
    assert any("is made inside a function" in sentence for sentence in report.left)
    assert report.at_once == ["bn/moving_mean", "bn/moving_variance"]
