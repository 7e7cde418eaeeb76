"""CSV and raw numbers are decoded as TensorFlow decodes them, with its errors."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, assert_same, both, objects

FIELDS = ["1", "", '"a,b"', '"x""y"', "NA", '"\n"', " 2", '""', "\n", '"', '"a']
RECORDS = strategies.one_of(
    strategies.text('a1,," \n\r', max_size=9),
    strategies.lists(strategies.sampled_from(FIELDS), min_size=1, max_size=4).map(",".join),
    strategies.lists(strategies.sampled_from(FIELDS), min_size=3, max_size=3).map(",".join),
)


@QUICK
@given(
    record=RECORDS,
    quotes=strategies.booleans(),
    selected=strategies.sampled_from([[], [0, 1, 2], [1, 3], [2]]),
)
def test_records_have_the_fields_that_tensorflow_finds(peer, record, quotes, selected):
    columns = len(selected) or 3
    how = {"use_quote_delim": quotes, "select_cols": selected, "na_value": "NA"}
    defaults = [Strings.of(["a"] if column != 1 else []) for column in range(columns)]
    records = objects([record.encode()])
    attributes = {"attr_" + name: value for name, value in how.items()}
    ours, theirs = both(
        lambda: runtime.decode_csv(Strings.of(records), defaults, **how),
        lambda: peer.ask("fields", records=records, attr_columns=columns, **attributes),
    )
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert_same(ours, theirs)


def test_columns_have_the_types_of_their_defaults_and_the_shape_of_the_records():
    records = Strings.of([["1,2.5,a", ",,"]])
    defaults = [torch.tensor([7]), torch.tensor([0.5]), Strings.of("z")]
    integers, floats, words = runtime.decode_csv(records, defaults)
    assert integers.tolist() == [[1, 7]]
    assert floats.tolist() == [[2.5, 0.5]]
    assert words.numpy().tolist() == [[b"a", b"z"]]


@pytest.mark.parametrize(
    "record, message",
    [
        ("1", "has more or fewer fields"),
        ("1,2,3", "has more or fewer fields"),
        ("1,", "no value, and the column has no default"),
        ('1,a"b', "without quotes has a quote"),
        ('1,"a"b"', "must be doubled"),
        ('1,"ab', "must end with a quote"),
        ("one,2", "CSV column 0: b'one', at position 1, is not a number"),
    ],
)
def test_a_wrong_record_is_named_with_what_is_wrong(record, message):
    defaults = [torch.tensor([7]), torch.tensor([], dtype=torch.float32)]
    with pytest.raises(BadInput, match=message):
        runtime.decode_csv(Strings.of(["1,2", record]), defaults)


def test_options_without_meaning_are_refused():
    with pytest.raises(UsageError, match="one byte"):
        runtime.decode_csv(Strings.of(["a"]), [Strings.of("")], field_delim="::")
    with pytest.raises(UsageError, match="ascending"):
        runtime.decode_csv(Strings.of(["a,b"]), [Strings.of("")] * 2, select_cols=[1, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "uint8"])
def test_raw_bytes_are_numbers(peer, dtype):
    strings = objects([bytes(range(16)), bytes(range(200, 216))], (2, 1))
    ours = runtime.decode_raw(Strings.of(strings), getattr(torch, dtype))
    assert_same([ours], peer.ask("decode_raw", strings=strings, attr_dtype=dtype))


def test_raw_bytes_of_other_lengths_or_orders_are_refused():
    with pytest.raises(BadInput, match="3 bytes are not numbers of 4"):
        runtime.decode_raw(Strings.of(["abc"]), torch.float32)
    with pytest.raises(BadInput, match="do not make a tensor"):
        runtime.decode_raw(Strings.of(["a", "ab"]), torch.uint8)
    with pytest.raises(UsageError, match="highest byte"):
        runtime.decode_raw(Strings.of(["ab"]), torch.int16, little_endian=False)
    empty = runtime.decode_raw(Strings.of(np.zeros(0, "S1")), torch.int16)
    assert empty.shape == (0, 0)
