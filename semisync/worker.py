"""The worker's half: the ticket in its hand and the train op that spends it.

The hand is two scalars that live in the worker's own process, outside every checkpoint:

    ticket   int64   NEVER_DRAWN, SPENT, or the ticket for the next batch
    token    int64   the global step just after that ticket was drawn

Their names carry the process's identity: wherever a device function may place them, no two workers
share them.
"""

import os
import socket
import uuid

from semisync.compat import raw_ops, tf
from semisync.gradients import pack
from semisync.ledger import GIVEN_BACK, JOINED, NO_TICKET

NEVER_DRAWN = -1
SPENT = -2


class Worker:
    """Builds the ops of one worker.

    Args:
      desk: the `Desk`.
      global_step: the variable.
      gradients: of this worker, dense or sparse.
    """

    def __init__(self, desk, global_step, gradients):
        self._identity = uuid.uuid4().hex[:12]
        self.member = "{}:{} {}".format(socket.gethostname(), os.getpid(), self._identity)
        self._desk = desk
        self._global_step = global_step
        self._payload = pack(gradients)
        # What the device function in force gives to an op that is no variable, else where the
        # gradients are computed.
        self._device = tf.no_op(name="device").device or self._payload[0].device
        with tf.device(self._device):
            self.ticket = self._hold("ticket", NEVER_DRAWN)
            self.token = self._hold("token", 0)
            self.join = desk.tell(self.member, _int64(NO_TICKET), _int64(JOINED))
            self.give_back = desk.tell(self.member, self.ticket.read_value(), _int64(GIVEN_BACK))
            self.first_draw = self._draw()

    def _hold(self, name, value):
        # Not get_variable: the caller's variable scope may partition, reuse or regularise.
        return tf.Variable(
            tf.constant(value, tf.int64),
            trainable=False,
            use_resource=True,
            name="semisync_{}_{}".format(name, self._identity),
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )

    def train_op(self, put):
        """Returns the op of one batch: spend the ticket, stage, tell, draw the next.

        Args:
          put: ticket -> list of the ops that stage the batch's payload under it.
        """
        with tf.device(self._device):
            ticket, token = self._spend()
            with tf.control_dependencies(put(ticket)):
                told = self._desk.tell(self.member, ticket, token)
            with tf.control_dependencies([told]):
                return self._draw()

    def _spend(self):
        """The ticket and token of this batch; from here on the hand is empty.

        A run that fails before its gradients are there keeps its ticket. One that fails later has
        spent it, since part of its payload may be staged; the next run then takes another ticket
        with the old token.
        """
        with tf.control_dependencies(self._payload):
            held = self.ticket.read_value()
            token = self.token.read_value()
        drawn = tf.Assert(
            tf.not_equal(held, NEVER_DRAWN),
            [
                "GlobalBatchOptimizer: this worker has no ticket; pass hooks="
                "[opt.make_session_run_hook(is_chief)] to every worker's MonitoredTrainingSession"
            ],
        )
        with tf.control_dependencies([drawn]):
            ticket = tf.cond(tf.equal(held, SPENT), self._desk.draw, lambda: tf.identity(held))
        with tf.control_dependencies([ticket, token]):
            spent = self.ticket.assign(_int64(SPENT), read_value=False)
        with tf.control_dependencies([spent]):
            return tf.identity(ticket), tf.identity(token)

    def _draw(self):
        """Returns the op that draws a ticket and then reads its token."""
        ticket = self._desk.draw()
        with tf.control_dependencies([ticket]), tf.device(self._desk.device):
            # Reading a reference variable gives an alias of its buffer, and the step may move on
            # while the value is on its way to the worker: copy it here.
            token = tf.cast(raw_ops.DeepCopy(x=self._global_step), tf.int64)
        with tf.control_dependencies([ticket, token]):
            return tf.group(
                self.ticket.assign(ticket, read_value=False),
                self.token.assign(token, read_value=False),
            )


def _int64(value):
    return tf.constant(value, tf.int64)
