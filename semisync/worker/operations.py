"""The worker's half: the ticket in its hand and the train op that spends it.

The hand is one int64 vector that lives in the worker's own process, outside every checkpoint:

    ticket   NEVER_DRAWN, or the ticket for the next batch
    token    the clock just after that ticket was drawn
    waited   how long the draw took, in us
    pace     how long a global step takes, in us, as the board said then; 0: it did not know
    held     when the ticket came here, in us since 1970
    spent    1 when a run that failed may have staged a part of its payload under this ticket
    last     the ticket of the last batch

Its name carries the process's identity: wherever a device function may place it, no two workers
share it.
"""

import os
import socket
import uuid

from semisync.common.compat import raw_ops, tf
from semisync.staleness import weights_of
from semisync.transport.devices import on_cpu
from semisync.transport.mailbox import DISAGREED, DRAWN, JOINED, LEFT, STAGED, WITHHELD

TICKET, TOKEN, WAITED, PACE, HELD, SPENT, LAST = range(7)
NEVER_DRAWN = -1


class Worker:
    """Builds the ops of one worker.

    Args:
      desk, board: the `Desk` and the `Board`.
      ready: tensors that are there once the batch's gradients are.
      early: a tensor that is there when most of the batch's work is done, at the latest with them.
    """

    def __init__(self, desk, board, ready, early):
        identity = uuid.uuid4().hex[:12]
        self._desk, self._board, self._ready, self._early = desk, board, ready, early
        # What the device function in force gives to an op that is no variable, else where the
        # gradients are computed.
        self.device = on_cpu(tf.no_op(name="device").device or ready[0].device)
        self.member = member_name(self.device, identity)
        with tf.device(self.device):
            # Not get_variable: the caller's variable scope may partition, reuse or regularise.
            self.hand = tf.Variable(
                tf.constant([NEVER_DRAWN, 0, 0, 0, 0, 0, NEVER_DRAWN], tf.int64),
                trainable=False,
                use_resource=True,
                name="semisync_hand_" + identity,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
            with tf.control_dependencies([self._initialised()]):
                self._look = self.hand.read_value()
            self.ticket, self.token = self._look[TICKET], self._look[TOKEN]
            self.empty = tf.equal(self.ticket, NEVER_DRAWN) | tf.not_equal(self._look[SPENT], 0)
            self.join = desk.tell(self.member, _numbers(JOINED, 0, 0, 0))
            self.leave = desk.tell(self.member, _numbers(LEFT, self.ticket, 0, 0))
            self.objection = tf.placeholder(tf.string, [], name="objection")
            self.object = desk.tell(self.objection, _numbers(DISAGREED, 0, 0, 0))
            self.first_draw = self._draw(self._look[LAST])
            self.fate = board.fate_of(self._look[LAST])

    def train_op(self, policy, send, draw):
        """Returns the op of one batch: spend the ticket, send, tell, draw the next.

        Args:
          policy: staleness -> weight, to withhold a batch that is too stale; None sends them all.
          send: (ticket, gate) -> list of the ops that stage the payload under the ticket and do
            whatever else a batch does on the PS. `gate` is a function that every tensor passes on
            its way, and that lets nothing through when the batch is not to be sent.
          draw: False leaves the hand empty; `first_draw` fills it then.
        """
        with tf.device(self.device):
            ticket, token, waited = self._spend()
            if policy is None:
                numbers = _numbers(STAGED, ticket, token, waited)
                sent = send(ticket, lambda tensor: tensor)
            else:
                stale = self._too_stale(policy)
                kind = tf.where(stale, tf.constant(WITHHELD), tf.constant(STAGED))
                numbers = _numbers(kind, ticket, token, waited)
                sent = [self._unless(stale, send, numbers)]
            with tf.control_dependencies(sent):
                told = self._desk.tell(self.member, numbers)
            with tf.control_dependencies([told]):
                return (
                    self._draw(ticket)
                    if draw
                    else self._hold(_numbers(NEVER_DRAWN, 0, 0, 0), ticket)
                )

    def _initialised(self):
        """The op that fails in a session that did not run the local initialiser."""
        return tf.Assert(
            tf.is_variable_initialized(self.hand),
            [
                "GlobalBatchOptimizer: this session did not run tf.local_variables_initializer(), "
                "and has no hooks: train in a tf.train.MonitoredTrainingSession with hooks="
                "[opt.make_session_run_hook(is_chief)], not in a plain tf.Session or Keras' fit"
            ],
        )

    def _too_stale(self, policy):
        """True when the policy already gives the batch the weight 0.

        To ask for the clock takes a round trip, so a batch asks only when it took long: when twice
        as many global steps as usual in that time, and one more, would make it too stale. Whatever
        is too stale all the same, or becomes so later, is sent, and found by the chief.
        """
        with tf.control_dependencies([self._early]):
            now = _now()
        steps = (now - self._look[HELD]) / tf.maximum(self._look[PACE], 1)
        doubtful = tf.equal(self._look[PACE], 0) | self._rejects(policy, 2 * steps + 1)
        # Never a Switch of its own condition, nor a constant into a Merge: TensorFlow 2's constant
        # folding may go round in circles on these for ever.
        sure, ask = raw_ops.Switch(data=now, pred=doubtful)
        with tf.control_dependencies([ask]):
            clock = self._read_clock()
        with tf.control_dependencies([clock]):  # a policy may ignore the staleness
            stale = tf.identity(self._rejects(policy, clock - self.token))
        return raw_ops.Merge(inputs=[tf.less(sure, 0), stale])[0]

    @staticmethod
    def _rejects(policy, staleness):
        staleness = tf.reshape(tf.cast(staleness, tf.float32), [1])
        return tf.less_equal(weights_of(policy, staleness)[0], 0)

    def _unless(self, stale, send, numbers):
        """Returns a tensor that is there once the batch is sent, or is not to be sent.

        Switch and Merge by hand rather than tf.cond: a branch of tf.cond may be a function of its
        own, and what the optimizer does to reference variables cannot be put into one. The Merge
        lies where the next ticket is drawn, so that nothing need come back to the worker.
        """
        ticket = raw_ops.Switch(data=numbers[1], pred=stale)[0]
        go = raw_ops.Switch(data=self.token, pred=stale)[0]

        def gate(tensor):  # on its way as soon as it is computed: only the ticket makes it count
            with tf.control_dependencies([go]), tf.device(self.device):
                return tf.identity(tensor)

        sent = send(ticket, gate)
        with tf.device(self._desk.device):
            told = raw_ops.Switch(data=numbers, pred=tf.equal(numbers[0], WITHHELD))
            with tf.control_dependencies(sent):
                fresh = tf.identity(told[0])
            return raw_ops.Merge(inputs=[fresh, told[1]])[0]

    def _read_clock(self):
        with tf.device(self._board.device):
            return self._board.clock.read_value()

    def _spend(self):
        """The ticket, token and waiting time of this batch; from here on the hand is empty.

        A run that fails before its gradients are there keeps its ticket. One that fails later has
        spent it, since part of its payload may be staged: the hook draws another one then.
        """
        drawn = tf.Assert(
            tf.logical_not(self.empty),
            [
                "GlobalBatchOptimizer: this worker has no ticket; pass hooks="
                "[opt.make_session_run_hook(is_chief)] to every worker's MonitoredTrainingSession"
            ],
        )
        with tf.control_dependencies([drawn] + self._ready):
            held = tf.identity(self._look)
        spent = tf.concat([held[:SPENT], _numbers(1), held[LAST:]], 0)
        with tf.control_dependencies([self.hand.assign(spent, read_value=False)]):
            return tf.unstack(tf.identity(held[: WAITED + 1]))

    def _announced(self):
        """Draws a ticket and tells the chief who holds it; returns it and the waiting time."""
        ticket, waited = self._desk.draw()
        with tf.device(self._desk.device):
            numbers = _numbers(DRAWN, ticket, 0, waited)
        with tf.control_dependencies([self._desk.tell(self.member, numbers)]):
            return tf.identity(ticket), tf.identity(waited)

    def _draw(self, last):
        """Returns the op that draws a ticket and then reads its token."""
        with tf.device(self._desk.device):
            ticket, waited = self._announced()
            with tf.control_dependencies([ticket]):
                token, pace = self._read_clock(), self._board.pace.read_value()
            drawn = _numbers(ticket, token, waited, pace)
        return self._hold(drawn, last)

    def _hold(self, drawn, last):
        """Returns the op that fills the hand.

        Args:
          drawn: ticket, token, waited and pace, int64 [4].
          last: the ticket of the last batch.
        """
        with tf.control_dependencies([drawn]):
            hand = tf.concat([drawn, _numbers(_now(), 0, last)], 0)
        return self.hand.assign(hand, read_value=False, name="hold")


def _now():
    return tf.cast(tf.timestamp() * 1e6, tf.int64)


def member_name(device, identity):
    """ "PLACE HOST:PID IDENTITY"; the ledger knows a process started again by its place."""
    place = device.partition("/device:")[0] or "/"
    return "{} {}:{} {}".format(place, socket.gethostname(), os.getpid(), identity)


def _numbers(*numbers):
    return tf.stack([tf.cast(n, tf.int64) for n in numbers])
