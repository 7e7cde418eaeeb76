"""What the chief runs for each global step, beside the ops on the shelves."""

import collections

from semisync.common.compat import tf
from semisync.staleness import is_formula, weights_of

# The op of a global step; the clock after it; the op that records fates alone; and the policy,
# staleness in and weights out. `lasting` says that a staleness has the same weight at every step.
Step = collections.namedtuple("Step", "op clock record staleness weights lasting")


def build_step(applied, board, policy, own_device):
    """Returns the `Step`: once a global batch is applied, the clock and the batches' fates follow.

    Args:
      applied: the op that applies the global batch.
      board: the `Board`.
      policy: see `semisync.staleness`.
      own_device: of this process, where the policy is computed.
    """
    with tf.control_dependencies([applied]):
        done = [board.clock.assign_add(1, read_value=False), board.record_fates()]
    with tf.control_dependencies(done):
        clock = board.clock.read_value()
    op, record = tf.group(*done), board.record_fates()
    with tf.device(own_device):
        staleness = tf.placeholder(tf.float32, [None], name="staleness")
        weights = weights_of(policy, staleness)
    return Step(op, clock, record, staleness, weights, is_formula(policy))
