"""Retrieval: DSSM's two towers, YouTube's candidate network."""

import tensorflow
import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained, rate

SIZE, NEGATIVES = 6, 3


def dssm(mode):
    """Cosine of two towers over sparse placeholders, against negatives; Adagrad."""
    query = tf.sparse_placeholder(tf.int64, name="query")
    weights = tf.sparse_placeholder(tf.float32, name="query_weights")
    positive = tf.placeholder(tf.int64, [None], name="positive")
    negative = tf.placeholder(tf.int64, [None, NEGATIVES], name="negative")
    with tf.variable_scope("query_tower"):
        table = tf.get_variable("tokens", [log.TAGS, SIZE])
        bag = tf.nn.embedding_lookup_sparse(table, query, weights, combiner="mean")
        query_vector = _tower(bag)
    with tf.variable_scope("item_tower"):
        table = tf.get_variable("items", [log.ITEMS, SIZE])
        items = tf.concat([tf.expand_dims(positive, 1), negative], 1)
        item_vectors = _tower(tf.nn.embedding_lookup(table, items))
    with tf.name_scope("cosine"):
        query_norm = tf.sqrt(tf.reduce_sum(tf.square(query_vector), 1, True) + 1e-8)
        item_norm = tf.sqrt(tf.reduce_sum(tf.square(item_vectors), 2) + 1e-8)
        product = tf.reduce_sum(tf.expand_dims(query_vector, 1) * item_vectors, 2)
        cosine = tf.truediv(product, tf.multiply(query_norm, item_norm))
    logits = 5.0 * cosine
    probabilities = tf.nn.softmax(logits)
    loss = -tf.reduce_mean(tf.log(tf.slice(probabilities, [0, 0], [-1, 1])))
    optimizer = tf.train.AdagradOptimizer(0.1)
    return Model(
        inputs={
            "tag_ids_filled": query,
            "tag_weights_filled": weights,
            "item_id": positive,
            "negative": negative,
        },
        labels={},
        outputs={
            "logits": logits,
            "probabilities": probabilities,
            "query": tf.nn.l2_normalize(query_vector, 1),
            "item": tf.nn.l2_normalize(item_vectors[:, 0], -1),
        },
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def _tower(net):
    net = tf.layers.dense(net, 10, activation=tf.tanh, name="fc1")
    return tf.layers.dense(net, SIZE, activation=tf.tanh, name="fc2")


def youtube_dnn(mode):
    """The mean of the watched items; sampled softmax; LazyAdam, Adam where there is none."""
    history = tf.placeholder(tf.int64, [None, log.HISTORY], name="history")
    length = tf.placeholder(tf.int32, [None], name="history_length")
    age = tf.placeholder(tf.float32, [None], name="age")
    watched = tf.placeholder(tf.int64, [None, 1], name="watched")
    dropped = tf.placeholder_with_default(0.0, [], name="dropout_rate")
    table = tf.get_variable("item_embedding", [log.ITEMS, SIZE])
    mask = tf.expand_dims(tf.sequence_mask(length, log.HISTORY, dtype=tf.float32), -1)
    total = tf.reduce_sum(tf.nn.embedding_lookup(table, history) * mask, 1)
    mean = tf.div_no_nan(total, tf.cast(tf.expand_dims(length, -1), tf.float32))
    normed = (age - 45.0) / 20.0
    numbers = tf.stack([normed, tf.square(normed), tf.sqrt(tf.abs(normed))], axis=1)
    net = tf.concat([mean, numbers], 1)
    for width in (16, SIZE):
        net = tf.nn.dropout(tf.layers.dense(net, width, activation=tf.nn.relu), rate=dropped)
    weights = tf.get_variable("nce_weights", [log.ITEMS, SIZE])
    biases = tf.get_variable("nce_biases", [log.ITEMS], initializer=tf.zeros_initializer())
    drawn = tf.random.log_uniform_candidate_sampler(watched, 1, 8, True, log.ITEMS, seed=4)
    loss = tf.reduce_mean(
        tf.nn.sampled_softmax_loss(
            weights, biases, watched, net, 8, log.ITEMS, sampled_values=drawn
        )
    )
    logits = tf.nn.bias_add(tf.matmul(net, weights, transpose_b=True), biases)
    optimizer = _lazy_adam()(0.01)
    return Model(
        inputs={"history": history, "history_length": length, "age": age},
        labels={"watched": watched},
        outputs={
            "logits": logits,
            "probabilities": tf.nn.softmax(logits),
            "best": tf.nn.top_k(logits, 5).indices,
        },
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=(rate(dropped, 0.2),),
        drawn=tuple(drawn),
    )


def _lazy_adam():
    if not hasattr(tensorflow, "contrib"):
        return tf.train.AdamOptimizer
    return tensorflow.contrib.opt.LazyAdamOptimizer
