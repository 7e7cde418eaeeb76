"""From rows of the log to what a graph is fed, and the names of the feed points.

A dense feature is fed where the model has it: a placeholder, or an output of IteratorGetNext. A
sparse one is three tensors; files name them POINT/indices, POINT/values and POINT/shape, where
POINT is the sparse placeholder or the op that delivers the SparseTensor.
"""

import os.path
from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from tests.model.zoo import log


def is_sparse(tensor):
    return isinstance(tensor, tf.SparseTensor)


def point(tensor):
    """Name of a feed point: of a placeholder without ":0", of an iterator's component with it."""
    if is_sparse(tensor):
        name = tensor.indices.op.name
        return os.path.dirname(name) if name.endswith("/indices") else name
    return tensor.op.name if tensor.op.type.startswith("Placeholder") else tensor.name


def parts(tensor):
    """{part: tensor} of a SparseTensor."""
    return {
        "indices": tensor.indices,
        "values": tensor.values,
        "shape": tensor.dense_shape,
    }


def values(tensors, rows):
    """{name in the files: array} of {feature: tensor} for some rows of the log."""
    found = {}
    for feature, tensor in tensors.items():
        if is_sparse(tensor):
            triple = log.sparse(rows[feature])
            for part, value in zip(("indices", "values", "shape"), triple):
                found["{}/{}".format(point(tensor), part)] = value
        else:
            found[point(tensor)] = np.asarray(rows[feature]).astype(tensor.dtype.as_numpy_dtype)
    return found


def feed(tensors, found):
    """The feed_dict of `values`."""
    fed: Dict[Any, Any] = {}
    for tensor in tensors.values():
        if is_sparse(tensor):
            fed.update(
                (each, found["{}/{}".format(point(tensor), part)])
                for part, each in parts(tensor).items()
            )
        else:
            fed[tensor] = found[point(tensor)]
    return fed


def flags(model, which):
    """{tensor: value} of the flags for "training", "evaluation" or "steps"."""
    return {flag.tensor: getattr(flag, which) for flag in model.flags}


def described(tensors):
    """What model.json says of {feature: tensor}."""
    return [_describe(feature, tensor) for feature, tensor in sorted(tensors.items())]


def _describe(feature, tensor):
    said = {
        "feature": feature,
        "point": point(tensor),
        "sparse": is_sparse(tensor),
        "dtype": tensor.dtype.name,
        "shape": tensor.shape.as_list() if tensor.shape.ndims is not None else None,
    }
    if is_sparse(tensor):
        said["tensors"] = {part: each.name for part, each in parts(tensor).items()}
    else:
        said["tensor"] = tensor.name
    return said
