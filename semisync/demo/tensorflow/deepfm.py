"""The demo's DeepFM in TensorFlow, as a 1.x recommendation job would write it; sizes and names.

Every field has one vector of DIM numbers per row: the first is the field's linear weight, the
others are its factors. The categorical fields share one table, which is partitioned over the PS;
the bucketised numbers share a small one. A 64-bit id finds its row by the floored remainder.

    logit = bias + sum_f linear_f + sum_{f<g} <factors_f, factors_g> + tower(concatenated vectors)

The tower is HIDDEN layers, each dense -> BatchNorm -> ReLU, and a dense output.
"""

import os
from typing import Dict, List, NamedTuple, Tuple

import numpy as np

from semisync.common.compat import tf

_DIM = 8
_HIDDEN = (64, 32)
_BATCH_NORM_EPSILON = 1e-3
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # tf.layers under TensorFlow 2.16 and later


class _Table(NamedTuple):
    """One embedding table.

    Attributes:
        name: of the TensorFlow variable.
        rows: their number.
        partitions: their number, over the PS; 1 is a plain variable.
        fields: the click log's fields that look their ids up here, in the log's order.
    """

    name: str
    rows: int
    partitions: int
    fields: Tuple[str, ...]


def _tables(fields: Tuple[str, ...], numeric: int, partitions: int) -> List[_Table]:
    """The tables for a click log, without a table that no field uses.

    Args:
        fields: of the log, the `numeric` bucketised ones last.
        numeric: how many of them are numbers.
        partitions: of the categorical table.
    """
    categorical = len(fields) - numeric
    both = [
        _Table("ids/embedding", 1 << 16, partitions, tuple(fields[:categorical])),
        _Table("buckets/embedding", 1 << 10, 1, tuple(fields[categorical:])),
    ]
    return [table for table in both if table.fields]


def _layer_names() -> List[Dict[str, str]]:
    """TensorFlow's names of the tower's variables, layer by layer; the last has no BatchNorm."""
    hidden = [{"dense": "hidden_%d" % i, "norm": "norm_%d" % i} for i in range(len(_HIDDEN))]
    return hidden + [{"dense": "output"}]


class Inputs:
    """The placeholders of one batch.

    Attributes:
        ids: int64 [batch, fields], hashed.
        labels: float32 [batch].
    """

    def __init__(self, log):
        self._log = log
        self.ids = tf.placeholder(tf.int64, [None, len(log.fields)], name="ids")
        self.labels = tf.placeholder(tf.float32, [None], name="label")

    def feed(self, rows):
        """The feed dict for a slice of the log's rows."""
        return {self.ids: self._log.ids[rows], self.labels: self._log.labels[rows]}


def loss(inputs, log, partitions, training=True):
    """The mean log loss of a batch, with `training` as in `logits`."""
    logit = logits(inputs.ids, log.fields, log.numeric, partitions, training)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=inputs.labels, logits=logit)
    return tf.reduce_mean(losses)


def export(log, partitions, optimizer, path):
    """Writes the MetaGraph of the model as a job without a cluster trains it.

    Its variables are those of every mode's checkpoint. It is fed `ids`, `label`, and `training` in
    training.

    Args:
        optimizer: function that returns one.
        path: of the file.
    """
    with tf.Graph().as_default():
        training = tf.placeholder_with_default(False, [], name="training")
        mean = loss(Inputs(log), log, partitions, training)
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            optimizer().minimize(mean, global_step=step)
        tf.train.Saver().export_meta_graph(path)


def score(session, log, partitions, checkpoint=None, size=4096):
    """The click probability of every row of the log, float32 [rows].

    The variables hold values already, unless a checkpoint is given to restore them from.
    """
    ids = tf.placeholder(tf.int64, [None, len(log.fields)])
    probabilities = tf.sigmoid(logits(ids, log.fields, log.numeric, partitions, training=False))
    if checkpoint:
        tf.train.Saver().restore(session, checkpoint)
    starts = range(0, log.rows, size)
    return np.concatenate(
        [session.run(probabilities, {ids: log.ids[i : i + size]}) for i in starts]
    )


def logits(ids, fields, numeric, partitions, training):
    """Builds the model.

    Args:
        ids: int64 [batch, fields], hashed.
        fields, numeric, partitions: see `_tables`.
        training: a Python bool or a tensor; True normalises by the batch's own statistics and adds
            the updates of the moving ones to UPDATE_OPS.

    Returns:
        The logits, float32 [batch].
    """
    vectors = []
    start = 0
    for table in _tables(fields, numeric, partitions):
        columns = ids[:, start : start + len(table.fields)]
        start += len(table.fields)
        vectors.append(_look_up(table, columns))
    vectors = tf.concat(vectors, 1)  # [batch, fields, DIM]
    linear = tf.reduce_sum(vectors[:, :, 0], 1)
    factors = vectors[:, :, 1:]
    square_of_sum = tf.square(tf.reduce_sum(factors, 1))
    pairs = 0.5 * tf.reduce_sum(square_of_sum - tf.reduce_sum(tf.square(factors), 1), 1)
    deep = tf.reshape(vectors, [-1, len(fields) * _DIM])
    return linear + pairs + _tower(deep, training)


def _look_up(table, columns):
    rows = tf.floormod(columns, table.rows)
    partitioner = tf.fixed_size_partitioner(table.partitions) if table.partitions > 1 else None
    weights = tf.get_variable(
        table.name,
        [table.rows, _DIM],
        partitioner=partitioner,
        initializer=tf.random_normal_initializer(stddev=0.01, seed=1),
    )
    return tf.nn.embedding_lookup(weights, rows, partition_strategy="div")


def _tower(layer, training):
    names = _layer_names()
    for name, units in zip(names, _HIDDEN):
        layer = tf.layers.dense(layer, units, name=name["dense"], kernel_initializer=_kernel())
        layer = tf.layers.batch_normalization(
            layer, training=training, epsilon=_BATCH_NORM_EPSILON, name=name["norm"], fused=False
        )
        layer = tf.nn.relu(layer)
    output = tf.layers.dense(layer, 1, name=names[-1]["dense"], kernel_initializer=_kernel())
    return tf.reshape(output, [-1])


def _kernel():
    return tf.glorot_uniform_initializer(seed=2)
