"""Whether a batch is too stale to be sent, or broken, and how it is withheld.

Reading the clock takes a round trip, so a batch asks for it only when it took long: when as many
global steps as usual in that time make it too stale (`semisync.chief.thread`). A batch that is too
stale all the same, or becomes so later, is sent, and the chief finds it.

A batch is broken if a gradient holds a NaN or an infinity: one such batch would make the whole
model NaN. Statistics are not checked: those of a batch without any are NaN.
"""

from semisync.common.compat import raw_ops, tf
from semisync.staleness import weights_of
from semisync.transport.messages import NONFINITE, STAGED, WITHHELD


def judged(staleness_policy, state, job_state, time):
    """The worker state's vector, with the kind WITHHELD if the batch is too stale to be sent.

    Args:
        staleness_policy: see `semisync.staleness`.
        state: the `WorkerState`.
        job_state: the `JobState`.
        time: when most of the batch's work was done, see `now`.
    """
    late = tf.greater(time, state.due)
    # Never a Switch of its own condition, nor a constant into a Merge: TensorFlow 2's constant
    # folding may loop on these without end.
    sure, doubtful = raw_ops.Switch(data=state.values, pred=late)
    _, ticket, token, *others = tf.unstack(doubtful)
    staleness = tf.cast(job_state.ask_clock(doubtful) - token, tf.float32)
    stale = tf.less_equal(weights_of(staleness_policy, tf.expand_dims(staleness, 0))[0], 0)
    kind = tf.where(stale, tf.constant(WITHHELD, tf.int64), tf.constant(STAGED, tf.int64))
    asked = tf.stack([kind, ticket, token, *others])
    return raw_ops.Merge(inputs=[sure, asked])[0]


def found_finite(kind, tensors):
    """The kind of a batch: NONFINITE where one of its tensors is broken."""
    checked, axes = [], {}  # one constant of axes per rank and device, not per gradient
    for tensor in tensors:
        if tensor.dtype.is_floating:
            rank = tensor.shape.rank
            with tf.device(tensor.device):
                finite = tf.math.is_finite(tensor)
                if rank is not None and (rank, tensor.device) not in axes:
                    axes[rank, tensor.device] = tf.constant(list(range(rank)), tf.int32)
                checked.append(tf.reduce_all(finite, axes.get((rank, tensor.device))))
    if not checked:
        return kind
    broken = tf.constant(NONFINITE, tf.int64)
    return tf.where(tf.reduce_all(tf.stack(checked)), kind, broken)


def send_unless(withheld, send, batch, mailbox):
    """A tensor that is computed once the batch is sent, or withheld.

    Switch and Merge rather than tf.cond: a branch of tf.cond may be a function of its own, and what
    the optimizer does to reference variables cannot be put into one. The Merge is on the device of
    the mailbox, where the next ticket is drawn, which saves a round trip to the worker. So is a
    Switch of a value that is made there; TensorFlow places a Switch where its data is.

    Args:
        withheld: bool tensor, made in this process.
        send: (batch, gate) -> list of ops, see `semisync.worker.operations.build_train_op`.
        batch: kind, ticket, token, waited, session: int64 [5].
        mailbox: the `Mailbox`.
    """
    # Every tensor that is sent passes a Switch: to wait for a Switch is to wait for both branches.
    sent = send(batch, lambda tensor: raw_ops.Switch(data=tensor, pred=withheld)[0])
    with tf.device(mailbox.device):
        kind, ticket, *_ = tf.unstack(batch)
        unsent = raw_ops.Switch(data=ticket, pred=tf.not_equal(kind, STAGED))[1]
        with tf.control_dependencies(sent):
            # TensorFlow 2 bypasses a slice or an identity here, and then nothing waits for `sent`.
            staged = raw_ops.DeepCopy(x=ticket)
        return raw_ops.Merge(inputs=[staged, unsent])[0]
