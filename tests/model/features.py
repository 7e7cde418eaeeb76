"""A zoo model's recorded inputs as the mapping that a converted module takes."""

import importlib.util

import numpy as np
import torch

from migrate import runtime

_PARTS = ("indices", "values", "shape")


def features(written):
    """Its inputs, and what its flags are when it is evaluated."""
    found = features_of(written.inputs())
    for flag in written.said["flags"]:
        if flag["evaluation"] is not None:
            found[flag["point"]] = torch.tensor(flag["evaluation"])
    return found


def features_of(points):
    """{feature: what a module takes} of {feed point: array}."""
    found = {}
    for point, array in _parsed(points).items():
        name, _, part = point.rpartition("/")
        if name and part in _PARTS:
            found.setdefault(name, [None] * 3)[_PARTS.index(part)] = as_input(array)
        else:
            found[point] = as_input(array)
    return found


def _parsed(points):
    """`points`, and for serialized Examples what TensorFlow parses them into."""
    if "serialized" not in points:
        return points
    import tensorflow as tf

    from tests.model.zoo.models.declared import PARSED

    found = {point: array for point, array in points.items() if point != "serialized"}
    for name, value in tf.io.parse_example(points["serialized"].tolist(), PARSED).items():
        if isinstance(value, tf.SparseTensor):
            parts = (value.indices, value.values, value.dense_shape)
            found.update((f"{name}/{key}", one.numpy()) for key, one in zip(_PARTS, parts))
        else:
            found[name] = value.numpy()
    return found


def as_input(array):
    """Strings, or a tensor."""
    return runtime.Strings.of(array) if array.dtype == object else torch.tensor(np.array(array))


def outputs_of(module, inputs):
    """What a module returns, a list of arrays."""
    with torch.no_grad():
        found = module(inputs)
    found = found if isinstance(found, tuple) else (found,)
    return [one.numpy() for one in found]


def source_of(directory):
    """The model.py of a conversion, imported."""
    spec = importlib.util.spec_from_file_location("model", directory / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(directory):
    """The module that it makes, with its weights."""
    return source_of(directory).load()
