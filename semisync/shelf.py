"""The shelves: where each PS keeps what the batches bring for its variables, until it is applied.

The payload of a batch is put in one op, so that it is there whole or not at all, and taken in one
op. Taking blocks while the payload is absent: take only what a message has announced.
"""

from semisync.compat import raw_ops, tf


class Shelf:
    """The payloads on one PS, each a list of tensors under its ticket.

    Args:
      name: shared by all processes of the job.
      device: the PS.
      dtypes: of the payload's tensors, in order.
    """

    def __init__(self, name, device, dtypes):
        self.device = device
        self._indices = list(range(len(dtypes)))
        self._options = {"dtypes": dtypes, "shared_name": name}

    def put(self, ticket, payload):
        """Returns the op that stages `payload`, a list of tensors, under `ticket`."""
        with tf.device(self.device):
            return raw_ops.OrderedMapStage(
                key=ticket, indices=self._indices, values=payload, name="put", **self._options
            )

    def get(self, ticket):
        """Takes the payload of `ticket` away; returns its list of tensors."""
        with tf.device(self.device):
            return raw_ops.OrderedMapUnstage(
                key=ticket, indices=self._indices, name="get", **self._options
            )

    def clear(self):
        """Returns the op that throws every payload away."""
        with tf.device(self.device):
            return raw_ops.OrderedMapClear(name="clear", **self._options)
