"""Who counts global batches where the job counts batches by itself.

An optimizer that is called without a global step counts the graph's. A job that calls it so may
count batches on its own, as the canned Estimator with two optimizers does: each worker then adds 1
with every batch. From the first session on that op adds 0, so that what it gives is the number of
global batches, and whoever waits for it or fetches it need not change.
"""

from graph_rewrite.patterns.variables import ADD
from semisync.common.compat import constant, tf


def count(step):
    """Returns the op that adds 1 to a global step."""
    # Locked: of two additions at once to a reference variable one could be lost.
    return tf.assign_add(step, tf.ones_like(step), use_locking=True).op


class Uncounted:
    """A global step that `counter` alone shall count; make it before the graph is finalized.

    Args:
      step: a variable.
      counter: the op that counts global batches.
    """

    def __init__(self, step, counter):
        self._step, self._counter = step, counter
        with tf.control_dependencies(None):
            self._zero = tf.zeros([], step.dtype.base_dtype)

    def enforce(self):
        """Has every other op of the graph that adds a constant 1 to the step add 0."""
        for op in self._step.graph.get_operations():
            if op.type in ADD and op.inputs[0].op is self._step.op and op is not self._counter:
                one = op.inputs[1]
                if constant(one) == 1:
                    op._update_input(1, self._zero)
                    op._add_control_inputs([one.op])  # it may be what waits for the training
                if op.type == "AssignAdd":
                    op._set_attr("use_locking", tf.AttrValue(b=True))
