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
