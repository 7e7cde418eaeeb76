"""Staging: where each PS keeps its part of every payload until the global batch is applied.

One op stages the payload of a batch, so that it is there whole or not at all, and one op takes it.
Taking blocks while the payload is absent: take only a payload that a message has announced, or that
this process has staged itself. Staging a second payload under the same ticket changes nothing.
"""

from semisync.common.compat import raw_ops, tf


class Staging:
    """The payloads on one PS, each a list of tensors under its ticket.

    Args:
        name: shared by all processes of the job.
        device: the PS.
        items: the payload's items for this PS, see `semisync.transport.payload`.
    """

    def __init__(self, name, device, items):
        self.device = device
        self.items = items
        dtypes = [tensor.dtype.base_dtype for item in items for tensor in item.tensors]
        with tf.device(device), tf.control_dependencies(None):
            self._indices = tf.constant(list(range(len(dtypes))), tf.int32, name="indices")
        self._options = {"dtypes": dtypes, "shared_name": name}

    def put(self, ticket, payload):
        """Returns the op that stages `payload`, a list of tensors per item, under `ticket`."""
        values = [tensor for tensors in payload for tensor in tensors]
        with tf.device(self.device):
            return raw_ops.OrderedMapStage(
                key=ticket, indices=self._indices, values=values, name="put", **self._options
            )

    def take(self, ticket):
        """Removes the payload of `ticket`; returns a list of tensors per item."""
        with tf.device(self.device):
            tensors = raw_ops.OrderedMapUnstage(
                key=ticket, indices=self._indices, name="take", **self._options
            )
        flat = iter(tensors)
        return [[next(flat) for _ in item.tensors] for item in self.items]

    def drop(self, ticket):
        """Returns the op that removes the payload of `ticket`."""
        return tf.group(*[tensor for tensors in self.take(ticket) for tensor in tensors])

    def clear(self):
        """Returns the op that removes every payload."""
        with tf.device(self.device):
            return raw_ops.OrderedMapClear(name="clear", **self._options)
