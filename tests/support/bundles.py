"""Checkpoints of other people below ../shared, and when two tensors are the same."""

import numpy as np

from tests.support.require import SHARED


def third_party():
    found = sorted((SHARED / "models").rglob("*.index"))
    return [str(path)[: -len(".index")] for path in found]


def short(prefix):
    """A readable name for a test's parameter."""
    return prefix and prefix.split("models/")[1]


def same(ours, theirs):
    if ours.dtype.names:  # the bits of a type that numpy lacks
        return ours.tobytes() == theirs.tobytes() and ours.shape == theirs.shape
    theirs = np.asarray(theirs)
    if ours.dtype == object:
        return ours.tolist() == theirs.tolist()
    return (
        ours.dtype == theirs.dtype
        and ours.shape == theirs.shape
        and ours.tobytes() == theirs.tobytes()
    )


def write(prefix, tensors):
    """A bundle by TensorFlow's own kernel; a list of arrays is a variable in that many parts."""
    import tensorflow

    names, slices, values = [], [], []
    for name, found in tensors.items():
        if not isinstance(found, list):
            names, slices, values = [*names, name], [*slices, ""], [*values, found]
            continue
        rows, dim = sum(map(len, found)), found[0].shape[1]
        ends = np.cumsum([len(part) for part in found])
        for part, end in zip(found, ends):
            slices.append(f"{rows} {dim} {end - len(part)},{len(part)}:0,{dim}")
        names += [name] * len(found)
        values += found
    tensorflow.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=slices, tensors=values
    )
    return prefix
