"""Ops on text give what TensorFlow's give, on any bytes."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, TEXTS, assert_same, both, objects

LISTS = strategies.lists(
    strategies.one_of(TEXTS, strategies.text(",; \taé", max_size=9).map(str.encode)), max_size=8
)


@pytest.mark.long
@QUICK
@given(values=LISTS)
def test_text_is_joined_stripped_measured_and_changed_in_case(peer, values):
    strings = objects(values)
    ours = Strings.of(strings)
    assert_same(
        [
            runtime.string_join([ours, Strings.of("-"), ours], "é"),
            runtime.string_strip(ours),
            runtime.string_lower(ours),
            runtime.string_upper(ours),
            runtime.string_length(ours),
            runtime.string_length(ours, "UTF8_CHAR"),
        ],
        peer.ask("text", strings=strings, attr_separator="é"),
    )


@QUICK
@given(
    values=LISTS,
    delimiter=strategies.sampled_from([" ", ",", ", ", "", ",;", "\t", ",,"]),
    skip_empty=strategies.booleans(),
    most=strategies.sampled_from([-1, 0, 1, 2]),
)
def test_text_is_split_in_both_of_tensorflows_ways(peer, values, delimiter, skip_empty, most):
    strings = objects(values)
    old = {"attr_delimiter": delimiter, "attr_skip_empty": skip_empty}
    assert_same(
        runtime.string_split(Strings.of(strings), delimiter, skip_empty),
        peer.ask("split", strings=strings, **old),
    )
    assert_same(
        runtime.string_split_v2(Strings.of(strings), delimiter, most),
        peer.ask("split_v2", strings=strings, attr_sep=delimiter, attr_maxsplit=most),
    )


# TensorFlow 1.15 ends its process with an error that quotes what is not UTF-8.
PLAIN = strategies.text("aé,\0", max_size=9).map(str.encode).filter(bytes.isascii)
PATTERNS = ["a", "a*", ".*", "(a| )+", ".", "[^a]*", "a|ab", r"\d", " $", "^a", r"\pL", "(?i)A"]


@QUICK
@given(
    values=LISTS,
    pattern=strategies.sampled_from(PATTERNS),
    rewrite=strategies.sampled_from(["", "x", r"<\0>"]),
    everywhere=strategies.booleans(),
)
def test_regular_expressions_match_and_replace_the_same(peer, values, pattern, rewrite, everywhere):
    strings = objects(values)
    ours = Strings.of(strings)
    attributes = {"attr_pattern": pattern, "attr_rewrite": rewrite, "attr_everywhere": everywhere}
    assert_same(
        [
            runtime.regex_full_match(ours, pattern),
            runtime.regex_replace(ours, pattern, rewrite, everywhere),
        ],
        peer.ask("regex", strings=strings, **attributes),
    )


@QUICK
@given(value=PLAIN, begin=strategies.integers(-9, 9), size=strategies.integers(-1, 9))
def test_pieces_begin_at_either_end(peer, value, begin, size):
    strings = objects([value, value])
    ours, theirs = both(
        lambda: runtime.substr(Strings.of(strings), begin, size),
        lambda: peer.ask("substr", strings=strings, begin=np.array(begin), size=np.array(size)),
    )
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert_same([ours], theirs)


def test_every_string_may_have_a_piece_of_its_own():
    pieces = runtime.substr(Strings.of(["abc", "def"]), torch.tensor([0, 2]), torch.tensor([1, 5]))
    assert pieces.numpy().tolist() == [b"a", b"f"]
    assert runtime.substr(Strings.of("abc"), torch.tensor([0, 1]), 1).shape == (2,)


def test_what_is_not_supported_is_refused():
    words = Strings.of(["a", "b"])
    with pytest.raises(UsageError, match="utf-8"):
        runtime.string_lower(words, "utf-8")
    with pytest.raises(UsageError, match="UTF8_CHAR"):
        runtime.substr(words, 0, 1, "UTF8_CHAR")
    with pytest.raises(UsageError, match="regular expression"):
        runtime.regex_full_match(words, "(")
    with pytest.raises(BadInput, match="side by side"):
        runtime.string_join([words, Strings.of(["a"])])
    with pytest.raises(BadInput, match="one axis"):
        runtime.string_split(words.expand_dims(0))
    with pytest.raises(BadInput, match="one delimiter"):
        runtime.string_split(words, words)
