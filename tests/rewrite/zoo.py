"""Small graphs whose author knows what is in them: one for each way to write a BatchNorm."""

import contextlib

from semisync.common.compat import tf
from tests.support.require import skip_without

TF2 = tf.__version__.startswith("2")

if TF2:
    from tf_keras.api._v1 import keras
    from tf_keras.api._v1.keras.__internal__.legacy import layers
else:
    keras, layers = tf.keras, tf.layers


@contextlib.contextmanager
def graph(control_flow=1, resource=False):
    """A new default graph, with that version of control flow and that kind of variables."""
    before = tf.control_flow_v2_enabled()
    (tf.enable_control_flow_v2 if control_flow == 2 else tf.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as made:
            tf.get_variable_scope().set_use_resource(resource or control_flow == 2)
            yield made
    finally:
        (tf.enable_control_flow_v2 if before else tf.disable_control_flow_v2)()


def contrib():
    """tf.contrib.layers; skips the test where there is none."""
    if TF2:
        skip_without("contrib", "tf.contrib ended with TensorFlow 1")
    from tensorflow.contrib import layers as found

    return found


def rows(width=4, name="x"):
    return tf.placeholder(tf.float32, [None, width], name)


def images(name="x"):
    return tf.placeholder(tf.float32, [8, 5, 5, 3], name)


def predicate():
    return tf.placeholder_with_default(False, [], "training")


def variable(name, value=0.0, width=4):
    return tf.get_variable(name, [width], initializer=tf.constant_initializer(value))


def moving():
    """(moving mean, moving variance), by hand."""
    with tf.variable_scope("bn"):
        return variable("moving_mean"), variable("moving_variance", 1.0)


def normalise(x, mean, variance, epsilon=1e-3):
    """tf.nn.batch_normalization with gamma and beta."""
    with tf.variable_scope("bn"):
        beta, gamma = variable("beta"), variable("gamma", 1.0)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def group_updates():
    """Has an op "updates" run what stands in UPDATE_OPS, as a train op would."""
    return tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS), name="updates")
