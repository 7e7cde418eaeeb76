"""BatchNorms whose normalisation lies in a loop are found, and left alone."""

import pytest

import graph_rewrite
from graph_rewrite import find_batch_norms
from semisync.common.compat import tf
from tests.rewrite import zoo

pytestmark = pytest.mark.one_tensorflow

if zoo.TF2:
    from tf_keras.api._v1.keras.__internal__.legacy.rnn_cell import RNNCell
else:
    RNNCell = tf.nn.rnn_cell.RNNCell


class Cell(RNNCell):
    """A recurrent cell whose BatchNorm is a layer, or is made by hand."""

    state_size = output_size = 4

    def __init__(self, normalise):
        super(Cell, self).__init__()
        self._normalise = normalise

    def __call__(self, inputs, state, scope=None):
        made = tf.matmul(tf.concat([inputs, state], 1), tf.get_variable("w", [7, 4]))
        output = tf.tanh(self._normalise(made))
        return output, output


def with_a_layer():
    layer = zoo.layers.BatchNormalization(name="bn")
    return lambda x: layer(x, training=True)


def by_the_batch_alone():
    return lambda x: zoo.normalise(x, *tf.nn.moments(x, [0]))


def by_what_was_trained_before():
    mean, variance = zoo.moving()
    return lambda x: zoo.normalise(x, mean, variance)


@pytest.mark.parametrize("control_flow", [1, 2])
@pytest.mark.parametrize(
    "normalise", [with_a_layer, by_the_batch_alone, by_what_was_trained_before]
)
@pytest.mark.parametrize("lengths", [None, [6, 2, 3, 4, 5]], ids=["whole", "of some length"])
@pytest.mark.few(1)
def test_a_recurrent_cells_batch_norm_is_left_alone(control_flow, normalise, lengths):
    with zoo.graph(control_flow):
        cell = Cell(normalise())
        x = tf.placeholder(tf.float32, [5, 6, 3])
        y, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, sequence_length=lengths)
        step = tf.train.get_or_create_global_step()
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y), step)
        meta = tf.train.export_meta_graph()
    (bn,) = find_batch_norms(meta)
    assert bn.left_alone == "it lies in a loop"
    _, report = graph_rewrite.semi_synchronize(meta, 2)
    assert any(each.startswith("1 BatchNorm: it lies in a loop (") for each in report.left)


@pytest.mark.parametrize("control_flow", [1, 2])
def test_one_that_normalises_in_a_loop_by_statistics_from_outside_shares_them(control_flow):
    with zoo.graph(control_flow):
        x = zoo.rows()
        statistics, moving = tf.nn.moments(x, [0]), zoo.moving()
        updates = [tf.assign_sub(v, 0.1 * (v - each)) for v, each in zip(moving, statistics)]

        def body(turn, y):
            return turn + 1, zoo.normalise(x, *statistics) + y

        _, y = tf.while_loop(lambda turn, _: turn < 3, body, [tf.constant(0), tf.zeros_like(x)])
        with tf.control_dependencies(updates):
            step = tf.train.get_or_create_global_step()
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y), step)
        (bn,) = find_batch_norms(tf.train.export_meta_graph())
    assert bn.shareable
