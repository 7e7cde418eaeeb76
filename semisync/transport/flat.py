"""Tensors as vectors and back, with as few ops as that takes: a graph has thousands of them."""

from semisync.common.compat import tf


def flat(tensors):
    """The values of tensors as vectors, a list of [n]."""
    return shaped(tensors, [[-1]] * len(tensors))


def shaped(tensors, shapes):
    """Tensors with other static shapes, a list; those of one shape share a constant."""
    constants = {}
    found = []
    for tensor, shape in zip(tensors, map(tuple, shapes)):
        if not tensor.shape.ndims == len(shape) == 1:
            if shape not in constants:
                constants[shape] = tf.constant(shape, tf.int32)
            tensor = tf.reshape(tensor, constants[shape])
        found.append(tensor)
    return found
