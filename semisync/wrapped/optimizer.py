"""The wrapped optimizer: the chief applies global batches with it, the workers single batches.

Both work on shallow copies, which share its slots. The chief's copy takes each id to occur once. A
worker's copy, for "async" variables, leaves alone what counts steps, such as Adam's beta powers,
which only the chief's steps change. The methods replaced here are those that the documentation of
tf.train.Optimizer names for subclasses to override.
"""

import copy
from typing import Any, List

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.wrapped.global_step import count
from semisync.wrapped.hyperparameters import Hyperparameters, own_numbers


class WrappedOptimizer:
    """A tf.compat.v1 optimizer.

    Args:
      optimizer: never changed, except for its slots.
    """

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def own_numbers(self):
        """{name: value} of the numbers that the optimizer was made with."""
        return own_numbers(self.optimizer)

    def apply_global_batch(self, pairs, global_step, after):
        """Returns the op of the chief's step, and its `Hyperparameters`.

        Args:
          pairs: (gradient, variable), each id of a sparse gradient once; empty where every variable
            is "async".
          global_step: a variable that the step adds 1 to, or None.
          after: ops to wait for before the global step grows.
        """
        before = {op.name for op in tf.get_default_graph().get_operations()}
        if pairs:
            step = tf.group(_without_summing(self.optimizer).apply_gradients(pairs, global_step))
        else:
            self.optimizer._prepare()
            with tf.control_dependencies(after + [self.optimizer._finish([], "finish")]):
                step = tf.no_op() if global_step is None else count(global_step)
        return step, Hyperparameters(step, before, _tensors(pairs))

    def apply_batch(self, pairs):
        """Returns the ops by which a worker applies its own batch to "async" variables."""
        if not pairs:
            return []
        optimizer = copy.copy(self.optimizer)
        optimizer._finish = lambda ops, name: tf.group(*ops, name=name)
        return [optimizer.apply_gradients(pairs)]

    def make_slots(self, variables):
        """Makes the slots of all variables at once, so that both ways of applying find them."""
        if hasattr(self.optimizer, "_optimizer") or hasattr(self.optimizer, "_opt"):
            raise UsageError(
                'the policy "async" needs the optimizer itself, and {} wraps another one'.format(
                    type(self.optimizer).__name__
                )
            )
        with tf.init_scope():
            self.optimizer._create_slots(variables)


def _tensors(pairs):
    tensors: List[Any] = []
    for gradient, _ in pairs:
        sparse = isinstance(gradient, tf.IndexedSlices)
        parts = (gradient.values, gradient.indices, gradient.dense_shape) if sparse else (gradient,)
        tensors += parts
    return tensors


def _without_summing(optimizer):
    """A copy of `optimizer` that takes each id to occur once.

    The base class's `..._duplicate_indices` sum the rows of an id and then call the method that
    replaces them here. An optimizer that overrides them keeps its own.
    """
    once, kind, base = copy.copy(optimizer), type(optimizer), tf.train.Optimizer
    if kind._apply_sparse_duplicate_indices is base._apply_sparse_duplicate_indices:
        once._apply_sparse_duplicate_indices = once._apply_sparse
    if (
        kind._resource_apply_sparse_duplicate_indices
        is base._resource_apply_sparse_duplicate_indices
    ):
        once._resource_apply_sparse_duplicate_indices = once._resource_apply_sparse
    return once
