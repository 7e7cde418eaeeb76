"""The job state: variables that the chief alone writes and every process reads.

    clock      int64 []        global batches applied; a batch's token is a reading of it
    epoch      int64 []        the chief's first ticket, which identifies the chief
    fresh_for  int64 []        for how long a batch is probably not too stale, in us; 0: not known
    heartbeat  int64 []        grows about once a second while the chief lives; at its end it is
                               the epoch, negative: see `ended_at`
    settings   string []       see `semisync.settings`
    fates      int64 [RING,3]  ticket, fate, staleness of the newest tickets, at ticket % RING
    gauges     float32 [n]     see GAUGES
    summaries  string [n]      of the last global step, where the wrapped optimizer makes any

The variables lie on the global step's PS, outside every checkpoint and every collection. The chief
initialises them when it opens the job, and sets the clock to the global step. Several optimizers of
one graph may share a global step; each has its own job state, whose clock counts its own steps, and
those of siblings in turns (`semisync.wrapped.turns`).
"""

from typing import Any, List, NamedTuple

import numpy as np

from semisync.common.compat import raw_ops, tf
from semisync.fate import Fate
from semisync.transport.graph_ops import TracedFunction, value_or_initial

RING = 4096
SUPERSEDED = (
    "another process has become chief: pass is_chief=True to make_session_run_hook in one process "
    "only"
)
GAUGES = (
    "admitted", "decayed", "stale", "lost", "nonfinite", "in_flight", "pending", "waiting_seconds",
)  # fmt: skip


def ended_at(epoch):
    """The heartbeat of the chief of `epoch` once it has ended."""
    return -epoch


def has_ended(heartbeat):
    """Whether a heartbeat, or None, is from a chief that has ended."""
    return heartbeat is not None and heartbeat < 0


def is_of_the_ended(ticket, heartbeat):
    """Whether a ticket is one of the chief's whose last heartbeat is given.

    No chief came after that one, and a chief's tickets count up from its epoch.
    """
    return ticket >= -heartbeat


class JobStateOps(NamedTuple):
    """The ops that the chief runs on the job state once a second.

    Attributes:
        new_fresh_for, new_heartbeat, new_gauges: placeholders.
        publish: the op that writes them.
    """

    new_fresh_for: Any
    new_heartbeat: Any
    new_gauges: Any
    publish: Any


