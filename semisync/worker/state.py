"""The worker state: the ticket that a worker holds, and what it knows of it.

One int64 vector in the worker's own process, outside every checkpoint:

    ticket   NEVER_DRAWN, or the ticket for the next batch
    token    the clock just after that ticket was drawn
    waited   how long the draw took, in us
    pace     how long a global step took then, in us; 0 while that was not known
    held     when the ticket arrived, in us since 1970
    spent    1 when a run that failed may have staged a part of its payload under this ticket
    last     the ticket of the last batch

Its name carries the process's identity, so that no two workers share it wherever a device function
places it.
"""

from semisync.common.compat import tf
from semisync.transport.mailbox import NEVER_DRAWN

TICKET, TOKEN, WAITED, PACE, HELD, SPENT, LAST = range(7)


class WorkerState:
    """The vector, as ops of one worker read and write it.

    Args:
      name: no other worker's.
      device: of the worker's process.

    Attributes:
      variable: the vector.
      ticket, token, pace, held, last: its elements, before a run changes them.
      empty: True when there is no ticket that a batch may use.
    """

    def __init__(self, name, device):
        self.device = device
        with tf.device(device):
            # Not get_variable: the caller's variable scope may partition, reuse or regularise.
            self.variable = tf.Variable(
                tf.constant([NEVER_DRAWN, 0, 0, 0, 0, 0, NEVER_DRAWN], tf.int64),
                trainable=False,
                use_resource=True,
                name=name,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
            with tf.control_dependencies([self._initialised()]):
                self._values = self.variable.read_value()
            self.ticket, self.token = self._values[TICKET], self._values[TOKEN]
            self.pace, self.held = self._values[PACE], self._values[HELD]
            self.last = self._values[LAST]
            self.empty = tf.equal(self.ticket, NEVER_DRAWN) | tf.not_equal(self._values[SPENT], 0)

    def _initialised(self):
        """The op that fails in a session that did not run the local initialiser."""
        return tf.Assert(
            tf.is_variable_initialized(self.variable),
            [
                "GlobalBatchOptimizer: this session did not run tf.local_variables_initializer(), "
                "and has no hooks: train in a tf.train.MonitoredTrainingSession with hooks="
                "[opt.make_session_run_hook(is_chief)], not in a plain tf.Session or Keras' fit"
            ],
        )

    def spend(self, ready):
        """Returns the ticket, token and waiting time of this batch, which uses the ticket.

        A run that fails before its gradients are there keeps its ticket. One that fails later has
        spent it, since part of its payload may be staged: the hook draws another one then.

        Args:
          ready: tensors that are there once the batch's gradients are.
        """
        has_ticket = tf.Assert(
            tf.logical_not(self.empty),
            [
                "GlobalBatchOptimizer: this worker has no ticket; pass hooks="
                "[opt.make_session_run_hook(is_chief)] to every worker's MonitoredTrainingSession"
            ],
        )
        with tf.control_dependencies([has_ticket] + ready):
            held = tf.identity(self._values)
        spent = tf.concat([held[:SPENT], numbers(1), held[LAST:]], 0)
        with tf.control_dependencies([self.variable.assign(spent, read_value=False)]):
            return tf.unstack(tf.identity(held[: WAITED + 1]))

    def hold(self, drawn, last):
        """Returns the op that stores a ticket.

        Args:
          drawn: ticket, token, waited and pace, int64 [4].
          last: the ticket of the last batch.
        """
        with tf.device(self.device):
            values = tf.concat([drawn, numbers(0, 0, last)], 0)
            stored = self.variable.assign(values, read_value=False, name="hold")
            # The time waits for an op that is here: to wait for `drawn` itself would be another
            # message between the processes.
            with tf.control_dependencies([stored]):
                held = numbers(0, 0, 0, 0, now(), 0, 0)
                return self.variable.assign_add(held, read_value=False)

    def clear(self, last):
        """Returns the op that stores no ticket, and `last`, the ticket of the last batch."""
        return self.hold(numbers(NEVER_DRAWN, 0, 0, 0), last)


def now():
    """The time in us since 1970, an int64 tensor."""
    return tf.cast(tf.timestamp() * 1e6, tf.int64)


def numbers(*values):
    """Numbers and scalars as an int64 vector."""
    if all(isinstance(value, int) for value in values):
        return tf.constant(values, tf.int64)
    return tf.stack(
        [tf.constant(v, tf.int64) if isinstance(v, int) else tf.cast(v, tf.int64) for v in values]
    )
