"""The worker state: the ticket that a worker holds, and data about it.

One int64 vector in the worker's own process, outside every checkpoint:

    kind     STAGED while a batch may use the ticket; USED before the first ticket, and once a batch
             may have staged a part of its payload under this one
    ticket   NEVER_DRAWN, or the ticket
    token    the clock just after the ticket was drawn
    waited   how long the draw took, in us
    session  grows with each beginning, see `semisync.transport.messages`
    due      until when a batch of this token is probably not too stale, in us since 1970
    last     the ticket of the batch before
    spent    when a batch last used a ticket, in us since 1970

Its first five numbers are a batch's message to the chief. Its name contains the process's identity,
so that no two workers share it wherever a device function places it.
"""

from semisync.common.compat import raw_ops, tf
from semisync.transport.graph_ops import value_or_initial
from semisync.transport.messages import NEVER_DRAWN, STAGED

KIND, TICKET, TOKEN, WAITED, SESSION, DUE, LAST, SPENT = range(8)
USED = -1


class WorkerState:
    """The vector, as ops of one worker read and write it.

    Args:
        name: unique to the worker.
        device: of the worker's process.

    Attributes:
        variable: the vector.
        values: the vector before a run changes it.
        elements: the same, a list of scalars.
        ticket, token, session, due, spent: five of them.
        empty: True when there is no ticket that a batch may use.
    """

    def __init__(self, name, device):
        self.device = device
        with tf.device(device):
            # Not get_variable: the caller's variable scope may partition, reuse or regularise.
            self.variable = tf.Variable(
                tf.constant([USED, NEVER_DRAWN, 0, 0, 0, 0, NEVER_DRAWN, 0], tf.int64),
                trainable=False,
                use_resource=True,
                name=name,
                collections=[],  # a job's own local initialiser may leave it out
            )
            with tf.control_dependencies([self._initialised()]):
                self.values = self.variable.read_value()
            self.elements = tf.unstack(self.values)
            kind, self.ticket, self.token, _, self.session, self.due, _, self.spent = self.elements
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
        return _last(self.elements)

    def begin(self):
        """Begins a session without a ticket; returns its number and `last`, once it has begun.

        The clock may have been set back since the last session, and `last` may have been reset with
        the variables of this process.
        """
        with tf.device(self.device):
            before = tf.unstack(value_or_initial(self.variable))
            last, session = _last(before), tf.maximum(before[SESSION] + 1, now())
            begun = sealed(numbers(USED, last, 0, 0, session, 0, last, before[SPENT]))
            with tf.control_dependencies([self.variable.assign(begun, read_value=False)]):
                elements = tf.unstack(sealed(begun))
            return elements[SESSION], elements[LAST]

    def spend(self, batch, ready):
        """Uses the ticket.

        A run that fails before its gradients are computed keeps its ticket. One that fails later
        has spent it, since part of its payload may be staged: the hook then draws another one.

        Args:
            batch: the first BATCH elements, or the same of another kind.
            ready: tensors that are computed once the batch's gradients are.

        Returns:
            Kind, ticket, token, waited and session, int64 [BATCH].
        """
        has_ticket = tf.Assert(
            self._usable,
            [
                "GlobalBatchOptimizer: this worker has no ticket: run the train op in the "
                "MonitoredTrainingSession, whose hook draws one, not in the tf.Session within it"
            ],
        )
        with tf.control_dependencies([has_ticket] + ready):
            spent = self._write([KIND, SPENT], numbers(USED, now()))
        batch = tf.stack(batch)
        with tf.control_dependencies([spent]):
            return sealed(batch)

    def hold(self, drawn, since):
        """The op that stores a ticket.

        Args:
            drawn: kind, ticket, token, waited, for how long the ticket is probably not too stale,
                in us, and `last`: int64 [6].
            since: the start of that time, see `now`.
        """
        with tf.device(self.device):
            due = numbers(0, 0, 0, 0, since, 0)
            return self._write([KIND, TICKET, TOKEN, WAITED, DUE, LAST], drawn + due)

    def renew(self, token, fresh_for):
        """The op that replaces the ticket's token by one that is read now, and its time; see
        `hold`."""
        with tf.device(self.device):
            return self._write([TOKEN, DUE], tf.stack([token, fresh_for + now()]))

    def _write(self, places, values):
        """The op that writes some of the numbers."""
        return raw_ops.ResourceScatterUpdate(
            resource=self.variable.handle, indices=tf.constant(places), updates=values
        )


def _last(elements):
    """The ticket that a batch used last."""
    return tf.where(tf.equal(elements[KIND], STAGED), elements[LAST], elements[TICKET])


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
    """A vector that is sent whole and waits for its control dependencies.

    TensorFlow 2 would send the parts that it sees packed, and bypass a slice or an identity.
    """
    return raw_ops.DeepCopy(x=vector)
