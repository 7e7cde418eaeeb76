"""The model of a case, and the placement of its variables.

The graph draws the ids, on the worker: feeding 1024 x 26 of them would cost the worker more than
the rest of its batch.
"""

import itertools

from semisync.common.compat import tf


def loss(model, seed):
    """Mean cross-entropy of one batch, float32 scalar.

    Args:
        model: a `cases.Model`.
        seed: of the ids; the worker's own.
    """
    means = []
    for number in range(model.tables):
        table = tf.get_variable(
            "table_{}".format(number),
            [model.rows, model.dim],
            initializer=tf.random_uniform_initializer(-0.01, 0.01, seed=number),
        )
        shape = [model.batch, model.fields]
        ids = tf.random_uniform(shape, maxval=model.rows, dtype=tf.int64, seed=100 * seed + number)
        means.append(tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1))
    layer = tf.concat(means, 1)  # [batch, tables x dim]
    for number, units in enumerate(model.hidden):
        layer = tf.nn.relu(_dense(layer, units, "dense_{}".format(number)))
    logits = tf.reshape(_dense(layer, 1, "logit"), [-1])
    labels = tf.cast(tf.floormod(ids[:, 0], 2), tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def _dense(layer, units, name):
    glorot = tf.glorot_uniform_initializer(seed=1)
    kernel = tf.get_variable(name + "_kernel", [layer.shape[1], units], initializer=glorot)
    bias = tf.get_variable(name + "_bias", [units], initializer=tf.zeros_initializer())
    return tf.matmul(layer, kernel) + bias


def placed(cluster, task, first_ps, ps):
    """A device function: variables in turn on `ps` parameter servers from `first_ps` on.

    Args:
        cluster: a tf.train.ClusterSpec.
        task: of this worker.
    """
    turn = itertools.count()
    return tf.train.replica_device_setter(
        cluster=cluster,
        worker_device="/job:worker/task:{}".format(task),
        ps_strategy=lambda op: first_ps + next(turn) % ps,
    )
