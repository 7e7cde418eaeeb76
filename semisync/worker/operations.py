"""A worker's ops: its messages, the draw of a ticket, and the train op that spends it."""

import os
import socket
import uuid
from typing import Any, Dict, NamedTuple

from semisync.common.compat import raw_ops, tf
from semisync.transport.graph_ops import on_cpu
from semisync.transport.messages import (
    ALIVE,
    BATCH,
    DISAGREED,
    DRAWN,
    JOINED,
    LEFT,
    NEVER_DRAWN,
    REPEATS,
    STAGED,
)
from semisync.worker.state import KIND, SESSION, TICKET, WorkerState, now, numbers, sealed
from semisync.worker.withholding import found_finite, judged, send_unless

STATE = "semisync_worker_state_"  # the variable of the worker state; the identity follows


class WorkerOps(NamedTuple):
    """The ops that each worker runs beside its train op.

    Attributes:
        member: this process, as its messages name it.
        state: the variable of the worker state; its op, in an imported graph.
        ticket, token: see `semisync.worker.state`.
        last, spent: the ticket of the last batch and when it was used, see there.
        join, leave: the ops that send the first and the last message.
        alive: the op that sends a sign of life.
        earlier: placeholder, int64: the ticket of a run that failed.
        repeat: the op that reports to the chief that the next batch repeats that run's.
        first_draw: the op that draws a ticket where there is none.
        objection: placeholder, string: how the settings differ.
        disagree: the op that sends it.
        fate: of the last batch, int64 [2]: see `GlobalBatchOptimizer`.
        heartbeat, chief_settings: of the job state.
        weights: the staleness policy's weights at `settings.PROBES`.
        pings: {device of a PS: a tensor that is computed there every time}.
    """

    member: str
    state: Any
    ticket: Any
    token: Any
    last: Any
    spent: Any
    join: Any
    leave: Any
    alive: Any
    earlier: Any
    repeat: Any
    first_draw: Any
    objection: Any
    disagree: Any
    fate: Any
    heartbeat: Any
    chief_settings: Any
    weights: Any
    pings: Dict[str, Any]


def own_device(ready):
    """The CPU of this process.

    The device that the current device function assigns to an op other than a variable; else the one
    where the gradients are computed.

    Args:
        ready: the gradients, tensors.
    """
    return on_cpu(tf.no_op(name="device").device or ready[0].device)


def member_name(device, identity):
    """ "PLACE HOST:PID IDENTITY"; the ledger knows a process started again by its place."""
    place = device.partition("/device:")[0] or "/"
    return "{} {}:{} {}".format(place, socket.gethostname(), os.getpid(), identity)


class Member:
    """One worker as a member of the job: its name, its state, and how it talks to the chief.

    Args:
        mailbox, job_state: the `Mailbox` and the `JobState`.
        device: of the worker's process.
    """

    def __init__(self, mailbox, job_state, device):
        identity = uuid.uuid4().hex[:12]
        self.mailbox, self.job_state = mailbox, job_state
        self.name = member_name(device, identity)
        self.state = WorkerState(STATE + identity, device)

    def send(self, kind, ticket):
        """Returns the op that sends a message without a batch to the chief."""
        with tf.device(self.mailbox.device):
            return self.mailbox.send(self.name, numbers(kind, ticket, 0, 0, self.state.session))

    def join(self):
        """Returns the op with which a session begins: it reports to the chief that it has no
        ticket."""
        session, last = self.state.begin()
        with tf.device(self.mailbox.device):
            return self.mailbox.send(self.name, numbers(JOINED, last, 0, 0, session))

    def tell(self, batch, sent):
        """Returns the op that reports a batch to the chief; see `draw`."""
        with tf.control_dependencies(sent):
            return self.mailbox.send(self.name, batch)

    def first_draw(self):
        """The op that draws a ticket where there is none, else does nothing."""
        with tf.device(self.state.device):
            message = numbers(DRAWN, self.state.ticket, 0, 0, self.state.session)
            wanted = raw_ops.Switch(data=message, pred=self.state.empty)[1]
            return self.draw(sealed(wanted), now())

    def draw(self, batch, since, sent=()):
        """The op that draws a ticket, reports it to the chief, and then stores it with its token.

        Args:
            batch: int64 [5] for the message: kind, ticket of the last batch, token, waited,
                session. If it is dead, as TensorFlow calls a branch that is not taken, none of this
                runs.
            since: when the new ticket starts to age, see `semisync.worker.state.now`.
            sent: ops to run before.
        """
        with tf.device(self.mailbox.device):
            last = tf.unstack(batch)[TICKET]
            # `last`: if the batch is dead, so are the draw and all that follows.
            with tf.control_dependencies([last, *sent]):
                ticket, waited = self.mailbox.draw()
            with tf.control_dependencies([ticket]):
                token, fresh_for = self.job_state.read_clock(), self.job_state.read_fresh_for()
            due = waited + fresh_for
            with tf.control_dependencies([self.mailbox.send(self.name, batch, ticket)]):
                drawn = numbers(STAGED, ticket, token, waited, due, last)
        return self.state.hold(drawn, since)


