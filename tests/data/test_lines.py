"""Finding lines and fields in bytes, against Python's own splitting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.data.compiled import lines, tokens

TEXT = st.lists(st.sampled_from([b"\n", b"\t", b"a", b"\r", b"bcd", b"12345678"]), max_size=40)


def padded(data):
    return np.frombuffer(data + bytes(8), np.uint8)[: len(data)]


def split(data):
    """The fields of each line that is not empty."""
    found = [line[:-1] if line.endswith(b"\r") else line for line in data.split(b"\n")]
    return [line.split(b"\t") for line in found if line]


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(1, 3))
def test_fields_are_those_of_python_or_the_first_wrong_line_is_named(parts, columns):
    data = b"".join(parts)
    expected = split(data)
    wrong = next((k for k, line in enumerate(expected) if len(line) != columns), None)
    array = padded(data)
    for starts, rows, at, count in (
        lines.fields(array, len(expected), columns, ord("\t"), -1),
        lines.plain_fields(array, len(expected), columns, ord("\t")),
    ):
        assert rows == (len(expected) if wrong is None else wrong)
        assert (at >= 0) == (wrong is not None)
        if wrong is not None:
            assert count == len(expected[wrong])
            assert data[at:].startswith(expected[wrong][0])
        for row in range(rows):
            bounds = starts[:, row]
            found = [data[first : after - 1] for first, after in zip(bounds, bounds[1:])]
            assert found == expected[row]


@settings(deadline=None)
@given(TEXT, st.integers(1, 30))
def test_counting_rows_block_by_block_finds_each_once(parts, block):
    data = b"".join(parts)
    array = np.frombuffer(data, np.uint8)
    counts = [
        lines.count(array, start, min(start + block, len(data)))
        for start in range(0, len(data), block)
    ]
    assert sum(counts) == len(split(data))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.integers(-(2**64), 2**64), st.sampled_from(["", "-", "x", "1x"]))))
def test_integers_are_read_up_to_the_ends_of_int64(values):
    texts = [str(value).encode() for value in values]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    bad = [
        not (value == "" or (isinstance(value, int) and -(2**63) <= value < 2**63))
        for value in values
    ]
    offsets, found, wrong = tokens.integers(padded(b"".join(texts)), starts, ends, ord("|"))
    assert wrong == (bad.index(True) if any(bad) else -1)
    if wrong < 0:
        assert found.tolist() == [value for value in values if value != ""]
        assert np.diff(offsets).tolist() == [int(value != "") for value in values]
