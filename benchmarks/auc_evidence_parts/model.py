"""DeepFM over single-valued fields and one bag, written like a TensorFlow 1.x recommendation job.

Two tables, sparse gradients: all fields share one by offsets, the bag has its own. A row holds a
linear weight and DIM factors; the bag is the mean of its rows and counts as one more field.
"""

import numpy as np

from benchmarks.harness.deepfm import deep_fm
from semisync.common.compat import tf

DIM = 12  # factors of an id


def logits(fields, bags, about, seed):
    """Builds the model under the variable names `fields`, `bag` and `tower...`.

    Args:
        fields: int [batch, fields], as in `data`.
        bags: int [batch, BAG], as in `data`.
        about: the sizes, as in `data`.
        seed: of the initial values; equal seeds give equal values in every process.

    Returns:
        float32 [batch].
    """
    sizes = list(about["fields"].values())
    offsets = np.concatenate([[0], np.cumsum(sizes[:-1])])
    table = _table("fields", sum(sizes), seed)
    vectors = tf.nn.embedding_lookup(table, tf.cast(fields, tf.int64) + offsets)
    pooled = _mean_of_bag(_table("bag", about["bag"], seed + 1), tf.cast(bags, tf.int64))
    vectors = tf.concat([vectors, pooled[:, None]], 1)  # [batch, fields + 1, 1 + DIM]
    return deep_fm(vectors, seed + 2)


def _table(name, rows, seed):
    initial = tf.random_normal_initializer(stddev=0.05, seed=seed)
    return tf.get_variable(name, [rows, 1 + DIM], initializer=initial)


def _mean_of_bag(table, bags):
    there = tf.cast(bags > 0, tf.float32)[:, :, None]
    total = tf.reduce_sum(tf.nn.embedding_lookup(table, bags) * there, 1)
    return total / tf.maximum(tf.reduce_sum(there, 1), 1.0)


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
