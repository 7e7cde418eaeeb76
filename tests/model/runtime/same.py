"""Comparing what runtime gives with what TensorFlow gives."""

import numpy as np
from hypothesis import HealthCheck, settings, strategies

from semisync.common.errors import SemisyncError
from tests.model.runtime.peer import Refused

QUICK = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TEXTS = strategies.one_of(
    strategies.binary(max_size=70),
    strategies.text(max_size=8).map(lambda text: text.encode("utf-8")),
    strategies.sampled_from([b"", b"-1", b"0", b"\0", b"a\0b", b" a ", b"a,b", b"\xff"]),
)


def objects(values, shape=None):
    """An object array of bytes."""
    out = np.empty(len(values), object)
    out[:] = values
    return out if shape is None else out.reshape(shape)


def assert_same(ours, theirs):
    """Every output has the same shape, type and values; NaN is like NaN, and -0 is not 0."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        array = one.numpy()
        assert array.shape == other.shape
        assert array.dtype == other.dtype
        if array.dtype.kind == "f":
            assert np.signbit(array[array == 0]).tolist() == np.signbit(other[other == 0]).tolist()
        np.testing.assert_array_equal(array, other)


def both(ours, theirs):
    """The results of two functions, None for one that refuses."""
    results = []
    for call in (ours, theirs):
        try:
            results.append(call())
        except (SemisyncError, Refused):
            results.append(None)
    return results
