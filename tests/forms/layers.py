"""What stands between a job's kernels."""

import numpy as np

from semisync.common.compat import tf
from tests.forms import form as forms
from tests.forms.ways import hands_on
from tests.rewrite.zoo import keras
from tests.rewrite.zoo import layers as tf_layers

form = forms.of("Layer", "net")


def dense(words, **options):
    form("`tf.layers.dense`" + words)(lambda job, net: tf_layers.dense(net, 3, **options))


dense("")


@form("`tf.keras.layers.Dense`", resource=True)
def keras_dense(job, net):
    return keras.layers.Dense(3, "relu")(net)


@form("a dense layer under a partitioner")
def partitioned(job, net):
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
        return tf_layers.dense(net, 4)


@form("PReLU by hand")
def prelu(job, net):
    alpha = tf.get_variable("alpha", [4], initializer=tf.constant_initializer(0.25))
    return tf.maximum(net, 0.0) + alpha * tf.minimum(net, 0.0)


@form("`tf.nn.dropout`, the probability fed")
def dropout_fed(job, net):
    kept = tf.placeholder_with_default(1.0, [], "keep_prob")
    job.steps["keep_prob:0"] = np.float32(1)
    return tf.nn.dropout(net, keep_prob=kept)


@form("`tf.layers.dropout`, `training` fed")
def dropout_layer(job, net):
    return tf_layers.dropout(net, 0.0, training=job.training)


@form("dropout by hand, the mask fed")
def dropout_by_hand(job, net):
    mask = tf.placeholder_with_default(tf.ones([1, 4]), [None, 4], "mask")
    job.steps["mask:0"] = np.float32([[1, 1, 0, 1]])
    return net * mask


@form("layer norm by hand")
def layer_norm(job, net):
    beta = tf.get_variable("beta", [4], initializer=tf.zeros_initializer())
    gamma = tf.get_variable("gamma", [4], initializer=tf.ones_initializer())
    mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
    return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-6)


@form("`tf.contrib.layers.layer_norm`", only=1)
def contrib_layer_norm(job, net):
    from tensorflow.contrib import layers

    return layers.layer_norm(net)


@form("`tf.keras.layers.LayerNormalization`", resource=True)
def keras_layer_norm(job, net):
    return keras.layers.LayerNormalization(name="norm")(net)


@form("each batch normalised by itself, without averages")
def batch_alone(job, net):
    mean, variance = tf.nn.moments(net, [0])
    return (net - mean) / tf.sqrt(variance + 1e-3)


@form("data normalisation by running sums, updated with each batch (`batch_size`, `batch_sum`)")
def data_norm(job, net):
    names = [("batch_size", 10.0), ("batch_sum", 0.0), ("batch_square_sum", 10.0)]
    size, total, square = (
        tf.get_variable(n, [4], initializer=tf.constant_initializer(v), trainable=False)
        for n, v in names
    )
    rows = tf.cast(tf.shape(net)[0], tf.float32)
    for one, new in [
        (size, rows),
        (total, tf.reduce_sum(net, 0)),
        (square, tf.reduce_sum(net * net, 0)),
    ]:
        job.beside.append(tf.assign(one, one * 0.99 + tf.stop_gradient(new)))
    return (net - total / size) * tf.sqrt(size / square)  # fmt: skip


@form("`tf.custom_gradient`")
def custom_gradient(job, net):
    @tf.custom_gradient
    def halved(x):
        return tf.identity(x), lambda dy: dy * 0.5

    return halved(net)


@form("`tf.nn.swish`")
def swish(job, net):
    return tf.nn.swish(net)


@form("gradient reversed (`-x + stop_gradient(2 x)`)")
def reversed_gradient(job, net):
    return -net + tf.stop_gradient(2.0 * net)


def conditional(job, net):
    return tf.cond(job.training, lambda: net * 0.5, lambda: net)


form("`tf.cond` on `training`")(conditional)
form("`tf.cond` on `training`, control flow 2", resource=True, control_flow=2)(conditional)


def on_data(job, net):
    return tf.cond(tf.reduce_mean(net) > 0, lambda: net * 0.5, lambda: net - 1.0)


form("`tf.cond` on the data")(on_data)
form("`tf.cond` on the data, control flow 2", resource=True, control_flow=2)(on_data)


def variable_in_branch(job, net):
    kernel = tf.get_variable("branch", [4, 4])
    return tf.cond(tf.reduce_mean(net) > 0, lambda: tf.matmul(net, kernel), lambda: net)


form("a variable used in the branch of a `tf.cond`")(variable_in_branch)
form("a variable used in a branch, control flow 2", resource=True, control_flow=2)(
    variable_in_branch
)


def cases(job, net):
    mean = tf.reduce_mean(net)
    pairs = [(mean > 0.5, lambda: net * 0.5), (mean > 0.0, lambda: net + 1.0)]
    return tf.case(pairs, default=lambda: net)


form("`tf.case`")(cases)


@form("`tf.switch_case`", resource=True, control_flow=2)
def switch_case(job, net):
    index = tf.cast(tf.reduce_mean(net) > 0, tf.int32)
    return tf.switch_case(index, [lambda: net * 0.5, lambda: net + 1.0])


def loop(job, net):
    kernel = tf.get_variable("loop", [4, 4])
    return tf.while_loop(
        lambda k, _: k < 2, lambda k, x: (k + 1, tf.tanh(tf.matmul(x, kernel))), [0, net]
    )[1]


form("a variable used in a `tf.while_loop`")(loop)
form("a variable used in a `tf.while_loop`, control flow 2", resource=True, control_flow=2)(loop)


@form("`tf.map_fn`")
def mapped(job, net):
    return tf.map_fn(lambda row: row * 2.0, net)


@form("`tf.nn.dynamic_rnn` of a GRU")
def rnn(job, net):
    cell = tf.nn.rnn_cell.GRUCell(4)
    return tf.nn.dynamic_rnn(cell, tf.stack([net, net * 0.5], 1), dtype=tf.float32)[1]


@form("a body of `tf.function`", resource=True, control_flow=2)
def function(job, net):
    from tensorflow.python.eager import def_function

    return def_function.function(lambda x: tf.tanh(x) * 2.0)(net)


@form("weights shared by two layers (tied)")
def tied(job, net):
    kernel = tf.get_variable("tied", [4, 4])
    return tf.matmul(tf.tanh(tf.matmul(net, kernel)), kernel, transpose_b=True)


@form("`tf.nn.l2_normalize` of a kernel (weight norm)")
def weight_norm(job, net):
    kernel = tf.get_variable("v", [4, 4])
    return tf.matmul(net, tf.nn.l2_normalize(kernel, 0))


PLACES = "table", "ids", "rows", "net", "logit", "loss", "rate", "gradient"
for number, place in enumerate(PLACES):
    words = "the {}{}".format(place, ", resource variables" if number % 2 else "")
    handed = forms.of("Handed on by identity, print, checks", "at " + place)
    handed(words, resource=bool(number % 2))(hands_on)