def build_worker_ops(member, weights, pings):
    """Returns the `WorkerOps` of a `Member`; for the other arguments see there."""
    state = member.state
    with tf.device(state.device):
        objection = tf.placeholder(tf.string, [], name="objection")
        earlier = tf.placeholder(tf.int64, [], name="earlier")
        return WorkerOps(
            member=member.name,
            state=state.variable,
            ticket=state.ticket,
            token=state.token,
            last=state.last(),
            spent=state.spent,
            join=member.join(),
            leave=member.send(LEFT, state.ticket),
            alive=member.send(ALIVE, NEVER_DRAWN),
            earlier=earlier,
            repeat=member.send(REPEATS, earlier),
            first_draw=member.first_draw(),
            objection=objection,
            disagree=member.mailbox.send(objection, numbers(DISAGREED, 0, 0, 0, 0)),
            fate=member.job_state.fate_of(state.last()),
            heartbeat=member.job_state.read_heartbeat(),
            chief_settings=member.job_state.read_settings(),
            weights=weights,
            pings=pings,
        )


def build_train_op(member, ready, guarded, early, staleness_policy, send, draw, rationed):
    """The op of one batch: spend the ticket, send, draw the next ticket, report to the chief.

    Args:
        member: the `Member`.
        ready: tensors that are computed once the batch's gradients are.
        guarded: the gradients that withhold a batch if they are not finite.
        early: a tensor that is computed when most of the batch's work is done, at the latest with
            them.
        staleness_policy: withholds a batch that is too stale; None sends every batch.
        send: (batch, gate) -> list of the ops that stage the payload under the ticket in `batch`, a
            vector of kind, ticket, token, waited and session, and all other ops of a batch on the
            PS. `gate` is a function that every tensor passes through before it is sent; it stops
            the gradients of a withheld batch.
        draw: False leaves the worker without a ticket; `first_draw` draws one then.
        rationed: True if the next ticket may be issued only once the chief knows of this batch.
    """
    state = member.state
    with tf.device(state.device):
        time, elements = 0, state.elements  # without a policy nothing reads the time
        if staleness_policy is not None:
            with tf.control_dependencies([early]):
                time = now()
            elements = tf.unstack(judged(staleness_policy, state, member.job_state, time))
        kind = found_finite(elements[KIND], guarded)
        batch = state.spend([kind, *elements[KIND + 1 : BATCH]], ready)
        if kind is state.elements[KIND]:  # nothing can withhold the batch
            sent = send(batch, lambda tensor: tensor)
        else:
            withheld = tf.not_equal(kind, STAGED)
            sent = [send_unless(withheld, send, batch, member.mailbox)]
        if draw and not rationed:
            return member.draw(batch, time, sent)
        told = member.tell(batch, sent)
        if not draw:
            return told
        with tf.device(member.mailbox.device):
            elements = tf.unstack(batch)
            drawn = numbers(DRAWN, elements[TICKET], 0, 0, elements[SESSION])
        return member.draw(drawn, time, [told])
