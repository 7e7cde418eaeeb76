"""Rows of sparse gradients, summed by id.

tf.unique hashes every id: some 50 ns each while its table fits into the cache and the double when
it does not, which is what the ids of a whole global batch make of it. Where there are at least
rows / DENSITY ids it is cheaper to mark them in an array over all rows of the variable. That yields
the ids in ascending order, too, and the update that follows walks through the variable once instead
of jumping to and fro.
"""

import functools

from semisync.common.compat import raw_ops, tf
from semisync.transport.traced import Template

DENSITY = 8
NEVER = tf.int32.max


def sum_by_id(values, ids, shape):
    """Sums the rows of each id.

    Args:
      values: list of tensors [n, ...], one for each batch.
      ids: list of int32 or int64 tensors [n], one for each batch, each id from 0 to shape[0] - 1.
      shape: of the variable, a tensor of the ids' dtype.

    Returns: the sums [k, ...], the ids [k], each once, and how many rows each had, int32 [k].
    """
    template = _template(len(values), values[0].dtype.base_dtype, ids[0].dtype.base_dtype)
    sums, each, counts = template(*values, *ids, shape)
    sums.set_shape(tf.TensorShape([None]).concatenate(values[0].shape[1:]))
    return sums, each, counts


@functools.lru_cache(maxsize=None)
def _template(batches, dtype, kind):
    """The `Template` of `sum_by_id` for that many batches, their values' dtype and their ids'."""

    def semisync_sum_by_id(*tensors):
        values, ids = tf.concat(tensors[:batches], 0), tf.concat(tensors[batches:-1], 0)
        rows = tensors[-1][0]
        dense = tf.greater_equal(tf.size(ids, out_type=kind) * DENSITY, rows)
        return tf.cond(
            dense,
            lambda: _by_marking(values, ids, rows),
            lambda: _by_hashing(values, ids),
            name="semisync_sum_by_id",  # of the branches, which are functions, too
        )

    specs = [(dtype, None)] * batches + [(kind, [None])] * (batches + 1)
    return Template(semisync_sum_by_id, specs)


def _by_marking(values, ids, rows):
    """Gathers the row in which each id comes first, then adds the rows of ids that come again."""
    places = tf.range(tf.size(ids))
    first = tf.math.unsorted_segment_min(places, ids, rows)
    there = tf.less(first, NEVER)
    each = tf.reshape(tf.where(there), [-1])
    again = tf.reshape(tf.where(tf.not_equal(tf.gather(first, ids), places)), [-1])
    rank = tf.cumsum(tf.cast(there, tf.int32), exclusive=True)
    target = tf.expand_dims(tf.gather(rank, tf.gather(ids, again)), 1)
    sums = raw_ops.TensorScatterAdd(
        tensor=tf.gather(values, tf.gather(first, each)),
        indices=target,
        updates=tf.gather(values, again),
    )
    ones = tf.ones_like(each, tf.int32)
    counts = raw_ops.TensorScatterAdd(
        tensor=ones, indices=target, updates=tf.ones_like(again, tf.int32)
    )
    return sums, tf.cast(each, ids.dtype), counts


def _by_hashing(values, ids):
    each, places, counts = tf.unique_with_counts(ids)
    return tf.math.unsorted_segment_sum(values, places, tf.size(each)), each, counts
