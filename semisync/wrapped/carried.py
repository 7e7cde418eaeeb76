"""Hyperparameters on their way: each batch brings its own, the chief uses their mean."""

from semisync.common.compat import tf
from semisync.transport.payload import Record
from semisync.transport.staging import Shelf


class Carried:
    """Has what each batch brings take the place of what the chief's own run would give.

    Args:
      found: `Hyperparameters` of the chief's step.
      name: shared by all processes of the job.
      device: of the global step.
      assembly: the `Assembly`, not finished.

    Attributes:
      shelves: list of the shelf on which they lie; empty without any.
      begin: the op with which a chief begins.
      keep: the op that remembers them, for a step in which no batch counts.
    """

    def __init__(self, found, name, device, assembly):
        self.shelves, begin, keep = [], [], []
        if found.carried:
            record = Record(found.tensors(), device, None)
            self.shelves = [Shelf(name + "/hyperparameters", device, [record])]
            _, columns = assembly.take(self.shelves)[record]
            lasts = [_last(name, number, column) for number, column in enumerate(columns)]
            means = list(map(_mean, columns, lasts))
            found.replace(means)
            begin = [last.initializer for last in lasts]
            # Each mean has read the step before's value by then.
            keep = [last.assign(mean, read_value=False) for last, mean in zip(lasts, means)]
        self.begin, self.keep = tf.group(*begin), tf.group(*keep)


def _last(name, number, column):
    """The variable that holds the value of the step before."""
    # As those of the board: the same name in every process, and no saver's.
    with tf.name_scope(None):
        return tf.Variable(
            tf.zeros(column.shape[1:], column.dtype),
            trainable=False,
            use_resource=True,
            name="{}/hyperparameter_{}".format(name, number),
            collections=[],
        )


def _mean(values, last):
    """Of the rows of a tensor [k, ...]; exactly their value where all are one, `last` for k = 0."""
    first = tf.concat([values, tf.expand_dims(last.read_value(), 0)], 0)[0]
    count = tf.cast(tf.maximum(tf.shape(values)[0], 1), values.dtype)
    return first + tf.reduce_sum(values - first, 0) / count
