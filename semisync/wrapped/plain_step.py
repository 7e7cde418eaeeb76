"""Records in the graph how the plain job would train, see `semisync.common.plain_step`.

The plain job's step is the chief's, but for four things:

1. Its gradients are the batch's own. The optimizer takes each id once, so the rows of an id are
   summed here as the optimizer itself would; no run of the job needs these ops.
2. Its hyperparameters are those of the run.
3. The step takes the place of the worker's train op.
4. Nothing of the chief's comes after it.
"""

from semisync.common import plain_step
from semisync.common.compat import tf


def note(gradients, tensors, waits):
    """Adds a `PlainStep` to the default graph's collection.

    Args:
        gradients: list of (the global batch's, the batch's own, variable).
        tensors: list of (another input of the chief's step, the plain job's in its place).
        waits: {op: list of ops}, see `PlainStep`.
    """
    with tf.control_dependencies(None):
        for aggregated, own, variable in gradients:
            with tf.device(variable.device):
                tensors = tensors + list(zip(_parts(aggregated), _parts(_each_id_once(own))))
    step = plain_step.PlainStep(
        {tensor.name: own.name for tensor, own in tensors},
        {op.name: [before.name for before in ops] for op, ops in waits.items()},
    )
    tf.add_to_collection(plain_step.COLLECTION, plain_step.describe(step))


def _parts(gradient):
    if isinstance(gradient, tf.IndexedSlices):
        return [gradient.values, gradient.indices]
    return [gradient]


def _each_id_once(gradient):
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    ids, places = tf.unique(gradient.indices)
    return tf.IndexedSlices(
        tf.math.unsorted_segment_sum(gradient.values, places, tf.size(ids)), ids
    )
