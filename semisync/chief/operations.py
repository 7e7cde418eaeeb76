"""The chief's ops: M staged payloads become one global batch, which is applied.

On the payload of one ticket, in a run of its own before the global batch is applied:

    weigh      counts it with a weight other than 1
    blank      replaces it by nothing: a stale batch that keeps its slot
    fill       stages nothing under a ticket that brought no payload
    sweep      removes any payload staged under a ticket, on any of the PS

On M tickets, in one run: their payloads are taken, combined and applied, then the clock and the
fates of the batches follow. So a global batch whose weights are all 1 costs no arithmetic but its
sum.
"""

import functools
from typing import Any, NamedTuple

from semisync.common.compat import raw_ops, tf
from semisync.staleness import is_formula, weights_of
from semisync.transport.job_state import JobStateOps
from semisync.transport.mailbox import MailboxOps, packed


class PayloadOps(NamedTuple):
    """The ops that the chief runs on the payload of one ticket.

    Attributes:
        epoch, ticket, weight: placeholders; epoch: the chief's own, see `JobState.own`.
        scale: placeholder: M / the number of batches, for the items that are means. 1 but for the
            last global batch.
        weigh, blank, fill, sweep: see the module.
    """

    epoch: Any
    ticket: Any
    weight: Any
    scale: Any
    weigh: Any
    blank: Any
    fill: Any
    sweep: Any


class StepOps(NamedTuple):
    """The ops that the chief runs for a global step.

    Attributes:
        request: placeholder, int64 [...]: see `step_request`.
        apply: the op that applies a global batch, ticks and records fates.
        new_fates: placeholder, int64 [n, 3]: see `semisync.transport.job_state`.
        record_fates: the op that records `new_fates` alone.
        staleness, weights: placeholder float32 [n], and the staleness policy's weights of it.
        lasting: True when a staleness has the same weight at every step.
    """

    request: Any
    apply: Any
    new_fates: Any
    record_fates: Any
    staleness: Any
    weights: Any
    lasting: bool


def step_request(epoch, tickets, new_fates):
    """The request of a global step, one list of ints, since every tensor that is fed has a cost.

    Args:
        epoch: the chief's own.
        tickets: of the global batch, a list of M.
        new_fates: list of (ticket, fate, staleness).
    """
    return [epoch] + tickets + [number for fate in new_fates for number in fate]


class OpenOps(NamedTuple):
    """The ops that the chief runs first: see `build_open_ops`.

    Attributes:
        epoch, settings: placeholders: see `semisync.transport.job_state`.
        claim: the fetches that claim the job state: the epoch of an earlier chief, 0 if there was
            none, and the op that wakes it.
        open: the messages that were there, and the clock: `packed`.
    """

    epoch: Any
    settings: Any
    claim: Any
    open: Any


class ChiefOps(NamedTuple):
    """All ops of the chief.

    Attributes:
        open, mailbox, job_state, payload, step: see their types.
    """

    open: OpenOps
    mailbox: MailboxOps
    job_state: JobStateOps
    payload: PayloadOps
    step: StepOps


class Aggregation:
    """Takes the payloads of M tickets and combines them.

    Args:
        size: M.
        job_state: the `JobState`.

    Attributes:
        request: the placeholder of a global step, see `step_request`.
        new_fates: its further content, besides the tickets of the global batch.
    """

    def __init__(self, size, job_state):
        self.request = _fed_by_the_chief("step")
        own = job_state.own(self.request[0], self.request)
        _, self._tickets, new_fates = tf.split(own, [1, size, -1])
        self.new_fates = tf.reshape(new_fates, [-1, 3])
        self._size = size

    def combine(self, staging):
        """Takes M payloads from a `Staging`; returns {item: the combination of M batches}."""
        with tf.device(staging.device):  # one message to the PS, not one per ticket
            batches = [staging.take(ticket) for ticket in tf.unstack(self._tickets, self._size)]
            return {
                item: item.combined(column) for item, column in zip(staging.items, zip(*batches))
            }


def _fed_by_the_chief(name):
    """A placeholder, int64 [n]; in any other run that needs it an error says what to do."""
    sentence = (
        "GlobalBatchOptimizer: the chief computes this of a global batch, as aggregated_gradients, "
        "and no other run can: have it by hook.observe(fetches, observer), before the session"
    )
    with tf.control_dependencies([tf.Assert(tf.constant(False), [sentence])]):
        # Not an identity: TensorFlow 2 may bypass one, and with it the assertion.
        nothing = raw_ops.DeepCopy(x=tf.constant([], tf.int64))
    return tf.placeholder_with_default(nothing, [None], name)


