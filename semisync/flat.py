"""Tensors as vectors and back, without an op where nothing changes: a graph has thousands."""

from semisync.compat import tf


def flat(tensor):
    """The values of a tensor as a vector, [n]."""
    return shaped(tensor, [-1])


def shaped(tensor, shape):
    """A tensor with another static shape."""
    return tensor if tensor.shape.ndims == len(shape) == 1 else tf.reshape(tensor, shape)
