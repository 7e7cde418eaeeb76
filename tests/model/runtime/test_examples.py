"""tf.train.Example is parsed as ParseExample parses it; what is broken is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import BadInput, SemisyncError, UsageError
from tests.model.runtime import fuzz, rows
from tests.model.runtime.rows import feature, message
from tests.model.runtime.same import QUICK, assert_same, objects

COMPARE = fuzz.KINDS["tf.train.Example"][1]


def example(**features):
    """A serialized Example of these serialized Features."""
    entries = [message(1, name.encode()) + message(2, one) for name, one in features.items()]
    return message(1, b"".join(message(1, entry) for entry in entries))


def integers(*values):
    return message(3, message(1, b"".join(map(rows.varint, values))))


def parsed(serialized, *asked):
    return runtime.parse_example(Strings.of(objects(serialized)), *asked)


@QUICK
@given(
    seed=strategies.integers(0, 2**32),
    place=strategies.floats(0, 1, exclude_max=True),
    cut=strategies.integers(0, 3),
    put=strategies.sampled_from(
        [b"", b"\x00", b"\x0a", b"\x12", b"\x7f", b"\x80", b"\xff", b"\x08"]
    ),
)
def test_a_damaged_example_is_refused_or_has_tensorflows_values(peer, seed, place, cut, put):
    serialized = rows.examples(np.random.default_rng(seed), 1)
    whole = serialized[0]
    at = int(place * len(whole))
    serialized[0] = whole[:at] + put + whole[at + cut :]

    class Asked:
        """Asks TensorFlow, which would end its process where it refuses, only after us."""

        @staticmethod
        def ask(kind, **given):
            return peer.ask(kind, **given)

    try:
        ours, theirs = COMPARE(Asked, serialized)
    except SemisyncError as error:
        assert "Example 0" in str(error)
        return
    assert_same(ours, theirs)


def test_no_cut_of_an_example_is_read_beyond_its_end():
    generator = np.random.default_rng(3)
    whole = rows.example(generator)
    for end in range(len(whole)):
        alone = np.frombuffer(whole[:end], np.uint8)
        strings = Strings(alone, np.array([0, end]))
        try:
            runtime.parse_example(strings, ["sparse_i"], [torch.int64])
        except BadInput as error:
            assert "Example 0" in str(error)


def test_ragged_features_have_row_splits_of_the_asked_type():
    serialized = [example(a=integers(1, 2)), example(), example(a=integers(3))]
    found = parsed(serialized, (), (), (), (), (), ["a"], [torch.int64], [torch.int32])
    assert found.ragged_values[0].tolist() == [1, 2, 3]
    assert found.ragged_row_splits[0].tolist() == [0, 2, 2, 3]
    assert found.ragged_row_splits[0].dtype == torch.int32


def test_concatenated_examples_are_one_and_the_last_feature_counts():
    twice = example(a=integers(1), b=integers(5)) + example(a=integers(2))
    found = parsed([twice], ["a", "b"], [torch.int64] * 2)
    assert [values.tolist() for values in found.sparse_values] == [[2], [5]]


def test_fields_that_an_example_does_not_have_are_skipped():
    unknown = message(7, b"abc") + b"\x40\x96\x01" + b"\x45abcd" + b"\x41abcdefgh"
    found = parsed([unknown + example(a=integers(1)) + unknown], ["a"], [torch.int64])
    assert found.sparse_values[0].tolist() == [1]


GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    "serialized, message",
    [
        (b"abc", "Example 1 is broken"),
        (example(a=integers(1))[:-1], "Example 1 is broken"),
        (example(a=feature("f", GENERATOR, 1)), "'a': its values are not of torch.int64"),
        (example(a=b"\x22\x00"), "'a': it is broken"),
        (example(a=b"\x1a\x03\x0a\x01\x80"), "'a': it is broken"),
        (example(a=integers(1, 2)), "'a': its values do not fill"),
        (example(b=integers(1)), "'a': it is required"),
    ],
)
def test_a_wrong_example_is_named_with_what_is_wrong(serialized, message):
    required = torch.tensor([], dtype=torch.int64)
    with pytest.raises(BadInput, match=message):
        parsed([example(a=integers(5)), serialized], (), (), ["a"], [required], [[1]])


def test_a_feature_longer_than_its_shape_must_fill_whole_rows():
    with pytest.raises(BadInput, match="do not fill"):
        parsed([example(a=integers(1, 2, 3))], (), (), ["a"], [torch.tensor([0])], [[None, 2]])


def test_types_and_shapes_without_meaning_are_refused():
    with pytest.raises(UsageError, match="not string, float32 or int64"):
        parsed([example()], ["a"], [torch.int32])
    with pytest.raises(UsageError, match="one axis"):
        runtime.parse_example(Strings.of("x"))
