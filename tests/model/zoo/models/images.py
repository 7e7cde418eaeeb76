"""Convolutions with BatchNorm, fused and not, in tf.layers and in slim."""

import tensorflow
import tensorflow.compat.v1 as tf

from tests.model.zoo.model import Model, Trained, phase


def conv(mode):
    """tf.layers, built for training; the unfused BatchNorm after the fused one; Momentum."""
    image, label = _inputs()
    net = tf.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]])
    net = tf.layers.conv2d(net, 4, 3, padding="valid", use_bias=False, name="conv1")
    net = tf.layers.batch_normalization(
        net, training=mode.training, fused=True, momentum=0.9, epsilon=1e-3, name="bn1"
    )
    net = tf.layers.max_pooling2d(tf.nn.relu(net), 2, 2)
    net = tf.layers.conv2d(net, 6, [3, 2], strides=(2, 1), padding="same", name="conv2")
    net = tf.layers.batch_normalization(
        net, training=mode.training, fused=False, momentum=0.8, scale=False, name="bn2"
    )
    net = tf.nn.avg_pool(tf.nn.relu(net), [1, 1, 3, 1], [1, 1, 1, 1], "SAME")
    net = tf.layers.dropout(tf.layers.flatten(net), mode.rate(0.4), training=mode.training)
    logits = tf.layers.dense(net, 3, name="logits")
    return _model(image, label, logits, tf.train.MomentumOptimizer(0.02, 0.9))


def conv_slim(mode):
    """slim with its arg_scope, BatchNorm without a scale, a fed phase; SGD."""
    slim = tensorflow.contrib.slim
    image, label = _inputs()
    training = tf.placeholder(tf.bool, [], name="is_training")
    settings = {"is_training": training, "decay": 0.9, "updates_collections": "update_ops"}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        normalizer_fn=slim.batch_norm,
        normalizer_params=settings,
        weights_regularizer=slim.l2_regularizer(0.001),
    ):
        net = slim.conv2d(image, 4, [3, 3], scope="conv1")
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        net = slim.separable_conv2d(net, 5, [3, 3], 1, normalizer_fn=None, scope="conv2")
        net = tf.reduce_mean(net, [1, 2], keep_dims=False, name="global_pool")
        net = slim.fully_connected(net, 8, scope="fc1")
    net = slim.dropout(net, 0.7 if mode.noise else 1.0, is_training=training)
    logits = slim.fully_connected(net, 3, activation_fn=None, scope="logits")
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    return _model(image, label, logits, optimizer, (phase(training),))


def _inputs():
    image = tf.placeholder(tf.float32, [None, 8, 8, 3], name="image")
    return image, tf.placeholder(tf.int64, [None], name="label")


def _model(image, label, logits, optimizer, flags=()):
    tf.losses.sparse_softmax_cross_entropy(label, logits)
    loss = tf.losses.get_total_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return Model(
        inputs={"image": image},
        labels={"grade": label},
        outputs={
            "logits": logits,
            "probabilities": tf.nn.softmax(logits),
            "log_probabilities": tf.nn.log_softmax(logits),
            "class": tf.argmax(logits, 1),
        },
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=flags,
    )
