"""Tables of rows that a job trains by hand: lookup, a formula, insert.

The protocol, by role:

Every worker
1. computes the gradient of the rows that its batch looked up, and sends it with the ids in its
   payload, like the gradient of some rows of a variable.

The chief, with the global batch's rows on the table's PS
2. sums the rows of each id over the M batches, as of any sparse gradient;
3. runs the job's own update once: it looks up value and slots of each id, and inserts new ones.

The chief is the one writer, so that no update is lost.
"""

from collections import namedtuple

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.transport.sparse_sum import sum_by_id

_Op = namedtuple("_Op", "name device")


class RowTable:
    """A table of rows by raw id that the job itself trains, for `apply_gradients`.

    The rows of ids are sent, staged and summed like those of a variable's sparse gradient, and
    `update` does once per global step, or with the policy "async" once per batch, the job's updates
    with each batch. Checkpoints hold the job's own tables, as before.

    Args:
        name: the same in every process; the policy's regexes are searched in it.
        dim: numbers in a row.
        device: of the table, and of all that `update` makes: a parameter server.
        update: (ids int64 [n], each once; gradients float32 [n, dim], the global batch's) -> op. It
            makes no variables; a learning rate that a worker feeds goes with each batch.
        key_dtype, dtype: of ids, int64 or int32, and of rows.

    Attributes:
        op: with a name and a device, as a variable's.
        shape: as a variable's; there are as many rows as ids.

    Examples:
        >>> table, sums = (
        ...     tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, new, -1, -2, name=name)
        ...     for name, new in (("users", [0.0] * 8), ("sums", [0.1] * 8))
        ... )
        >>> def adagrad(ids, gradients):
        ...     squares = sums.lookup(ids) + tf.square(gradients)
        ...     rows = table.lookup(ids) - 0.05 * gradients / tf.sqrt(squares)
        ...     return tf.group(sums.insert(ids, squares), table.insert(ids, rows))
        >>> users = semisync.RowTable("users", dim=8, device="/cpu:0", update=adagrad)  # a PS
        >>> ids = tf.constant([2**40, -7], tf.int64)
        >>> rows = table.lookup(ids)
        >>> gradient = tf.gradients(tf.nn.l2_loss(rows - 1.0), [rows])[0]
        >>> step = tf.train.get_or_create_global_step()
        >>> opt = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.05), 32)
        >>> train_op = opt.apply_gradients([(tf.IndexedSlices(gradient, ids), users)], step)
    """

    def __init__(self, name, dim, device, update, key_dtype=tf.int64, dtype=tf.float32):
        self.name, self.device, self.dtype = name, device, tf.as_dtype(dtype)
        self.op = _Op(name, device)
        self.shape = tf.TensorShape([tf.as_dtype(key_dtype).max, dim])
        self._update, self._key_dtype = update, tf.as_dtype(key_dtype)

    def checked(self, gradient):
        """The gradient of some of the rows, of known shape.

        Args:
            gradient: a tf.IndexedSlices.

        Returns:
            A tf.IndexedSlices of ids [n] and values [n, dim].

        Raises:
            UsageError: it is not of some of the rows.
        """
        if not isinstance(gradient, tf.IndexedSlices):
            raise UsageError(
                "the gradient of the RowTable {} is one tensor: give tf.IndexedSlices(gradient, "
                "ids)".format(self.name)
            )
        dtypes = gradient.indices.dtype.base_dtype, gradient.values.dtype.base_dtype
        row = gradient.values.shape[1:]
        if dtypes != (self._key_dtype, self.dtype) or not row.is_compatible_with(self.shape[1:]):
            raise UsageError(
                "the gradient of the RowTable {} has ids of type {} and rows {} of type {}: it was "
                "made for {}, {} and {}".format(
                    self.name,
                    dtypes[0].name,
                    row,
                    dtypes[1].name,
                    self._key_dtype.name,
                    self.shape[1:],
                    self.dtype.name,
                )
            )
        rows = tf.ensure_shape(gradient.values, [None, *self.shape.as_list()[1:]])
        return tf.IndexedSlices(rows, tf.reshape(gradient.indices, [-1]))

    def applied(self, gradient):
        """The op that trains the table.

        Args:
            gradient: a tf.IndexedSlices with each id once.

        Returns:
            An op.
        """
        with tf.device(self.device):
            return tf.group(self._update(gradient.indices, gradient.values))

    def applied_alone(self, gradient):
        """The same with the gradient of one batch, in which ids may repeat.

        Args:
            gradient: a tf.IndexedSlices.

        Returns:
            An op.
        """
        with tf.device(self.device):
            shape = tf.constant(self.shape.as_list(), self._key_dtype)
            rows, ids, _ = sum_by_id([gradient.values], [gradient.indices], shape)
            return self.applied(tf.IndexedSlices(rows, ids))


def checked(pairs):
    """(gradient, variable), with the gradients of tables of rows `checked`."""
    return [
        (each.checked(gradient) if isinstance(each, RowTable) else gradient, each)
        for gradient, each in pairs
    ]


def divided(pairs):
    """(gradient, variable) of tables of rows, and of variables."""
    tables = [pair for pair in pairs if isinstance(pair[1], RowTable)]
    return tables, [pair for pair in pairs if not isinstance(pair[1], RowTable)]
