"""DIN: attention of the candidate over the history, with Dice or PReLU."""

import numpy as np
import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Flag, Model, Trained, phase

CATEGORIES, SIZE = 7, 4


def din(mode):
    """Dice over a BatchNorm without scale and offset; SGD at a rate in pieces; clipping."""
    training = tf.placeholder(tf.bool, [], name="is_training")

    def dice(x, name):
        alphas = tf.get_variable(name + "/alpha", x.shape[-1:], initializer=tf.zeros_initializer())
        normed = tf.layers.batch_normalization(
            x, center=False, scale=False, epsilon=1e-9, training=training, name=name + "/dice_bn"
        )
        passed = tf.sigmoid(normed)
        return alphas * (1.0 - passed) * x + passed * x

    def rate(step):
        return tf.train.piecewise_constant(step, [10, 26], [1.0, 0.5, 0.1])

    return _din(dice, training, rate, (phase(training),))


def din_prelu(mode):
    """PReLU, BatchNorm and dropout built for training, a fed learning rate."""
    fed = tf.placeholder(tf.float64, [], name="lr")

    def prelu(x, name):
        alphas = tf.get_variable(
            name + "/alpha", x.shape[-1:], initializer=tf.constant_initializer(0.1)
        )
        return tf.maximum(0.0, x) + alphas * tf.minimum(0.0, x)

    def prelu_and_dropout(x, name):
        return tf.nn.dropout(prelu(x, name), rate=mode.rate(0.2))

    rate = tf.cast(fed, tf.float32)
    flag = Flag(fed, 0.5, 0.0, 0.3)
    return _din(prelu_and_dropout, mode.training, lambda step: rate, (flag,))


def din_batch_dice(mode):
    """Dice with the mean and deviation of the batch at hand, when scoring too."""

    def dice(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            alphas = tf.get_variable("alpha", x.shape[-1], initializer=tf.zeros_initializer())
        mean = tf.reduce_mean(x, axis=[0])
        std = tf.reduce_mean(tf.square(x - mean) + 1e-9, axis=[0])
        std = tf.sqrt(std)
        passed = tf.sigmoid((x - mean) / (std + 1e-9))
        return alphas * (1.0 - passed) * x + passed * x

    return _din(dice, False, lambda step: 0.5)


def _din(activation, training, learning_rate, flags=()):
    item = tf.placeholder(tf.int32, [None], name="i")
    label = tf.placeholder(tf.float32, [None], name="y")
    history = tf.placeholder(tf.int32, [None, None], name="hist_i")
    length = tf.placeholder(tf.int32, [None], name="sl")
    categories = tf.convert_to_tensor(np.arange(log.ITEMS) % CATEGORIES, dtype=tf.int64)
    item_table = tf.get_variable("item_emb_w", [log.ITEMS, SIZE])
    item_bias = tf.get_variable("item_b", [log.ITEMS], initializer=tf.constant_initializer(0.0))
    category_table = tf.get_variable("cate_emb_w", [CATEGORIES, SIZE])

    def embed(ids):
        of_category = tf.nn.embedding_lookup(category_table, tf.gather(categories, ids))
        return tf.concat(values=[tf.nn.embedding_lookup(item_table, ids), of_category], axis=-1)

    candidate = embed(item)
    interest = _attention(candidate, embed(history), length)
    interest = tf.layers.batch_normalization(interest, training=training, name="hist_bn")
    interest = tf.reshape(interest, [-1, 2 * SIZE])
    interest = tf.layers.dense(interest, 2 * SIZE)
    net = tf.concat([interest, candidate, interest * candidate], axis=-1)
    net = tf.layers.batch_normalization(inputs=net, name="b1", training=training)
    for place, width in enumerate((12, 6)):
        net = tf.layers.dense(net, width, activation=None, name="f%d" % place)
        net = activation(net, "act_%d" % place)
    net = tf.reshape(tf.layers.dense(net, 1, activation=None, name="f_out"), [-1])
    logits = tf.gather(item_bias, item) + net
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=label))
    step = tf.Variable(0, trainable=False, name="global_step")
    optimizer = tf.train.GradientDescentOptimizer(learning_rate=learning_rate(step))
    variables = tf.trainable_variables()
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.apply_gradients(zip(clipped, variables), global_step=step)
    return Model(
        inputs={"item_id": item, "history": history, "history_length": length},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(optimizer, variables)],
        flags=flags,
    )


def _attention(queries, keys, length):
    """queries: [B, H], keys: [B, T, H], length: [B]; returns [B, 1, H]."""
    width = queries.get_shape().as_list()[-1]
    queries = tf.tile(queries, [1, tf.shape(keys)[1]])
    queries = tf.reshape(queries, [-1, tf.shape(keys)[1], width])
    net = tf.concat([queries, keys, queries - keys, queries * keys], axis=-1)
    net = tf.layers.dense(net, 8, activation=tf.nn.sigmoid, name="f1_att", reuse=tf.AUTO_REUSE)
    net = tf.layers.dense(net, 1, activation=None, name="f2_att", reuse=tf.AUTO_REUSE)
    outputs = tf.reshape(net, [-1, 1, tf.shape(keys)[1]])
    key_masks = tf.expand_dims(tf.sequence_mask(length, tf.shape(keys)[1]), 1)
    paddings = tf.ones_like(outputs) * (-(2**32) + 1)
    outputs = tf.where(key_masks, outputs, paddings)
    outputs = tf.nn.softmax(outputs / (width**0.5))
    return tf.matmul(outputs, keys)
