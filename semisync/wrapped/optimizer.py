"""The wrapped optimizer: the chief applies global batches with it, the workers single batches.

The chief's step assumes that each id occurs once. A worker's, for "async" variables, leaves
counters of steps alone, such as Adam's beta powers, which only the chief's steps change. So while a
step is built, some methods of the optimizer are replaced; they are those that the documentation of
tf.train.Optimizer names for subclasses to override.
"""

import contextlib
import copy
from typing import Any, List

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.wrapped import hash_tables, row_table, summaries
from semisync.wrapped.global_step import count, is_changed
from semisync.wrapped.hyperparameters import Hyperparameters, own_numbers


class WrappedOptimizer:
    """A tf.compat.v1 optimizer.

    Args:
        optimizer: its state, such as its slots, is as in the plain job.
    """

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self._own_numbers = own_numbers(optimizer)  # taken now: a step adds others
        self._arguments = {}  # further ones of its apply_gradients

    def with_arguments(self, arguments):
        """The same, which passes further keyword arguments to the optimizer's apply_gradients."""
        wrapped = copy.copy(self)
        wrapped._arguments = arguments
        return wrapped

    @property
    def on_nonfinite(self):
        """The default treatment of a batch that is not finite.

        An optimizer that scales the loss needs to see it, and then takes no step.
        """
        names = ("_loss_scale", "_loss_scale_manager")  # TensorFlow's and contrib's
        return "keep" if any(hasattr(self.optimizer, name) for name in names) else "drop"

    def own_numbers(self):
        """{name: value} of the numbers that the optimizer was constructed with."""
        return self._own_numbers

    def apply_global_batch(self, pairs, global_step, after):
        """Builds the chief's step; the optimizer may leave the global step to the job, as BERT's.

        Args:
            pairs: (gradient, variable or RowTable), each id of a sparse gradient once; empty if
                every variable is "async".
            global_step: a variable that the step adds 1 to, or None.
            after: ops to wait for before the global step grows.

        Returns:
            Its op, its `Hyperparameters`, whether it counts, and the summaries that it makes.
        """
        before = {op.name for op in tf.get_default_graph().get_operations()}
        tables, variables = row_table.divided(pairs)
        by_hand = [table.applied(gradient) for gradient, table in tables]
        if variables:
            each_id_once = _replaced(self.optimizer, _each_id_once(self.optimizer))
            with each_id_once, hash_tables.wrappers(variables) as trained:
                applied = self.optimizer.apply_gradients(trained, global_step, **self._arguments)
                step = tf.group(applied, *by_hand)
        else:
            after = after + by_hand
            # Counters of steps, such as Adam's beta powers, still advance per global batch.
            self.optimizer._prepare()
            with tf.control_dependencies(after + [self.optimizer._finish([], "finish")]):
                step = tf.no_op() if global_step is None else count(global_step)
        counts = global_step is not None and is_changed(global_step, before)
        made = summaries.made_since(before)
        hyperparameters = Hyperparameters(tf.group(step, *made), before, _tensors(pairs))
        return step, hyperparameters, counts, made

    def apply_batch(self, pairs):
        """Returns the ops by which a worker applies its own batch to "async" variables."""
        tables, variables = row_table.divided(pairs)
        by_hand = [table.applied_alone(gradient) for gradient, table in tables]
        if not variables:
            return by_hand
        uncounted = {"_finish": lambda ops, name: tf.group(*ops, name=name)}
        with _replaced(self.optimizer, uncounted):
            return [self.optimizer.apply_gradients(variables, **self._arguments), *by_hand]

    def make_slots(self, variables):
        """Makes the slots of all variables at once, for the chief's step and the workers'."""
        # The attributes by which TensorFlow's optimizers hold one that they wrap.
        if hasattr(self.optimizer, "_optimizer") or hasattr(self.optimizer, "_opt"):
            raise UsageError(
                'the policy "async" needs the optimizer itself, and {} wraps another one'.format(
                    type(self.optimizer).__name__
                )
            )
        with tf.init_scope():
            self.optimizer._create_slots(hash_tables.without(variables))


def _tensors(pairs):
    tensors: List[Any] = []
    for gradient, _ in pairs:
        sparse = isinstance(gradient, tf.IndexedSlices)
        parts = (gradient.values, gradient.indices, gradient.dense_shape) if sparse else (gradient,)
        tensors += parts
    return tensors


@contextlib.contextmanager
def _replaced(optimizer, methods):
    """In the block some methods of an optimizer, {name: function}, replace its class's."""
    vars(optimizer).update(methods)
    try:
        yield
    finally:
        for name in methods:
            del vars(optimizer)[name]


def _each_id_once(optimizer):
    """The methods with which an optimizer assumes that each id occurs once.

    The base class's `..._duplicate_indices` sum the rows of an id and then call the method that
    replaces them here. An optimizer that overrides them keeps its own.
    """
    methods = {}
    for kind in ("_apply_sparse", "_resource_apply_sparse"):
        summing = kind + "_duplicate_indices"
        if getattr(type(optimizer), summing) is getattr(tf.train.Optimizer, summing):
            methods[summing] = getattr(optimizer, kind)
    return methods
