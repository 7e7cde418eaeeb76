"""Finding lines and fields in bytes, against Python's own splitting."""

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from migrate.data import assembly
from migrate.data.compiled import lines, records, tokens

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
    for fields, quote in ((records.fields, (-1,)), (records.plain_fields, ())):
        starts = np.empty((columns + 1, len(expected)), np.int64)
        rows, at, count = fields(array, starts, ord("\t"), *quote)
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


FIELDS = [
    "7",
    "12|3",
    "",
    "-5",
    "123456789",
    f"{2**63 - 1}",
    f"{-(2**63)}|1",
    "1234567812345678",
    "0",
]
ODD = [
    "x",
    "1|",
    "|1",
    "-",
    "1||2",
    f"{2**63}",
    "-9223372036854775809",
    "0" * 20,
    "1 ",
    "7\r",
    "1\t",
]
ENDS = ["\n", "\r\n", "\n\n\r\n"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from(FIELDS)] * 2, st.sampled_from(["", "a", "b" * 20]))),
    st.none() | st.sampled_from(ODD),
    st.sampled_from(ENDS),
    st.booleans(),
)
def test_lines_and_ids_in_one_pass_are_those_of_python_and_odd_ones_are_left(rows, odd, end, open_):
    rows = [row if any(row) else ("7", "", "") for row in rows]
    written = [*rows, (odd, "1", "a")] if odd else rows
    text = "".join("\t".join((row[0], row[2], row[1])) + end for row in written)
    data = padded((text.rstrip("\r\n") if open_ else text).encode())
    values = np.empty((2, len(data) + 1), np.int64)
    offsets = np.empty((2, len(written) + 1), np.int32)
    spans = np.empty((1, 2, len(written)), np.int64)
    slots = np.array([0, -1, 1])
    plain = records.columns(data, slots, ord("\t"), ord("|"), values, offsets, spans)
    assert plain == (not odd)
    for row, (first, second, other) in enumerate(rows):
        for k, ids in enumerate((first, second)):
            found = values[k, offsets[k, row] : offsets[k, row + 1]]
            assert found.tolist() == [int(one) for one in ids.split("|") if one]
        assert bytes(data[slice(*spans[0, :, row])]) == other.encode()


@settings(max_examples=300, deadline=None)
@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(-(10**17), 10**17).map(str)
    | st.decimals(-(10**6), 10**6, places=4).map(str)
)
@example("16777217")
@example("16777219")
@example("-0")
@example("0.0000000000000000001")
def test_decimals_are_the_float32_that_arrow_reads_or_are_left_to_it(text):
    data = padded(text.encode())
    (value,), (other,) = tokens.numbers(data, np.array([0]), np.array([len(text)]))
    expected = pa.array([text]).cast(pa.float32()).to_numpy()
    assert other or np.array([value]).tobytes() == expected.tobytes()


def test_plain_decimals_are_not_left_to_arrow():
    texts = ["0", "1", "-12", "0.25", "-1234.5678", "123456789012345"]
    for text in texts:
        data = padded(text.encode())
        _, (other,) = tokens.numbers(data, np.array([0]), np.array([len(text)]))
        assert not other, text
    for text in ("", "-", ".5", "5.", "1e3", "nan", "1 ", "+1", "1.2.3", "--1"):
        data = padded(text.encode())
        _, (other,) = tokens.numbers(data, np.array([0]), np.array([len(text)]))
        assert other, text


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 9)), min_size=1), st.data())
def test_the_lists_at_some_places_are_those_of_arrow(all_lists, data):
    places = np.array(data.draw(st.lists(st.integers(0, len(all_lists) - 1))), np.int64)
    array = pa.array(all_lists, pa.list_(pa.int64()))
    offsets, wanted = assembly.taken(array.offsets.to_numpy(), places)
    values = array.values.to_numpy().take(wanted)
    assert pa.ListArray.from_arrays(offsets, values).equals(array.take(pa.array(places)))
