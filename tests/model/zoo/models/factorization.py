"""Factorization machines: FM, FFM and DeepFM, on (index, value) pairs, one for each field."""

import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Flag, Model, Trained, phase

FEATURES, FIELDS, SIZE = 10 * log.FIELDS, log.FIELDS, 4


def _inputs():
    index = tf.placeholder(tf.int32, shape=[None, FIELDS], name="feat_index")
    value = tf.placeholder(tf.float32, shape=[None, FIELDS], name="feat_value")
    label = tf.placeholder(tf.float32, shape=[None, 1], name="label")
    return index, value, label


def fm(mode):
    """tf.Variable of version 1, L2 in the loss, SGD at a rate that decays exponentially."""
    index, value, label = _inputs()
    bias = tf.Variable(tf.zeros([1]), name="w0")
    linear = tf.Variable(tf.zeros([FEATURES]), name="w")
    factors = tf.Variable(tf.random_normal([FEATURES, SIZE], 0.0, 0.1), name="v")
    first = tf.reduce_sum(tf.gather(linear, index) * value, axis=1, keepdims=True)
    products = tf.nn.embedding_lookup(factors, index) * tf.expand_dims(value, 2)
    square_of_sum = tf.square(tf.reduce_sum(products, 1))
    sum_of_squares = tf.reduce_sum(tf.square(products), 1)
    second = 0.5 * tf.reduce_sum(square_of_sum - sum_of_squares, 1, keepdims=True)
    logits = bias + first + second
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    loss += 0.001 * (tf.nn.l2_loss(linear) + tf.nn.l2_loss(factors))
    step = tf.Variable(0, trainable=False, name="global_step")
    rate = tf.train.exponential_decay(0.5, step, 5, 0.9, staircase=True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    return Model(
        inputs={"index": index, "value": value},
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": tf.nn.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, global_step=step),
        optimizers=[Trained(optimizer, [bias, linear, factors])],
    )


def ffm(mode):
    """A vector for each pair of feature and field; the pairs of fields in a Python loop."""
    index, value, label = _inputs()
    with tf.variable_scope("ffm"):
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        linear = tf.get_variable("linear", [FEATURES, 1])
        factors = tf.get_variable("factors", [FEATURES, FIELDS, SIZE])
    first = tf.reduce_sum(tf.squeeze(tf.nn.embedding_lookup(linear, index), -1) * value, 1)
    vectors = tf.nn.embedding_lookup(factors, index)
    second = []
    for i in range(FIELDS):
        for j in range(i + 1, FIELDS):
            inner = tf.reduce_sum(tf.multiply(vectors[:, i, j, :], vectors[:, j, i, :]), axis=1)
            second.append(inner * value[:, i] * value[:, j])
    logits = bias + first + tf.add_n(second)
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.squeeze(label, 1), logits=logits)
    )
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.01)
    return Model(
        inputs={"index": index, "value": value},
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, global_step=step),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def deepfm(mode):
    """Weights in a dictionary, two BatchNorms under one tf.cond, keep_probs in a vector; Adam."""
    index, value, label = _inputs()
    keep_fm = tf.placeholder(tf.float32, shape=[None], name="dropout_keep_fm")
    keep_deep = tf.placeholder(tf.float32, shape=[None], name="dropout_keep_deep")
    train_phase = tf.placeholder(tf.bool, name="train_phase")
    weights = _deepfm_weights()
    embedded = tf.nn.embedding_lookup(weights["feature_embeddings"], index)
    embedded = tf.multiply(embedded, tf.reshape(value, shape=[-1, FIELDS, 1]))
    first = tf.nn.embedding_lookup(weights["feature_bias"], index)
    first = tf.reduce_sum(tf.multiply(first, tf.expand_dims(value, 2)), 2)
    first = tf.nn.dropout(first, keep_fm[0])
    second = 0.5 * tf.subtract(
        tf.square(tf.reduce_sum(embedded, 1)), tf.reduce_sum(tf.square(embedded), 1)
    )
    second = tf.nn.dropout(second, keep_fm[1])
    deep = tf.nn.dropout(tf.reshape(embedded, shape=[-1, FIELDS * SIZE]), keep_deep[0])
    for layer in range(2):
        name = "layer_{}".format(layer)
        deep = tf.add(tf.matmul(deep, weights[name]), weights["bias_{}".format(layer)])
        deep = _batch_norm(deep, train_phase, "bn_{}".format(layer))
        deep = tf.nn.dropout(tf.nn.relu(deep), keep_deep[1 + layer])
    joined = tf.concat([first, second, deep], axis=1)
    logits = tf.add(tf.matmul(joined, weights["concat_projection"]), weights["concat_bias"])
    out = tf.nn.sigmoid(logits)
    loss = tf.losses.log_loss(label, out)
    loss += tensorflow.contrib.layers.l2_regularizer(0.001)(weights["concat_projection"])
    optimizer = tf.train.AdamOptimizer(0.01, beta1=0.9, beta2=0.999, epsilon=1e-8)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss)
    return Model(
        inputs={"index": index, "value": value},
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": out},
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=(
            Flag(keep_fm, [0.9, 0.8], [1.0, 1.0], [1.0, 1.0]),
            Flag(keep_deep, [0.9, 0.8, 0.7], [1.0] * 3, [1.0] * 3),
            phase(train_phase),
        ),
    )


def _deepfm_weights():
    random = np.random.RandomState(2)
    weights = {
        "feature_embeddings": tf.Variable(
            tf.random_normal([FEATURES, SIZE], 0.0, 0.1), name="feature_embeddings"
        ),
        "feature_bias": tf.Variable(
            tf.random_uniform([FEATURES, 1], 0.0, 1.0), name="feature_bias"
        ),
        "concat_bias": tf.Variable(tf.constant(0.01), dtype=np.float32),
    }
    before = FIELDS * SIZE
    for layer, width in enumerate([12, 8]):
        scale = np.sqrt(2.0 / (before + width))
        for name, shape in (("layer", (before, width)), ("bias", (1, width))):
            name = "{}_{}".format(name, layer)
            weights[name] = tf.Variable(
                random.normal(scale=scale, size=shape).astype(np.float32), name=name
            )
        before = width
    size = (FIELDS + SIZE + before, 1)
    weights["concat_projection"] = tf.Variable(random.normal(0.0, 0.3, size).astype(np.float32))
    return weights


def _batch_norm(x, train_phase, scope):
    def norm(training):
        return layers.batch_norm(
            x,
            decay=0.9,
            center=True,
            scale=True,
            updates_collections=None,
            is_training=training,
            reuse=None if training else True,
            scope=scope,
        )

    layers = tensorflow.contrib.layers
    return tf.cond(train_phase, lambda: norm(True), lambda: norm(False))