def build_open_ops(mailbox, job_state, areas, first_clock, forget, size):
    """The `OpenOps`, which discard the leftovers of an earlier run on the PS.

    The claim comes first, and wakes an earlier chief that still runs, so that it ends. It must
    finish taking from staging before staging is cleared: it would wait for the payloads forever,
    and with it every thread of the PS. So allow it time; it takes no further ones, see
    `JobState.own`. Opening waits for a ticket, as withdrawing does: run it with a deadline.

    Args:
        mailbox, job_state: the `Mailbox` and the `JobState`.
        areas: list of `Staging`.
        first_clock: function that returns the global step, int64.
        forget: the op that resets the hyperparameters of an earlier run.
        size: M.
    """
    with tf.device(job_state.device):
        epoch = tf.placeholder(tf.int64, [], name="new_epoch")
        settings = tf.placeholder(tf.string, [], name="new_settings")
        earlier, claimed = job_state.claim(epoch)
        with tf.control_dependencies([claimed]):
            claim = [earlier, mailbox.wake(size)]
        withdrawn = mailbox.withdraw()
        with tf.control_dependencies([withdrawn]):
            cleared = [staging.clear() for staging in areas]
            messages = mailbox.take()
        with tf.control_dependencies(cleared + messages):
            clock = first_clock()
        with tf.control_dependencies([job_state.begin(clock, settings), forget]):
            return OpenOps(epoch, settings, claim, packed([messages], [clock]))


def build_payload_ops(areas, job_state, device):
    """The `PayloadOps`.

    Args:
        areas: list of `Staging`.
        job_state: the `JobState`.
        device: of the global step, a CPU; the ops on a staging area are on the CPU of its PS.
    """
    weigh, blank, fill, sweep = [], [], [], []
    with tf.device(device):
        epoch = tf.placeholder(tf.int64, [], name="epoch")
        fed = tf.placeholder(tf.int64, [], name="ticket")
        ticket = job_state.own(epoch, fed)
        weight = tf.placeholder(tf.float32, [], name="weight")
        scale = tf.placeholder(tf.float32, [], name="scale")
        for staging in areas:
            with tf.device(staging.device):
                nothing = _nothing(staging)
                weigh.append(staging.put(ticket, _weighed(staging, ticket, weight, weight * scale)))
                fill.append(staging.put(ticket, nothing))
                with tf.control_dependencies([staging.drop(ticket)]):
                    blank.append(staging.put(ticket, nothing))
                # Staging where a payload is changes nothing, so the drop after it never waits.
                with tf.control_dependencies([staging.put(ticket, nothing)]):
                    sweep.append(staging.drop(ticket))
        return PayloadOps(
            epoch=epoch,
            ticket=fed,
            weight=weight,
            scale=scale,
            weigh=tf.group(*weigh),
            blank=tf.group(*blank),
            fill=tf.group(*fill),
            sweep=tf.group(*sweep),
        )


def _weighed(staging, ticket, weight, weight_of_mean):
    return [
        item.weighed(tensors, weight_of_mean if item.is_mean else weight)
        for item, tensors in zip(staging.items, staging.take(ticket))
    ]


def _nothing(staging):
    """The payload of a batch that adds nothing; equal tensors are one op."""
    zeros = functools.lru_cache(maxsize=None)(tf.zeros)
    return [
        [zeros(shape, tensor.dtype) for tensor, shape in zip(item.tensors, item.nothing())]
        for item in staging.items
    ]


def build_step_ops(applied, aggregation, job_state, staleness_policy, own_device):
    """The `StepOps`: once a global batch is applied, the clock and the fates follow.

    Args:
        applied: the ops that apply the global batch.
        aggregation: the `Aggregation`.
        job_state: the `JobState`.
        staleness_policy: see `semisync.staleness`.
        own_device: of this process, where the staleness policy is computed.
    """
    with tf.device(job_state.device):
        new_fates = tf.placeholder(tf.int64, [None, 3], name="new_fates")
        record_fates = job_state.record_fates(new_fates)
        with tf.control_dependencies(applied):
            recorded = job_state.record_fates(aggregation.new_fates)
            apply = tf.group(job_state.tick(), recorded)
    with tf.device(own_device):
        staleness = tf.placeholder(tf.float32, [None], name="staleness")
        weights = weights_of(staleness_policy, staleness)
    return StepOps(
        request=aggregation.request,
        apply=apply,
        new_fates=new_fates,
        record_fates=record_fates,
        staleness=staleness,
        weights=weights,
        lasting=is_formula(staleness_policy),
    )
