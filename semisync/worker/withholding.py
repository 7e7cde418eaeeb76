"""Whether a batch is too stale to be sent, and how it is withheld.

Reading the clock takes a round trip, so a batch asks for it only when it took long: when twice as
many global steps as usual in that time, and one more, would make it too stale. A batch that is too
stale all the same, or becomes so later, is sent, and the chief finds it.
"""

from semisync.common.compat import raw_ops, tf
from semisync.staleness import weights_of
from semisync.transport.mailbox import WITHHELD
from semisync.worker.state import now


def too_stale(staleness_policy, state, job_state, early):
    """True when the staleness policy already gives the batch the weight 0, a bool tensor.

    Args:
      staleness_policy: see `semisync.staleness`.
      state: the `WorkerState`.
      job_state: the `JobState`.
      early: a tensor that is there when most of the batch's work is done.
    """
    with tf.control_dependencies([early]):
        time = now()
    steps = (time - state.held) / tf.maximum(state.pace, 1)
    doubtful = tf.equal(state.pace, 0) | _rejects(staleness_policy, 2 * steps + 1)
    # Never a Switch of its own condition, nor a constant into a Merge: TensorFlow 2's constant
    # folding may loop on these without end.
    sure, ask = raw_ops.Switch(data=time, pred=doubtful)
    with tf.control_dependencies([_branch(ask)]):
        clock = job_state.read_clock()
    # A staleness policy may ignore its argument; the comparison has the answer wait for the clock,
    # whose value is the one message that returns.
    stale = _rejects(staleness_policy, clock - state.token) & tf.greater_equal(clock, 0)
    return raw_ops.Merge(inputs=[tf.less(sure, 0), stale])[0]


def _branch(output):
    """What an op waits for to run only in this branch: a Switch itself runs in both."""
    return tf.identity(output)


def _rejects(staleness_policy, staleness):
    staleness = tf.reshape(tf.cast(staleness, tf.float32), [1])
    return tf.less_equal(weights_of(staleness_policy, staleness)[0], 0)


def send_unless(stale, send, batch, mailbox):
    """Returns a tensor that is there once the batch is sent, or is found too stale to be sent.

    Switch and Merge rather than tf.cond: a branch of tf.cond may be a function of its own, and what
    the optimizer does to reference variables cannot be put into one. The Merge is on the device of
    the mailbox, where the next ticket is drawn, so that nothing need return to the worker. So is a
    Switch of a value that is made there; TensorFlow places a Switch where its data is.

    Args:
      stale: bool tensor.
      send: (batch, gate) -> list of ops, see `semisync.worker.operations.build_train_op`.
      batch: kind, ticket, token, waited: int64 [4].
      mailbox: the `Mailbox`.
    """
    # Every tensor that is sent passes a Switch: to wait for a Switch is to wait for both branches.
    sent = send(batch, lambda tensor: raw_ops.Switch(data=tensor, pred=stale)[0])
    with tf.device(mailbox.device):
        ticket = batch[1]
        withheld = raw_ops.Switch(data=ticket, pred=tf.equal(batch[0], WITHHELD))[1]
        with tf.control_dependencies(sent):
            # TensorFlow 2 bypasses a slice or an identity here, and then nothing waits for `sent`.
            staged = raw_ops.DeepCopy(x=ticket)
        return raw_ops.Merge(inputs=[staged, withheld])[0]
