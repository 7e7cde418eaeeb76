"""A batch that takes long: its gradients are computed, and sent only after a pause.

The pause lies between reading the variables and sending the gradients, so that the gradients of a
slow batch are old when they arrive, in every mode, as those of a slow machine are.
"""

from semisync.common.compat import raw_ops, tf


def delayed(pairs, pause, also, wait):
    """The same (gradient, variable) pairs, after `wait(pause)`, once they and `also` exist."""
    computed = [part for gradient, _ in pairs for part in gradient_parts(gradient)]
    with tf.control_dependencies(computed + also):
        waited = tf.py_func(wait, [pause], tf.float32)
    with tf.control_dependencies([waited]):
        return [(_copy(gradient), variable) for gradient, variable in pairs]


def gradient_parts(gradient):
    sparse = isinstance(gradient, tf.IndexedSlices)
    return [gradient.values, gradient.indices] if sparse else [gradient]


def _copy(gradient):
    if isinstance(gradient, tf.IndexedSlices):
        values, indices = map(tf.identity, gradient_parts(gradient))
        return tf.IndexedSlices(values, indices, gradient.dense_shape)
    return tf.identity(gradient)


def step_now(step):
    """The global step when the op runs."""
    # A copy: a reference variable's value is an alias, and would be fetched as it is later.
    with tf.device(step.device):
        return raw_ops.DeepCopy(x=step)
