"""Lookup tables find what TensorFlow's find, and refuse the files that it refuses."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate.runtime import LookupTable, Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, TEXTS, assert_same, both, objects

INT64 = strategies.integers(-(2**63), 2**63 - 1)


@QUICK
@given(
    known=strategies.dictionaries(TEXTS, INT64, max_size=30),
    wanted=strategies.lists(TEXTS, max_size=10),
    default=INT64,
)
def test_strings_are_found_as_in_a_dictionary(known, wanted, default):
    keys, values = objects(list(known)), torch.tensor(list(known.values()), dtype=torch.int64)
    table = LookupTable(Strings.of(keys), values, default)
    wanted = wanted + list(known)[:5]
    found = table.find(Strings.of(objects(wanted)))
    assert found.tolist() == [known.get(word, default) for word in wanted]
    assert len(table) == len(known)


@QUICK
@given(
    known=strategies.dictionaries(INT64, TEXTS, max_size=30),
    wanted=strategies.lists(INT64, max_size=10),
)
def test_integers_are_found_as_in_a_dictionary(known, wanted):
    table = LookupTable(
        torch.tensor(list(known), dtype=torch.int64), Strings.of(objects(list(known.values()))), "?"
    )
    wanted = wanted + list(known)[:5]
    found = table.find(torch.tensor(wanted, dtype=torch.int64))
    assert found.numpy().tolist() == [known.get(key, b"?") for key in wanted]


FILES = [
    b"a\nb\n",
    b"a\nb",
    b"a\r\nb\r\n",
    b"a\rb\nc",
    b"a\n\nb\n",
    b"a\na\n",
    b"a\n\r\n",
    b"",
    b"x\t1\ny\t2\n",
    b"x\t1\nx\t1\n",
    b"x\t1\nx\t2\n",
    b"x\t1\ny\n",
    b"x\tone\n",
    b"x\t\ty\n",
    b"5\n7\n5",
    b"a\0b\n",
    "é\n日本\n".encode(),
]


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize(
    "key_index, value_index, text_keys, text_values",
    [
        (-2, -1, True, False),
        (-1, -2, False, True),
        (0, 1, True, False),
        (0, 1, True, True),
        (1, 0, False, True),
        (-2, -1, False, False),
        (0, -1, True, False),
    ],
)
@pytest.mark.few(1)
def test_a_file_makes_the_table_that_it_makes_in_tensorflow(
    peer, tmp_path, key_index, value_index, text_keys, text_values, size
):
    keys = [b"a", b"b", b"x", b"y", b"a\0b", b"a\rb", b""] if text_keys else [0, 1, 2, 5, 7]
    wanted = objects(keys) if text_keys else np.array(keys)
    for number, content in enumerate(FILES):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(content)

        def found(path=str(path)):
            types = [Strings if text else torch.int64 for text in (text_keys, text_values)]
            table = LookupTable.from_text_file(
                path,
                key_index,
                value_index,
                size or -1,
                default="none" if text_values else -5,
                key_dtype=types[0],
                value_dtype=types[1],
            )
            given = Strings.of(wanted) if text_keys else torch.from_numpy(wanted)
            return [table.find(given), torch.tensor(len(table))]

        ours, theirs = both(
            found,
            lambda path=str(path): peer.ask(
                "table_of_file",
                keys=wanted,
                attr_path=path,
                attr_key_index=key_index,
                attr_value_index=value_index,
                attr_size=size,
                attr_text_keys=text_keys,
                attr_text_values=text_values,
            ),
        )
        assert (ours is None) == (theirs is None), content
        if ours is not None:
            assert_same(ours, theirs)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"a\n\nb\n", "line 2 is empty"),
        (b"a\nb\na\n", "the key b'a' has two values, 0 and 2"),
        (b"", "there is no line"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"words.txt: {message}"):
        LookupTable.from_text_file(str(path))


def test_a_file_that_is_missing_or_short_is_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        LookupTable.from_text_file(str(tmp_path / "none.txt"))
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\nb\n")
    with pytest.raises(BadInput, match="3 lines were expected, but there are 2"):
        LookupTable.from_text_file(str(path), vocab_size=3)
    with pytest.raises(BadInput, match="line 1 has 1 columns"):
        LookupTable.from_text_file(str(path), 0, 1)


def test_a_repeated_key_counts_once_and_may_not_have_two_values():
    assert len(LookupTable(["a", "b", "a"], [1, 2, 1], -1)) == 2
    with pytest.raises(BadInput, match="two values, 1 and 3"):
        LookupTable(["a", "b", "a"], [1, 2, 3], -1)


def test_the_default_may_be_given_with_the_keys():
    table = LookupTable(["a"], [1.5], 0.0)
    words = Strings.of([["a", "b"]])
    assert table.find(words).tolist() == [[1.5, 0.0]]
    assert table.find(words, -2.0).tolist() == [[1.5, -2.0]]
    assert table.find(words, torch.tensor(3.0)).tolist() == [[1.5, 3.0]]
    assert table.find(words).dtype == torch.float32


def test_line_numbers_may_begin_elsewhere(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\nb\n")
    table = LookupTable.from_text_file(str(path), offset=100)
    assert table.find(Strings.of(["b", "c"])).tolist() == [101, -1]


def test_an_empty_table_has_nothing_and_a_pickled_one_everything():
    empty = LookupTable(torch.zeros(0, dtype=torch.int64), torch.zeros(0), 7.0)
    assert empty.find(torch.tensor([1, 2])).tolist() == [7.0, 7.0]
    table = pickle.loads(pickle.dumps(LookupTable(["a"], [1], -1)))
    assert table.find(Strings.of(["a", "b"])).tolist() == [1, -1]


def test_keys_of_another_kind_are_refused():
    table = LookupTable(["a"], [1], -1)
    with pytest.raises(UsageError, match="are strings, not numbers"):
        table.find(torch.tensor([1]))
    with pytest.raises(UsageError, match="are not a table"):
        LookupTable(["a"], [1, 2], -1)
    with pytest.raises(UsageError, match="int32, int64 or strings"):
        LookupTable([1.5], [1], -1)
