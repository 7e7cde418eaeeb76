"""Gradients as payloads, and the weighted mean of a global batch's gradients.

A dense gradient travels as one tensor, a sparse one (tf.IndexedSlices, ids unsorted and repeated
as embedding look-ups give them) as two: values and indices. Sparse gradients are never merged on
the way: a global batch's slices are concatenated once, and the wrapped optimizer sums the rows of
one id, as it does for a batch of its own.

The mean is that of the global batch: sum over the batches of weight x gradient, divided by the
number of batches M, for dense and sparse alike. With all weights 1 and batches of equal size it
is the gradient of the mean loss over the union of the batches.
"""

from semisync.compat import raw_ops, tf


def is_sparse(gradient):
    """True for a tf.IndexedSlices."""
    return isinstance(gradient, tf.IndexedSlices)


def pack(gradients):
    """The gradients' tensors as one flat list, the payload of a batch."""
    flat = []
    for gradient in gradients:
        flat += [gradient.values, gradient.indices] if is_sparse(gradient) else [gradient]
    return flat


def unpack(payload, like):
    """A payload's tensors as gradients again, with the kinds and static shapes of `like`."""
    tensors = iter(payload)
    gradients = []
    for model in like:
        values = next(tensors)
        if is_sparse(model):
            values.set_shape(tf.TensorShape([None]).concatenate(model.values.shape[1:]))
            indices = next(tensors)
            indices.set_shape([None])
            gradients.append(tf.IndexedSlices(values, indices))
        else:
            values.set_shape(model.shape)
            gradients.append(values)
    return gradients


def nothing(gradients, variables):
    """The payload of a batch that adds nothing: zeros, and no rows at all where sparse."""
    empty = []
    for gradient, variable in zip(gradients, variables):
        if is_sparse(gradient):
            row = variable.shape.as_list()[1:]
            empty += [
                tf.zeros([0] + row, gradient.dtype.base_dtype),
                tf.zeros([0], gradient.indices.dtype),
            ]
        else:
            empty.append(tf.zeros(variable.shape, gradient.dtype.base_dtype))
    return empty


def weighted_mean(batches, weights, divisor):
    """The mean gradients of a global batch, for the variables of one PS.

    Args:
      batches: M lists of gradients, one list a batch, in the same order of variables.
      weights: float32 [M], each batch's weight.
      divisor: float32 scalar, the number of batches.

    Returns: a list of gradients, one a variable.

    Nearly always every weight is 1; then nothing is multiplied. A weight of 0 makes a batch
    vanish even where its gradient is not finite.
    """
    by_variable = list(zip(*batches))
    dense_or_values = tf.cond(
        tf.reduce_all(tf.equal(weights, 1.0)),
        lambda: [_total(column) for column in by_variable],
        lambda: [_total(_scaled(column, weights)) for column in by_variable],
    )
    if len(by_variable) == 1 and not isinstance(dense_or_values, (list, tuple)):
        dense_or_values = [dense_or_values]
    means = []
    for column, total in zip(by_variable, dense_or_values):
        mean = total / tf.cast(divisor, total.dtype)
        if is_sparse(column[0]):
            mean = tf.IndexedSlices(mean, tf.concat([g.indices for g in column], 0))
        means.append(mean)
    return means


def _total(column):
    """The sum of dense gradients, the concatenated values of sparse ones."""
    if is_sparse(column[0]):
        return tf.concat([gradient.values for gradient in column], 0)
    return tf.add_n(list(column))


def _scaled(column, weights):
    scaled = []
    for i, gradient in enumerate(column):
        values = gradient.values if is_sparse(gradient) else gradient
        values = raw_ops.MulNoNan(x=values, y=tf.cast(weights[i], values.dtype))
        scaled.append(tf.IndexedSlices(values, gradient.indices) if is_sparse(gradient) else values)
    return scaled
