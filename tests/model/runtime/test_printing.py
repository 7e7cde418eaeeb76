"""Numbers are printed as TensorFlow prints them."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from semisync.common.errors import UsageError
from tests.model.runtime.same import QUICK, assert_same

FILLS = strategies.sampled_from(["", "0", "-", "+", " ", "#"])
WIDTHS = strategies.sampled_from([-1, 0, 1, 9, 25])
HALVES = strategies.integers(-(10**6), 10**6).map(lambda number: number / 16)
NORMAL = strategies.floats(width=32, allow_subnormal=False)


def printed(peer, numbers, how):
    ours = runtime.as_string(torch.from_numpy(numbers), **how)
    attributes = {"attr_" + name: value for name, value in how.items()}
    assert_same([ours], peer.ask("as_string", numbers=numbers, **attributes))


@QUICK
@given(
    values=strategies.lists(strategies.integers(-(2**63), 2**63 - 1), max_size=8),
    fill=FILLS,
    width=WIDTHS,
)
def test_integers_of_any_width(peer, values, fill, width):
    printed(peer, np.array(values, np.int64), {"fill": fill, "width": width})


@QUICK
@given(
    values=strategies.lists(strategies.one_of(NORMAL, HALVES), max_size=8),
    fill=FILLS,
    width=WIDTHS,
    precision=strategies.sampled_from([-1, 0, 1, 4, 18, 30]),
    form=strategies.sampled_from([{}, {"scientific": True}, {"shortest": True}]),
    single=strategies.booleans(),
)
def test_floats_of_any_precision(peer, values, fill, width, precision, form, single):
    numbers = np.array(values, np.float32 if single else np.float64)
    printed(peer, numbers, {"fill": fill, "width": width, "precision": precision, **form})


def test_ties_are_rounded_to_even_and_carries_reach_the_whole_part(peer):
    ties = np.array([0.5, 1.5, 2.5, -0.5, 0.125, 0.375, 9.5, 99.9999995, 0.9999995, 1e15 + 0.5])
    for precision in (0, 2, 6):
        printed(peer, ties, {"precision": precision})


def test_numbers_beyond_the_integers_nan_and_infinity(peer):
    numbers = np.array([1e300, -1e30, np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**63])
    for how in ({}, {"width": 12, "fill": "0"}, {"width": 9, "fill": "+"}, {"shortest": True}):
        printed(peer, numbers, how)


def test_float32_below_the_smallest_normal_number_is_0(peer):
    numbers = np.array([1e-40, -1e-40, 1.2e-38], np.float32)
    printed(peer, numbers, {"scientific": True})


def test_bools_and_small_integers(peer):
    printed(peer, np.array([True, False]), {"width": 9})
    for dtype in (np.int8, np.int16, np.int32):
        printed(peer, np.array([0, -1, 127], dtype), {})


@pytest.mark.parametrize(
    "how", [{"fill": "x"}, {"precision": 2}, {"shortest": True, "scientific": True}]
)
def test_formats_without_meaning_are_refused(how):
    with pytest.raises(UsageError):
        runtime.as_string(torch.tensor([1]), **how)
