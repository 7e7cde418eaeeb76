"""The worker state: the ticket that a worker holds, and what it knows of it.

One int64 vector in the worker's own process, outside every checkpoint:

    kind     STAGED while a batch may use the ticket; USED before the first ticket, and once a batch
             may have staged a part of its payload under this one
    ticket   NEVER_DRAWN, or the ticket
    token    the clock just after the ticket was drawn
    waited   how long the draw took, in us
    due      until when a batch of this token is probably not too stale, in us since 1970
    last     the ticket of the batch before

Its first four numbers are what a batch tells the chief. Its name carries the process's identity, so
that no two workers share it wherever a device function places it.
"""

from semisync.common.compat import raw_ops, tf
from semisync.transport.messages import NEVER_DRAWN, STAGED

KIND, TICKET, TOKEN, WAITED, DUE, LAST = range(6)
USED = -1


class WorkerState:
    """The vector, as ops of one worker read and write it.

    Args:
        name: no other worker's.
        device: of the worker's process.

    Attributes:
        variable: the vector.
        values: the vector before a run changes it.
        elements: the same, a list of scalars.
        ticket, token, due: three of them.
        empty: True when there is no ticket that a batch may use.
        initializer: the op with which a session begins.
    """

    def __init__(self, name, device):
        self.device = device
        with tf.device(device):
            # Not get_variable: the caller's variable scope may partition, reuse or regularise.
            self.variable = tf.Variable(
                tf.constant([USED, NEVER_DRAWN, 0, 0, 0, NEVER_DRAWN], tf.int64),
                trainable=False,
                use_resource=True,
                name=name,
                collections=[],  # not of those that a job's own local initialiser may leave out
            )
            self.initializer = self.variable.initializer
            with tf.control_dependencies([self._initialised()]):
                self.values = self.variable.read_value()
            self.elements = tf.unstack(self.values)
            kind, self.ticket, self.token, _, self.due, self._before = self.elements
            self._usable = tf.equal(kind, STAGED)
            self.empty = tf.logical_not(self._usable)

    def _initialised(self):
        """The op that fails in a session without the hook."""
        return tf.Assert(
            tf.is_variable_initialized(self.variable),
            [
                "GlobalBatchOptimizer: this session has no hook of it: train in a "
                "tf.train.MonitoredTrainingSession with hooks="
                "[opt.make_session_run_hook(is_chief)] in every worker, not in a plain tf.Session "
                "or Keras' fit"
            ],
        )

    def last(self):
        """The ticket of the last batch, before a run changes it."""
        return tf.where(self.empty, self.ticket, self._before)

    def spend(self, batch, ready):
        """Uses the ticket.

        A run that fails before its gradients are there keeps its ticket. One that fails later has
        spent it, since part of its payload may be staged: the hook draws another one then.

        Args:
            batch: the first BATCH elements, or the same of another kind.
            ready: tensors that are there once the batch's gradients are.

        Returns:
            Kind, ticket, token and waited, int64 [BATCH].
        """
        has_ticket = tf.Assert(
            self._usable,
            [
                "GlobalBatchOptimizer: this worker has no ticket: run the train op in the "
                "MonitoredTrainingSession, whose hook draws one, not in the tf.Session within it"
            ],
        )
        with tf.control_dependencies([has_ticket] + ready):
            spent = raw_ops.ResourceScatterUpdate(
                resource=self.variable.handle,
                indices=tf.constant(KIND),
                updates=tf.constant(USED, tf.int64),
            )
        batch = tf.stack(batch)
        with tf.control_dependencies([spent]):
            return sealed(batch)

    def hold(self, drawn, since):
        """The op that stores a ticket.

        Args:
            drawn: the vector, but for `due`: how long the ticket is probably not too stale, in us.
            since: the start of that time, as `now` tells it.
        """
        with tf.device(self.device):
            return self.variable.assign(drawn + numbers(0, 0, 0, 0, since, 0), read_value=False)

    def renew(self, token, fresh_for):
        """The op that gives the ticket another token, read now, and its time; see `hold`."""
        with tf.device(self.device):
            return raw_ops.ResourceScatterUpdate(
                resource=self.variable.handle,
                indices=tf.constant([TOKEN, DUE]),
                updates=tf.stack([token, fresh_for + now()]),
            )


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


def sealed(vector):
    """A vector that is sent whole and waits for what is before it.

    TensorFlow 2 would send the parts that it sees packed, and bypass a slice or an identity.
    """
    return raw_ops.DeepCopy(x=vector)
