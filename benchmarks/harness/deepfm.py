"""DeepFM in TensorFlow 1.x over the vectors of its features: a linear weight, then factors."""

from semisync.common.compat import tf

HIDDEN = (64, 32)  # units of the dense layers


def deep_fm(vectors, seed):
    """The logits, float32 [rows]: the linear part, the factors' pairs and a tower over everything.

    Args:
        vectors: float32 [rows, features, 1 + factors].
        seed: of the first layer's initial values; equal seeds give equal values in every process.
    """
    linear, factors = tf.reduce_sum(vectors[:, :, 0], 1), vectors[:, :, 1:]
    squares = tf.reduce_sum(tf.square(factors), 1)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(factors, 1)) - squares, 1)
    width = int(vectors.shape[1]) * int(vectors.shape[2])
    layer = tf.reshape(vectors, [-1, width])
    for number, units in enumerate(HIDDEN + (1,)):
        initial = tf.glorot_uniform_initializer(seed=seed + number)
        kernel = tf.get_variable("tower%d_kernel" % number, [width, units], initializer=initial)
        bias = tf.get_variable("tower%d_bias" % number, initializer=tf.zeros([units]))
        layer, width = tf.nn.bias_add(tf.matmul(layer, kernel), bias), units
        if number < len(HIDDEN):
            layer = tf.nn.relu(layer)
    return linear + pairs + layer[:, 0]
