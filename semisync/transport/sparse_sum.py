"""Rows of sparse gradients, summed by id.

tf.unique hashes every id: some 50 ns each while its table fits into the cache and twice that when
it does not, as with the ids of a whole global batch. From rows / DENSITY ids on it is cheaper to
mark them in an array over all rows of the variable. That also yields the ids in ascending order, so
that the following update walks through the variable once.
"""

import functools

from semisync.common.compat import raw_ops, tf
from semisync.transport.graph_ops import TracedFunction

DENSITY = 8
NEVER = tf.int32.max  # unsorted_segment_min's value for an id that does not occur


def sum_by_id(values, ids, shape):
    """Sums the rows of each id.

    Args:
        values: list of tensors [n, ...], one per batch.
        ids: list of int32 or int64 tensors [n], one per batch, each id from 0 to shape[0] - 1.
        shape: of the variable, a tensor of the ids' dtype.

    Returns:
        The sums [k, ...], the ids [k], each once, and how many rows each had, int32 [k].
    """
    traced = _traced(len(values), values[0].dtype.base_dtype, ids[0].dtype.base_dtype)
    sums, unique, counts = traced(*values, *ids, shape)
    sums.set_shape(tf.TensorShape([None]).concatenate(values[0].shape[1:]))
    return sums, unique, counts


@functools.lru_cache(maxsize=None)
def _traced(batches, dtype, id_dtype):
    """The `TracedFunction` of `sum_by_id` for so many batches and the dtypes of values and ids."""

    def semisync_sum_by_id(*tensors):
        values, ids = tf.concat(tensors[:batches], 0), tf.concat(tensors[batches:-1], 0)
        rows = tensors[-1][0]
        dense = tf.greater_equal(tf.size(ids, out_type=id_dtype) * DENSITY, rows)
        return tf.cond(
            dense,
            lambda: _by_marking(values, ids, rows),
            lambda: _by_hashing(values, ids),
            name="semisync_sum_by_id",  # also of the branches, which are functions themselves
        )

    specs = [(dtype, None)] * batches + [(id_dtype, [None])] * (batches + 1)
    return TracedFunction(semisync_sum_by_id, specs)


def _by_marking(values, ids, rows):
    """Gathers the first row of each id, then adds the rows of ids that occur again."""
    places = tf.range(tf.size(ids))
    first = tf.math.unsorted_segment_min(places, ids, rows)
    present = tf.less(first, NEVER)
    unique = tf.reshape(tf.where(present), [-1])
    again = tf.reshape(tf.where(tf.not_equal(tf.gather(first, ids), places)), [-1])
    # The number of present ids below an id is its place among the ascending ones.
    rank = tf.cumsum(tf.cast(present, tf.int32), exclusive=True)
    target = tf.expand_dims(tf.gather(rank, tf.gather(ids, again)), 1)
    sums = raw_ops.TensorScatterAdd(
        tensor=tf.gather(values, tf.gather(first, unique)),
        indices=target,
        updates=tf.gather(values, again),
    )
    ones = tf.ones_like(unique, tf.int32)
    counts = raw_ops.TensorScatterAdd(
        tensor=ones, indices=target, updates=tf.ones_like(again, tf.int32)
    )
    return sums, tf.cast(unique, ids.dtype), counts


def _by_hashing(values, ids):
    unique, places, counts = tf.unique_with_counts(ids)
    return tf.math.unsorted_segment_sum(values, places, tf.size(unique)), unique, counts
