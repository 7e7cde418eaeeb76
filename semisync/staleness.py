"""Staleness policies: how much a batch still counts when it is applied late.

The staleness of a batch is the global step at which it is applied, minus its token (the global
step at which its parameters were read): 0, 1, 2, ... A policy maps it to a weight in [0, 1]. Any
callable that maps a float32 tensor of stalenesses to a float32 tensor of weights of the same
shape is a policy.
"""

import numbers

from semisync.errors import UsageError


class Threshold:
    """Weight 1 up to `bound` steps of staleness, 0 beyond it (GBA, arXiv 2205.11048).

    Args:
      bound: the largest staleness, in global steps, that still counts. 0 admits only gradients
        of the current parameters.
    """

    def __init__(self, bound):
        if isinstance(bound, bool) or not isinstance(bound, numbers.Integral) or bound < 0:
            raise UsageError(
                "Threshold takes a whole number of global steps, 0 or more, not {!r}".format(bound)
            )
        self.bound = int(bound)

    def __call__(self, staleness):
        from semisync.compat import tf  # here, so that the policy can be made without TensorFlow

        return tf.cast(tf.less_equal(staleness, float(self.bound)), tf.float32)

    def __repr__(self):
        return "Threshold({})".format(self.bound)