class JobState:
    """The variables, for one optimizer of one graph.

    Args:
        name: shared by all processes of the job.
        device: of the global step.
    """

    def __init__(self, name, device):
        self.device, self._name = device, name
        self._summaries: List[Any] = []  # at most one variable
        with tf.device(device):
            self._clock = variable(name + "/clock", 0, tf.int64)
            self._epoch = variable(name + "/epoch", 0, tf.int64)
            self._fresh_for = variable(name + "/fresh_for", 0, tf.int64)
            self._heartbeat = variable(name + "/heartbeat", 0, tf.int64)
            self._settings = variable(name + "/settings", "", tf.string)
            # No ticket is 0: a place without a fate is PENDING for every ticket.
            self._fates = variable(name + "/fates", np.tile([0, 0, -1], (RING, 1)), tf.int64)
            self._gauges = variable(name + "/gauges", [0.0] * len(GAUGES), tf.float32)

    def claim(self, epoch):
        """Makes a process the chief, with `epoch`.

        Returns:
            The epoch of an earlier chief, 0 if there was none, and the op that claims.
        """
        earlier = value_or_initial(self._epoch)
        with tf.control_dependencies([earlier]):
            return earlier, self._epoch.assign(epoch, read_value=False)

    def begin(self, clock, settings):
        """Returns the op that sets the clock and the settings, and clears the rest."""
        with tf.device(self.device):
            return tf.group(
                self._clock.assign(clock, read_value=False),
                self._settings.assign(settings, read_value=False),
                _cleared(self._fresh_for),
                _cleared(self._heartbeat),
                _cleared(self._fates),
                _cleared(self._gauges),
                *map(_cleared, self._summaries),
            )

    def chief_ops(self):
        """Returns the `JobStateOps`."""
        with tf.device(self.device):
            new_fresh_for = tf.placeholder(tf.int64, [], name="new_fresh_for")
            new_heartbeat = tf.placeholder(tf.int64, [], name="new_heartbeat")
            new_gauges = tf.placeholder(tf.float32, [len(GAUGES)], name="new_gauges")
            return JobStateOps(
                new_fresh_for=new_fresh_for,
                new_heartbeat=new_heartbeat,
                new_gauges=new_gauges,
                publish=tf.group(
                    self._fresh_for.assign(new_fresh_for, read_value=False),
                    self._heartbeat.assign(new_heartbeat, read_value=False),
                    self._gauges.assign(new_gauges, read_value=False),
                ),
            )

    def tick(self, by=1):
        """Returns the op that adds to the clock, 1 for a global step."""
        return self._clock.assign_add(by, read_value=False)

    def read_clock(self):
        """Returns the clock, after the control dependencies in force."""
        with tf.device(self.device):
            return self._clock.read_value()

    def ask_clock(self, question):
        """The clock, read once `question`, a tensor of this process, is computed.

        A call of its own: in a branch that is not taken it costs no message, as a read would.
        """
        clock = self._clock.handle.op

        def semisync_ask_clock(asked):
            with tf.control_dependencies([asked]):
                handle = raw_ops.VarHandleOp(
                    dtype=tf.int64,
                    shape=[],
                    container=clock.get_attr("container"),
                    shared_name=clock.get_attr("shared_name"),
                )
                return (raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64),)

        traced = TracedFunction(semisync_ask_clock, [(question.dtype, question.shape)])
        (answer,) = traced.call_on(self.device, question)
        return tf.reshape(answer, [])

    def own(self, epoch, value):
        """`value` in the run of the chief with `epoch`; fails in an earlier one's.

        The next chief clears staging: an earlier one that took from it would wait for ever, and
        with it every thread of the PS.
        """
        with tf.device(self.device):
            mine = tf.equal(epoch, self._epoch.read_value())
            with tf.control_dependencies([tf.Assert(mine, [tf.constant(SUPERSEDED)])]):
                return raw_ops.DeepCopy(x=value)

    def read_epoch(self):
        """Returns the epoch, after the control dependencies in force."""
        with tf.device(self.device):
            return self._epoch.read_value()

    def read_fresh_for(self):
        """Returns `fresh_for`, after the control dependencies in force."""
        with tf.device(self.device):
            return self._fresh_for.read_value()

    def read_heartbeat(self):
        """Returns the heartbeat."""
        with tf.device(self.device):
            return self._heartbeat.read_value()

    def read_settings(self):
        """Returns the chief's settings."""
        with tf.device(self.device):
            return self._settings.read_value()

    def record_fates(self, new_fates):
        """Returns the op that writes (ticket, fate, staleness), int64 [n, 3]."""
        with tf.device(self.device):
            return raw_ops.ResourceScatterUpdate(
                resource=self._fates.handle,
                indices=tf.math.floormod(new_fates[:, 0], RING),
                updates=new_fates,
            )

    def fate_of(self, ticket):
        """The fate and staleness of `ticket`, int64 [2]; (PENDING, -1) while they are not known."""
        with tf.device(self.device):
            row = tf.gather(self._fates.read_value(), tf.math.floormod(ticket, RING))
            known = tf.equal(row[0], ticket)
            pending = tf.constant([Fate.PENDING, -1], tf.int64)
            return tf.where(known, row[1:], pending)

    def keep(self, summaries):
        """Keeps a global step's summaries, string tensors.

        Returns:
            The op that does, and the list of those of the last step, "" before the first.
        """
        with tf.device(self.device):
            kept = variable(self._name + "/summaries", [""] * len(summaries), tf.string)
            self._summaries.append(kept)
            op = kept.assign(tf.stack(summaries), read_value=False)
            return op, tf.unstack(value_or_initial(kept))

    def summaries(self):
        """Adds TensorBoard's gauges to the graph's summaries; they are initial before a chief runs.

        A session without a chief may merge them, such as one that evaluates in the same graph.
        """
        with tf.device(self.device):
            fates = value_or_initial(self._fates)
            # ADMITTED, DECAYED or STALE: the other fates have no staleness.
            decided = tf.greater(fates[:, 1], int(Fate.PENDING)) & tf.less(
                fates[:, 1], int(Fate.LOST)
            )
            tf.summary.histogram("staleness", tf.gather_nd(fates[:, 2], tf.where(decided)))
            for name, gauge in zip(GAUGES, tf.unstack(value_or_initial(self._gauges))):
                tf.summary.scalar(name, gauge)


def variable(name, value, dtype):
    """A variable of the job state, on the device in force."""
    # Not get_variable, no scope, no collection: the same name in every process, and in no saver.
    with tf.name_scope(None):
        return tf.Variable(
            tf.constant(value, dtype), trainable=False, use_resource=True, name=name, collections=[]
        )


def _cleared(variable):
    """The op that gives a variable its initial value, after the control dependencies in force."""
    return variable.assign(tf.identity(variable.initial_value), read_value=False)
