"""Text is read as the numbers that TensorFlow reads, or refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, assert_same, both, objects

PIECES = ["0", "1", "5", "9", ".", "e", "E", "-", "+", " ", "\t", "inf", "NaN", "12345678", "00"]
TEXTS = strategies.one_of(
    strategies.lists(strategies.sampled_from(PIECES), max_size=6).map("".join),
    strategies.integers(-(2**64), 2**64).map(str),
    strategies.floats().map(repr),
    strategies.floats(width=32).map(repr),
    strategies.floats(2.0**-99, 2.0**99, width=32).map(
        lambda one: (
            f"{(float(one) + float(np.nextafter(np.float32(one), np.float32(2e38)))) / 2:.20e}"
        )
    ),
)


@QUICK
@given(text=TEXTS, dtype=strategies.sampled_from(["float32", "float64", "int32", "int64"]))
def test_a_text_is_the_number_that_tensorflow_reads(peer, text, dtype):
    if dtype.startswith("float") and len(text) > 31:
        return  # TensorFlow 1.15 refuses it, here it is read
    strings = objects([text.encode()])
    ours, theirs = both(
        lambda: runtime.string_to_number(Strings.of(strings), getattr(torch, dtype)),
        lambda: peer.ask("to_number", strings=strings, attr_dtype=dtype),
    )
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert_same([ours], theirs)


def test_numbers_between_two_float32_are_rounded_once():
    below = "1.00000005960464477538"  # of the middle of 1 and its successor
    above = "1.00000005960464477540"
    ours = runtime.string_to_number(Strings.of([below, above]))
    assert ours.tolist() == [1.0, float(np.nextafter(np.float32(1), np.float32(2)))]


def test_more_digits_than_tensorflow_1_reads_and_infinity_are_read():
    texts = ["1." + "0" * 60 + "1", "-Infinity", "1" * 400]
    assert runtime.string_to_number(Strings.of(texts), torch.float64).tolist() == [
        1.0,
        -np.inf,
        np.inf,
    ]


@pytest.mark.parametrize("text", ["", "0x10", "1_0", "1,5", "five", "é", "1e", "--1", "5\0"])
def test_what_is_no_number_is_refused_with_its_place(text):
    with pytest.raises(BadInput, match="at position 1, is not a number of torch.float32"):
        runtime.string_to_number(Strings.of(["1", text]))


def test_other_types_are_refused():
    with pytest.raises(UsageError, match="not torch.int8"):
        runtime.string_to_number(Strings.of(["1"]), torch.int8)


def test_numbers_keep_the_shape_of_their_text():
    assert runtime.string_to_number(Strings.of([["1", "2"]]), torch.int32).tolist() == [[1, 2]]
    assert runtime.string_to_number(Strings.of([])).shape == (0,)
