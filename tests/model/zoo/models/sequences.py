"""Sequence models: a GRU and LSTMs in dynamic_rnn's loop, and self-attention."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained, phase

SIZE, HEADS = 8, 2


def gru(mode):
    """dynamic_rnn with lengths; Adam on a cosine, each gradient clipped by its norm."""
    history = tf.placeholder(tf.int64, [None, None], name="history")
    length = tf.placeholder(tf.int32, [None], name="length")
    target = tf.placeholder(tf.int64, [None], name="target")
    label = tf.placeholder(tf.float32, [None], name="label")
    with tf.variable_scope("gru4rec"):
        table = tf.get_variable("items", [log.ITEMS, SIZE])
        steps = tf.nn.embedding_lookup(table, history)
        cell = tf.nn.rnn_cell.GRUCell(SIZE)
        outputs, state = tf.nn.dynamic_rnn(cell, steps, sequence_length=length, dtype=tf.float32)
        highest = tf.reduce_max(outputs, axis=1)
        candidate = tf.nn.embedding_lookup(table, target)
        net = tf.concat([state, highest, candidate, state * candidate], axis=-1)
        net = tf.layers.dense(net, 8, activation=tf.nn.relu)
        logits = tf.layers.dense(net, 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(tf.train.cosine_decay(0.02, step, 100, alpha=0.1))
    clipped = [
        (tf.clip_by_norm(gradient, 0.2), variable)
        for gradient, variable in optimizer.compute_gradients(loss)
    ]
    return Model(
        inputs={"history": history, "history_length": length, "item_id": target},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.apply_gradients(clipped, global_step=step),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def lstm(mode):
    """LSTMs from both ends, one with peepholes; Adagrad."""
    history = tf.placeholder(tf.int32, [None, log.HISTORY], name="history")
    length = tf.placeholder(tf.int32, [None], name="length")
    label = tf.placeholder(tf.float32, [None], name="label")
    with tf.variable_scope("lstm", use_resource=True):
        table = tf.get_variable("items", [log.ITEMS, SIZE])
        forward = tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True)
        backward = tf.nn.rnn_cell.BasicLSTMCell(5)
        outputs, states = tf.nn.bidirectional_dynamic_rnn(
            forward, backward, tf.gather(table, history), length, dtype=tf.float32
        )
        net = tf.concat([tf.reduce_mean(tf.concat(outputs, 2), 1), states[0].h, states[1].c], 1)
        logits = tf.layers.dense(net, 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    optimizer = tf.train.AdagradOptimizer(0.1)
    return Model(
        inputs={"history": history, "history_length": length},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def attention(mode):
    """Two blocks as in SASRec; RMSProp, the averages of all variables beside them."""
    history = tf.placeholder(tf.int32, [None, log.HISTORY], name="input_seq")
    candidate = tf.placeholder(tf.int32, [None], name="candidate")
    label = tf.placeholder(tf.float32, [None], name="label")
    training = tf.placeholder(tf.bool, shape=(), name="is_training")
    mask = tf.expand_dims(tf.to_float(tf.not_equal(history, 0)), -1)
    with tf.variable_scope("SASRec"):
        table = tf.get_variable("lookup_table", [log.ITEMS, SIZE])
        # The row of the padding is zeros, whatever the table holds.
        table = tf.concat((tf.zeros(shape=[1, SIZE]), table[1:, :]), 0)
        seq = tf.nn.embedding_lookup(table, history) * (SIZE**0.5)
        places = tf.tile(
            tf.expand_dims(tf.range(tf.shape(history)[1]), 0), [tf.shape(history)[0], 1]
        )
        seq += tf.nn.embedding_lookup(tf.get_variable("positions", [log.HISTORY, SIZE]), places)
        seq = tf.layers.dropout(seq, rate=0.2, training=tf.convert_to_tensor(training)) * mask
        for block in range(2):
            with tf.variable_scope("num_blocks_%d" % block):
                seq = _heads(_normalize(seq), seq, training)
                seq = _feedforward(_normalize(seq), training) * mask
        last = _normalize(seq)[:, -1, :]
    logits = tf.reduce_sum(last * tf.nn.embedding_lookup(table, candidate), -1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.RMSPropOptimizer(0.003, momentum=0.9)
    averages = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies([optimizer.minimize(loss, global_step=step)]):
        train_op = averages.apply(tf.trainable_variables())
    return Model(
        inputs={"history": history, "item_id": candidate},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=(phase(training)._replace(steps=False),),  # a dropout's phase, and nothing else's
    )


def _normalize(inputs, epsilon=1e-8):
    with tf.variable_scope(None, default_name="ln"):
        size = inputs.get_shape()[-1:]
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        beta = tf.get_variable("beta", size, initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer())
        return gamma * (inputs - mean) / ((variance + epsilon) ** 0.5) + beta


def _heads(queries, keys, training):
    """Multi-head attention that looks back only, with what it looks from added."""
    with tf.variable_scope("self_attention"):
        q, k, v = (
            tf.concat(tf.split(tf.layers.dense(each, SIZE), HEADS, axis=2), axis=0)
            for each in (queries, keys, keys)
        )
        scores = tf.matmul(q, tf.transpose(k, [0, 2, 1])) / (k.get_shape().as_list()[-1] ** 0.5)
        key_masks = tf.sign(tf.abs(tf.reduce_sum(keys, axis=-1)))
        key_masks = tf.tile(key_masks, [HEADS, 1])
        key_masks = tf.tile(tf.expand_dims(key_masks, 1), [1, tf.shape(queries)[1], 1])
        paddings = tf.ones_like(scores) * (-(2**32) + 1)
        scores = tf.where(tf.equal(key_masks, 0), paddings, scores)
        lower = tf.linalg.band_part(tf.ones_like(scores[0, :, :]), -1, 0)
        masks = tf.tile(tf.expand_dims(lower, 0), [tf.shape(scores)[0], 1, 1])
        scores = tf.nn.softmax(tf.where(tf.equal(masks, 0), paddings, scores))
        scores = tf.layers.dropout(scores, rate=0.2, training=tf.convert_to_tensor(training))
        outputs = tf.concat(tf.split(tf.matmul(scores, v), HEADS, axis=0), axis=2)
        return outputs + queries


def _feedforward(inputs, training):
    with tf.variable_scope("multihead_attention"):
        outputs = tf.layers.conv1d(inputs, 12, kernel_size=1, activation=tf.nn.relu, use_bias=True)
        outputs = tf.layers.dropout(outputs, rate=0.2, training=tf.convert_to_tensor(training))
        outputs = tf.layers.conv1d(outputs, SIZE, kernel_size=1, activation=None, use_bias=True)
        return outputs + inputs
