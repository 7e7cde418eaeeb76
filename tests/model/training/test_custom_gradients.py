"""A gradient that the job defines itself is carried over where torch's is the same, and is refused
elsewhere. Whole jobs with tf.nn.swish, which has one, are those of `write_steps`."""

import pytest
import tensorflow.compat.v1 as tf

from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps
from semisync.common.errors import BadInput
from tests.model.training.graphs import saved, steps_of


@tf.custom_gradient
def _scaled(x, weight):
    return x * weight, lambda dy: (dy * weight, tf.reduce_sum(dy * x, 0))


@tf.custom_gradient
def _unit(x):
    length = tf.norm(x, axis=1, keepdims=True)

    def gradient(dy):
        along = tf.reduce_sum(x * dy, 1, keepdims=True)
        return dy / length - x * along / length**3

    return x / length, gradient


@tf.custom_gradient
def _cut_off(x):
    inside = tf.cast(tf.abs(x) <= 1.0, tf.float32)
    return tf.clip_by_value(x, -1.0, 1.0), lambda dy: dy * inside


_SAME = {
    "swish": tf.nn.swish,
    "swish of swish": lambda x: tf.nn.swish(2.0 * tf.nn.swish(x)),
    "scaled": lambda x: _scaled(x, tf.get_variable("weight", initializer=[0.5, -1.5, 2.0])),
    "unit": _unit,
    "cut off": _cut_off,
}


@tf.custom_gradient
def _reversed(x):
    return tf.identity(x), lambda dy: -dy


@tf.custom_gradient
def _tenth(x):
    return tf.identity(x), lambda dy: 0.1 * dy


@tf.custom_gradient
def _clipped(x):
    return tf.identity(x), lambda dy: tf.clip_by_norm(dy, 100.0)


@tf.custom_gradient
def _straight(x):
    return tf.round(x), lambda dy: dy


@tf.custom_gradient
def _straight_within(x):
    inside = tf.cast(tf.abs(x) <= 1.0, tf.float32)
    return tf.sign(x), lambda dy: dy * inside


@tf.custom_gradient
def _stable(x):
    """Its formula's derivative is not a number at 100."""
    power = tf.exp(x)
    return tf.log(1.0 + power), lambda dy: dy * (1.0 - 1.0 / (1.0 + power))


@tf.custom_gradient
def _two(x):
    return (x * 2.0, x * 3.0), lambda of_first, of_second: of_first * 2.0 + of_second * 3.0


def _by(factor):
    @tf.custom_gradient
    def times(x):
        return tf.identity(x), lambda dy: factor * dy

    return times


@tf.RegisterGradient("Reversed")
def _reverse(_, gradient):
    return -gradient


def _overridden(x):
    with tf.get_default_graph().gradient_override_map({"Identity": "Reversed"}):
        return tf.identity(x)


_DIFFERS = "torch's, the formula's derivative, is another at values of about "
_UNTOLD = "whether it is torch's cannot be told: "
_REFUSED = {
    "reversed": (_reversed, _DIFFERS),
    "tenth": (_tenth, _DIFFERS),
    "clipped": (_clipped, _DIFFERS),
    "straight": (_straight, _UNTOLD + "the graph has no ops of it"),
    "straight within": (_straight_within, _DIFFERS),
    "stable": (_stable, _DIFFERS + "100"),
    "overridden": (_overridden, _DIFFERS),
    "two": (lambda x: tf.math.add_n(_two(x)), _UNTOLD + "it has several results"),
    "fed": (
        lambda x: _by(tf.placeholder_with_default(1.0, [], name="factor"))(x),
        _UNTOLD + "it depends on 'factor' beside its arguments",
    ),
    "in a loop": (
        lambda x: tf.while_loop(lambda k, _: k < 2, lambda k, y: (k + 1, tf.nn.swish(y)), (0, x))[
            1
        ],
        _UNTOLD,
    ),
}


def _loss(layer):
    drawn = tf.glorot_uniform_initializer(seed=3)
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    net = layer(tf.layers.dense(x, 3, kernel_initializer=drawn))
    out = tf.layers.dense(net, 1, kernel_initializer=drawn)
    return tf.reduce_mean(tf.square(out[:, 0] - y))


@pytest.mark.few(1)
@pytest.mark.parametrize("layer", _SAME)
def test_a_gradient_that_is_torchs_too_takes_tensorflows_steps(layer, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        loss = _loss(_SAME[layer])
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss)
        prefix, steps = steps_of(session, tmp_path, loss, train_op)
    assert compare_steps(build_training(prefix), steps).exceeded is None


@pytest.mark.few(3)
@pytest.mark.parametrize("layer", _REFUSED)
def test_another_gradient_is_refused(layer, tmp_path):
    made, why = _REFUSED[layer]

    def build():
        return tf.train.GradientDescentOptimizer(0.1).minimize(_loss(made))

    prefix = saved(tmp_path, build)
    with pytest.raises(BadInput, match="whose gradient is defined apart from its formula") as error:
        build_training(prefix)
    assert why in str(error.value)


def test_the_gradient_of_what_nothing_is_trained_behind_does_not_matter(tmp_path):
    def build():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        loss = tf.reduce_mean(tf.square(tf.layers.dense(_straight(x), 1)[:, 0] - y))
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    build_training(saved(tmp_path, build))
