"""Rows of a sparse gradient, summed by id.

tf.unique hashes every id: some 50 ns each while its table fits into the cache and the double when
it does not, which is what the ids of a whole global batch make of it. Where there are at least
rows / DENSITY ids it is cheaper to mark them in an array over all rows of the variable. That yields
the ids in ascending order, too, and the update that follows walks through the variable once instead
of jumping to and fro.
"""

from semisync.compat import raw_ops, tf

DENSITY = 8
NEVER = tf.int32.max


def sum_by_id(values, ids, rows):
    """Sums the rows of each id.

    Args:
      values: [n, ...].
      ids: int32 or int64 [n], each from 0 to rows - 1.
      rows: of the variable, an int.

    Returns: the sums [k, ...], the ids [k], each once, and how many rows each had, int32 [k].
    """
    dense = tf.greater_equal(tf.size(ids, out_type=tf.int64) * DENSITY, rows)
    sums, each, counts = tf.cond(
        dense, lambda: _by_marking(values, ids, rows), lambda: _by_hashing(values, ids)
    )
    sums.set_shape(tf.TensorShape([None]).concatenate(values.shape[1:]))
    each.set_shape([None])
    return sums, each, counts


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
