"""BatchNorm's statistics move as each step of TensorFlow moves them, however that is written."""

import pytest
import tensorflow.compat.v1 as tf

import graph_rewrite
from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps
from semisync.common.errors import BadInput
from tests.model.training.graphs import saved, steps_of
from tests.support.control_flow import control_flow

_ROUNDING = 1e-4  # gradients through the norm of three rows
_MOVES = {
    "assign_sub": lambda old, new: tf.assign_sub(old, (old - new) * 0.1),
    "assign_add": lambda old, new: tf.assign_add(old, 0.1 * (new - old)),
    "kept": lambda old, new: tf.assign(old, old * 0.9 + new * 0.1),
    "from": lambda old, new: tf.assign(old, old - (old - new) * 0.1),
    "towards": lambda old, new: tf.assign(old, old + (new - old) * 0.1),
    "towards, last": lambda old, new: tf.assign(old, (new - old) * 0.1 + old),
    "a product": lambda old, new: tf.assign_sub(old, (old - new) * (tf.constant(0.2) * 0.5)),
    "added / 10": lambda old, new: tf.assign_add(old, (new - old) / 10.0),
    "subtracted / 10": lambda old, new: tf.assign_sub(old, (old - new) / 10.0),
    "assigned / 10": lambda old, new: tf.assign(old, old + (new - old) / 10.0),
}


def _normalised(x, move, training):
    """x, normalised by the batch or, where `training` is fed so, by what `move` keeps."""
    with tf.variable_scope("norm"):
        scale, offset = (tf.get_variable(name, [2]) for name in ("gamma", "beta"))
        moving = [
            tf.get_variable(f"moving_{name}", [2], initializer=start, trainable=False)
            for name, start in (("mean", tf.zeros_initializer), ("variance", tf.ones_initializer))
        ]
    found = tf.nn.moments(x, [0])
    moves = [move(old, new) for old, new in zip(moving, found)]
    mean, variance = tf.cond(
        training, lambda: tuple(found), lambda: tuple(map(tf.identity, moving))
    )
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3), moves


@pytest.mark.long
@pytest.mark.few(6)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("form", _MOVES)
def test_every_form_that_the_finder_knows_moves_statistics(form, resource, tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(0)
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        training = tf.placeholder_with_default(False, [], name="is_training")
        with tf.variable_scope("net", use_resource=resource):
            net, moves = _normalised(x, _MOVES[form], training)
            loss = tf.reduce_mean(tf.square(tf.layers.dense(net, 1)[:, 0] - y))
        with tf.control_dependencies([tf.group(*moves)]):
            train_op = tf.train.AdagradOptimizer(0.1).minimize(loss)
        assert [one.momentum for one in graph_rewrite.find_batch_norms(graph)] == [
            pytest.approx(0.9)
        ]
        prefix, steps = steps_of(session, tmp_path, loss, train_op, {training: True})
    trained = build_training(prefix)
    assert "self.net_norm(" in trained.module.source
    assert compare_steps(trained, steps, _ROUNDING).exceeded is None


# Adam's powers wait for its steps, and these for the gradients of the loop.
@pytest.mark.long
@pytest.mark.parametrize(
    "optimizer",
    [lambda: tf.train.AdagradOptimizer(0.01), lambda: tf.train.AdamOptimizer(0.01, epsilon=1e-3)],
    ids=["Adagrad", "Adam"],
)
def test_a_recurrent_net_whose_gradients_wait_for_the_statistics_of_what_it_gives(
    optimizer, tmp_path
):
    with tf.Graph().as_default(), tf.Session() as session, control_flow(1):
        tf.set_random_seed(0)
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x[:, :, None], dtype=tf.float32)
        net = tf.layers.batch_normalization(state, training=True, momentum=0.9)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(net, 1)[:, 0] - y))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer().minimize(loss)
        prefix, steps = steps_of(session, tmp_path, loss, train_op)
    trained = build_training(prefix)
    assert compare_steps(trained, steps, _ROUNDING).exceeded is None


def _beside(other):
    """(loss, training op) of a net that has `other` beside it, of x, which each step moves."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    net = tf.layers.batch_normalization(x, training=True, momentum=0.9, name="norm")
    loss = tf.reduce_mean(tf.square(tf.layers.dense(net, 1)[:, 0] - y))
    tf.identity(other(x), name="other")
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def test_statistics_that_the_loss_does_not_depend_on_are_named_or_move_with_an_output(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        loss, train_op = _beside(
            lambda x: tf.layers.batch_normalization(2.0 * x, training=True, name="apart")
        )
        prefix, steps = steps_of(session, tmp_path, loss, train_op)
    left_out = build_training(prefix).optimizer.left_out
    assert left_out == ["apart/moving_mean", "apart/moving_variance"]
    trained = build_training(prefix, output="other")
    assert trained.optimizer.left_out == []
    trained.module.register_forward_hook(lambda module, given, results: results[0])
    report = compare_steps(trained, steps, _ROUNDING)
    assert report.exceeded is None
    assert report.compared["statistic"] == 4


def test_a_batch_norm_that_moves_by_a_batch_that_the_loss_lacks_is_refused(tmp_path):
    def build():
        return _beside(
            lambda x: tf.layers.batch_normalization(
                2.0 * x, training=True, momentum=0.9, name="norm", reuse=True
            )
        )[1]

    prefix = saved(tmp_path, build)
    with pytest.raises(BadInput, match="moves 'norm/moving_mean' by .* too, towards 'norm_1/mom"):
        build_training(prefix)
    trained = build_training(prefix, output="other")
    assert trained.module.source.count("self.norm(") == 2
