"""Which global step an optimizer counts, and who counts where the job counts batches by itself.

An optimizer that is called without a global step counts the graph's. A job that calls it so may
count batches on its own, as the canned Estimator with two optimizers does: each worker then adds 1
with every batch. From the first session on that op adds 0, so that its value is the number of
global batches, and whatever waits for it or fetches it need not change.
"""

from graph_rewrite.patterns.variables import ADD
from semisync import arguments
from semisync.common.compat import constant, tf
from semisync.common.errors import UsageError
from semisync.wrapped import siblings


def step_to_count(global_step):
    """The variable that an optimizer counts, given its argument; None where a sibling counts."""
    if global_step is not None:
        return arguments.global_step(global_step)
    if siblings.counted_step() is not None:
        return None
    step = tf.train.get_global_step()
    if step is None:
        raise UsageError(
            "GlobalBatchOptimizer counts global batches: pass "
            "global_step=tf.train.get_or_create_global_step() to minimize or apply_gradients"
        )
    return arguments.global_step(step)


def count(step):
    """Returns the op that adds 1 to a global step."""
    # Locked: two concurrent additions to a reference variable may lose one.
    return tf.assign_add(step, tf.ones_like(step), use_locking=True).op


class SoleCounter:
    """Has one op alone count a global step; make it before the graph is finalized.

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
