"""The chief's ops on the shelves: M payloads become one global batch.

    apply      the items of M payloads, combined; what is built on them updates the variables
    weigh      one payload, to be counted with a weight other than 1
    blank      one payload, replaced by nothing: a stale batch that keeps its slot
    fill       nothing, put under a ticket that brought no payload
    sweep      whatever lies under a ticket, or does not, on any of the PS, taken away

All but the first work on one ticket in a run of their own before the global batch is applied, so
that a global batch whose weights are all 1 costs no arithmetic but its sum.
"""

import functools

from semisync.common.compat import tf


class Assembly:
    """Builds the ops: `take` for all shelves, together or apart, then `finish`.

    Args:
      size: M.
    """

    def __init__(self, size):
        self.tickets = tf.placeholder(tf.int64, [size], name="tickets")
        self.ticket = tf.placeholder(tf.int64, [], name="ticket")
        self.weight = tf.placeholder(tf.float32, [], name="weight")
        # M / the number of batches, for the items that are means: 1 but for the last global batch.
        self.share = tf.placeholder(tf.float32, [], name="share")
        self._numbers = tf.unstack(self.tickets)
        self._shelves = []
        self.weigh = self.blank = self.fill = self.sweep = None

    def take(self, shelves):
        """Takes M payloads off each shelf; returns {item: what M batches make of it}."""
        combined = {}
        for shelf in shelves:
            with tf.device(shelf.device):
                batches = [shelf.get(ticket) for ticket in self._numbers]
                for item, column in zip(shelf.items, zip(*batches)):
                    combined[item] = item.combined(column)
        self._shelves += shelves
        return combined

    def finish(self):
        """Builds the ops that work on one ticket."""
        weigh, blank, fill, sweep = [], [], [], []
        for shelf in self._shelves:
            with tf.device(shelf.device):
                nothing = _nothing(shelf)
                weigh.append(self._weigh(shelf))
                fill.append(shelf.put(self.ticket, nothing))
                with tf.control_dependencies([shelf.drop(self.ticket)]):
                    blank.append(shelf.put(self.ticket, nothing))
                # A put where something lies changes nothing, so that the drop after it never waits.
                with tf.control_dependencies([shelf.put(self.ticket, nothing)]):
                    sweep.append(shelf.drop(self.ticket))
        self.weigh, self.blank = tf.group(*weigh), tf.group(*blank)
        self.fill, self.sweep = tf.group(*fill), tf.group(*sweep)

    def _weigh(self, shelf):
        weight, of_mean = self.weight, self.weight * self.share
        weighed = [
            item.weighed(tensors, of_mean if item.is_mean else weight)
            for item, tensors in zip(shelf.items, shelf.get(self.ticket))
        ]
        return shelf.put(self.ticket, weighed)


def _nothing(shelf):
    """The payload of a batch that adds nothing, each kind of tensor in it once."""
    zeros = functools.lru_cache(maxsize=None)(tf.zeros)
    return [
        [zeros(shape, tensor.dtype) for tensor, shape in zip(item.tensors, item.nothing())]
        for item in shelf.items
    ]
