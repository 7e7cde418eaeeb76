"""Bucketize is TensorFlow's upper bound on float32 boundaries."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from semisync.common.errors import UsageError
from tests.model.runtime.same import QUICK, assert_same

NEAR = [0.0, -0.0, 0.1, 1.0, 16777216.0, 16777217.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 5e-324]
FLOATS = strategies.one_of(strategies.sampled_from(NEAR), strategies.floats(width=32))


@QUICK
@given(
    values=strategies.lists(FLOATS, max_size=12),
    edges=strategies.lists(
        strategies.one_of(
            strategies.sampled_from([0.0, 0.1, 1.0, 16777216.0, 1e-40]),
            strategies.floats(-1e9, 1e9, width=32),
        ),
        min_size=1,
        max_size=5,
    ).map(sorted),
    dtype=strategies.sampled_from([np.float32, np.float64]),
)
def test_floats_fall_where_tensorflow_puts_them(peer, values, edges, dtype):
    numbers = np.array(values, dtype)
    ours = runtime.bucketize(torch.from_numpy(numbers), edges)
    assert_same([ours], peer.ask("bucketize", numbers=numbers, attr_boundaries=edges))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_rounded_to_float32_first(peer, dtype):
    numbers = np.array([-1, 0, 1, 16777215, 16777216, 16777217, 16777218, 2**31 - 1], dtype)
    edges = [0.0, 16777216.0, 16777218.0, 2.0**31]
    ours = runtime.bucketize(torch.from_numpy(numbers), edges)
    assert_same([ours], peer.ask("bucketize", numbers=numbers, attr_boundaries=edges))


def test_nan_is_above_every_boundary():
    assert runtime.bucketize(torch.tensor([float("nan")]), [0.0, 1.0]).tolist() == [2]


def test_without_boundaries_there_is_one_bucket():
    assert runtime.bucketize(torch.tensor([5.0, -5.0]), []).tolist() == [0, 0]


def test_boundaries_that_descend_and_other_types_are_refused():
    with pytest.raises(UsageError, match="ascend"):
        runtime.bucketize(torch.tensor([1.0]), [1.0, 0.0])
    with pytest.raises(UsageError, match="no buckets"):
        runtime.bucketize(torch.tensor([True]), [1.0])
