"""DeepFM over single-valued fields and one bag, written like a TensorFlow 1.x recommendation job.

Two tables, sparse gradients: all fields share one by offsets, the bag has its own. A row holds a
linear weight and DIM factors; the bag is the mean of its rows and counts as one more field. The
logit is the linear part, the factors' pairs and a tower of dense layers over everything.
"""

import numpy as np

from semisync.common.compat import tf

DIM = 12  # factors of an id
HIDDEN = (64, 32)  # units of the dense layers


def logits(fields, bags, about, seed, normalise=None):
    """Builds the model under the variable names `fields`, `bag` and `tower...`.

    Args:
        fields: int [batch, fields], as in `data`.
        bags: int [batch, BAG], as in `data`.
        about: the sizes, as in `data`.
        seed: of the initial values; equal seeds give equal values in every process.
        normalise: (layer [batch, units], its name) -> the same shape, called for each hidden layer
            before its ReLU; None: no normalisation.

    Returns:
        float32 [batch].
    """
    sizes = list(about["fields"].values())
    offsets = np.concatenate([[0], np.cumsum(sizes[:-1])])
    table = _table("fields", sum(sizes), seed)
    vectors = tf.nn.embedding_lookup(table, tf.cast(fields, tf.int64) + offsets)
    pooled = _mean_of_bag(_table("bag", about["bag"], seed + 1), tf.cast(bags, tf.int64))
    vectors = tf.concat([vectors, pooled[:, None]], 1)  # [batch, fields + 1, 1 + DIM]
    linear = tf.reduce_sum(vectors[:, :, 0], 1)
    factors = vectors[:, :, 1:]
    squares = tf.reduce_sum(tf.square(factors), 1)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(factors, 1)) - squares, 1)
    width = (len(sizes) + 1) * (1 + DIM)
    return linear + pairs + _tower(tf.reshape(vectors, [-1, width]), width, seed + 2, normalise)


def _table(name, rows, seed):
    initial = tf.random_normal_initializer(stddev=0.05, seed=seed)
    return tf.get_variable(name, [rows, 1 + DIM], initializer=initial)


def _mean_of_bag(table, bags):
    there = tf.cast(bags > 0, tf.float32)[:, :, None]
    total = tf.reduce_sum(tf.nn.embedding_lookup(table, bags) * there, 1)
    return total / tf.maximum(tf.reduce_sum(there, 1), 1.0)


def _tower(layer, width, seed, normalise):
    for number, units in enumerate(HIDDEN + (1,)):
        initial = tf.glorot_uniform_initializer(seed=seed + number)
        kernel = tf.get_variable("tower%d_kernel" % number, [width, units], initializer=initial)
        bias = tf.get_variable("tower%d_bias" % number, initializer=tf.zeros([units]))
        layer = tf.matmul(layer, kernel) + bias
        if number < len(HIDDEN):
            layer = normalise(layer, "tower%d_norm" % number) if normalise else layer
            layer = tf.nn.relu(layer)
        width = units
    return tf.reshape(layer, [-1])


def loss(logit, labels):
    """The mean log loss of a batch; labels int [batch]."""
    labels = tf.cast(labels, tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logit))


def score(session, logit, fields, bags, answers, rows, size=8192):
    """The probabilities of `rows`, a slice, float32; `fields` and `bags` are the placeholders."""
    probability = tf.sigmoid(logit)
    parts = []
    for start in range(rows.start, rows.stop, size):
        part = slice(start, min(start + size, rows.stop))
        feed = {fields: answers.fields[part], bags: answers.bags[part]}
        parts.append(session.run(probability, feed))
    return np.concatenate(parts)
