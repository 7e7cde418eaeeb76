"""The global step that an optimizer counts, also in a job that counts batches itself.

An optimizer that is called without a global step counts the graph's, unless that is given to
another optimizer of the graph. Such a job may count batches on its own, as the canned Estimator
with two optimizers does: each worker then adds 1 with every batch. From the first session on that
op adds 0, so that its value is the number of global batches, and ops that wait for it or fetch it
need not change. The same holds if an optimizer is given the global step but leaves it to the job.
"""

from graph_rewrite.graph.ops import ADD, ASSIGN, CALLS, READ, SWITCH
from semisync import arguments
from semisync.common.compat import constant, tf
from semisync.common.errors import UsageError
from semisync.common.per_graph import PerGraph
from semisync.wrapped import siblings

_given = PerGraph(list)  # the ops of the global steps that optimizers of a graph were given


def step_to_count(global_step):
    """The variable that an optimizer counts, given its argument; None where a sibling counts."""
    if global_step is not None:
        _given.of().append(arguments.global_step(global_step).op)
        return global_step
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


def is_changed(step, before):
    """Whether an op whose name is not in `before` changes a variable, perhaps in a function."""
    waiting = [step.op]
    while waiting:
        users = [user for tensor in waiting.pop().outputs for user in tensor.consumers()]
        new = [user for user in users if user.name not in before]
        if any(user.type in CALLS or user.type in ADD | ASSIGN for user in new):
            return True
        waiting += [user for user in new if user.type in SWITCH]
    return False


class SoleCounter:
    """Makes one op the only one that counts a global step; make it before the graph is finalized.

    Args:
        step: a variable.
        counter: the op that counts global batches.
        given: whether the step was given to the optimizer whose global batches these are.

    Attributes:
        counts: list of (the tensor that another op adds, the one in the plain job).
    """

    def __init__(self, step, counter, given):
        self._step, self._counter, self._is_given = step, counter, given
        with tf.control_dependencies(None):
            self._zero = tf.zeros([], step.dtype.base_dtype)
            self.counts = [(self._zero, tf.ones([], step.dtype.base_dtype))]

    def enforce(self):
        """Has every other op of the graph that adds a constant 1 to the step add 0.

        Raises:
            UsageError: one sets the step to the next number instead.
        """
        graph = self._step.graph
        if not self._is_given and self._step.op in _given.of(graph):
            self._add_nothing(self._counter)
            return
        for op in graph.get_operations():
            if op.type in ADD and op.inputs[0].op is self._step.op and op is not self._counter:
                if constant(op.inputs[1]) == 1:
                    self._add_nothing(op)
                # Without the lock, one of two additions at a time may be lost.
                if op.type == "AssignAdd":
                    op._set_attr("use_locking", tf.AttrValue(b=True))
            if op.type in ASSIGN and op.inputs[0].op is self._step.op and self._is_next(op):
                raise UsageError(
                    "{} sets the global step {} to the next number with every batch, and the chief "
                    "counts global batches with it: leave that op out".format(
                        op.name, self._step.op.name
                    )
                )

    def _add_nothing(self, op):
        before = op.inputs[1].op  # the training may be one of its control inputs
        op._update_input(1, self._zero)
        op._add_control_inputs([before])

    def _is_next(self, assignment):
        """Whether an op assigns the step plus 1 to the step."""
        value, reads = assignment.inputs[1].op, READ | {"Identity"}
        if value.type not in ("Add", "AddV2"):
            return False
        read = any(t.op.type in reads and t.op.inputs[0].op is self._step.op for t in value.inputs)
        return read and any(constant(tensor) == 1 for tensor in value.inputs)
