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


def weighted_mean(batches, variables, weights, divisor):
    """The mean gradients of a global batch, for the variables of one PS.

    Args:
      batches: M lists of gradients, one list a batch, each in the order of `variables`.
      variables: those of the PS that have gradients.
      weights: float32 [M], each batch's weight. A weight of 0 makes a batch vanish even where its
        gradient is not finite.
      divisor: float32 scalar, the number of batches.

    Returns: a list of gradients, one a variable.
    """
    means = []
    for variable, column in zip(variables, zip(*batches)):
        if is_sparse(column[0]):
            values = tf.concat(_scaled([g.values for g in column], weights), 0)
            indices = tf.concat([g.indices for g in column], 0)
            shape = tf.constant(variable.shape.as_list(), indices.dtype)
            means.append(tf.IndexedSlices(_divided(values, divisor), indices, shape))
        else:
            means.append(_divided(tf.add_n(_scaled(column, weights)), divisor))
    return means


def _scaled(tensors, weights):
    return [
        raw_ops.MulNoNan(x=tensor, y=tf.cast(weights[i], tensor.dtype))
        for i, tensor in enumerate(tensors)
    ]


def _divided(total, divisor):
    return total / tf.cast(divisor, total.dtype)
