"""The small formats below a checkpoint, against what others write: snappy, LevelDB, protobuf."""

import contextlib
import os

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import migrate
from semisync.common.errors import BadInput
from semisync.encoding import snappy, wire
from semisync.encoding.ordered_code import slice_key
from semisync.encoding.sstable import read_table
from tests.migrate.table_writer import varint, write_table
from tests.support.conversions import without_graph

compressible = st.lists(st.binary(max_size=40) | st.sampled_from([b"abcd" * 50, b"\x00" * 300]))


@given(compressible.map(b"".join))
def test_snappy_unfolds_what_the_reference_compressed(data):
    packed = pyarrow.compress(data, "snappy", asbytes=True)
    assert snappy.decompress(memoryview(packed), "block") == data


@given(st.binary(max_size=200))
def test_snappy_refuses_or_unfolds_any_bytes(data):
    try:
        out = snappy.decompress(memoryview(data), "block")
    except BadInput:
        return
    assert pyarrow.decompress(data, len(out), "snappy", asbytes=True) == out


def test_a_snappy_block_that_announces_too_much_is_refused_before_memory_is_taken():
    with pytest.raises(BadInput, match="block of 25 bytes claims to hold 4294967295"):
        snappy.decompress(memoryview(b"\xff\xff\xff\xff\x0f" + bytes(20)), "block")


@settings(max_examples=30)
@given(
    entries=st.dictionaries(st.binary(max_size=12), st.binary(max_size=60), max_size=60),
    per_block=st.integers(1, 20),
    packed=st.booleans(),
)
def test_a_table_gives_back_its_entries_in_order(tmp_path_factory, entries, per_block, packed):
    path = tmp_path_factory.mktemp("table") / "t.index"
    pairs = sorted(entries.items())
    write_table(path, pairs, per_block, packed)
    assert list(read_table(str(path))) == pairs


@pytest.mark.parametrize("packed", [False, True])
def test_a_repacked_index_reads_the_same_here_and_in_tensorflow(
    tf2_checkpoints, tmp_path, tf_reader, packed
):
    prefix = without_graph(tf2_checkpoints, "slices", tmp_path)
    index = tmp_path / "slices.index"
    write_table(index, list(read_table(str(index))), 3, packed)
    reader = tf_reader(prefix)
    with migrate.open_checkpoint(prefix) as checkpoint:
        for name in ("rows", "columns", "both"):
            assert (checkpoint.read(name) == reader.get_tensor(name)).all()


def test_keys_out_of_order_are_refused(tmp_path):
    write_table(tmp_path / "t", [(b"b", b""), (b"a", b"")])
    with pytest.raises(BadInput, match="out of order"):
        list(read_table(str(tmp_path / "t")))


def test_a_table_that_is_no_checkpoint_is_named(tmp_path):
    write_table(tmp_path / "x.index", [(b"a", b"1")])
    with pytest.raises(BadInput, match="without a checkpoint's header"):
        migrate.open_checkpoint(tmp_path / "x")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (b"\x08\x00", "claims 0 data files"),
        (b"\x08" + varint(1 << 40), "data files"),
        (b"\x08\x01\x10\x02", "endianness 2"),
        (b"\x08\x01\x1a\x02\x10\x09", "reader of version 9"),
    ],
)
def test_a_header_that_cannot_be_served_is_refused(tmp_path, header, sentence):
    write_table(tmp_path / "x.index", [(b"", header)])
    with pytest.raises(BadInput, match=sentence):
        migrate.open_checkpoint(tmp_path / "x")


def shape(*sizes):
    dims = [b"\x08" + varint(size) for size in sizes]
    body = b"".join(b"\x12" + varint(len(dim)) + dim for dim in dims)
    return b"\x12" + varint(len(body)) + body


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (b"\x08\x63", "unknown data type number 99"),
        (b"\x08\x01\x18\x07", "of data file 7"),
        (b"\x08\x01" + shape(1 << 50, 1 << 50) + b"\x28\x08", "impossible shape"),
        (b"\x08\x01" + shape(1 << 40) + b"\x28\x08", "its entry says 8"),
        (b"\x08\x01" + shape(1 << 40) + b"\x28" + varint(1 << 42), "truncated"),
        (b"\x08\x07" + shape(1 << 40) + b"\x28\x08", "too few for"),
        (b"\x08\x15\x28\x08", "has no reader"),
    ],
)
def test_an_entry_that_cannot_be_true_costs_no_memory(tmp_path, entry, sentence):
    write_table(tmp_path / "x.index", [(b"", b"\x08\x01"), (b"v", entry)])
    (tmp_path / "x.data-00000-of-00001").write_bytes(bytes(8))
    with pytest.raises(BadInput, match=sentence), migrate.open_checkpoint(tmp_path / "x") as c:
        c.read("v", rows=None if b"\x12" not in entry else slice(0, 1 << 40))


def extent(start, length):
    body = b"\x08" + varint(start) + b"\x10" + varint(length)
    return b"\x0a" + varint(len(body)) + body


@pytest.mark.parametrize(
    ("cuts", "sentence"),
    [
        ([(0, 2), (2, 2)], None),
        ([(0, 2)], "hold 2 of 4 elements"),
        ([(0, 2), (1, 2)], "overlap"),
        ([(0, 2), (3, 2)], "leaves"),
        ([(0, 4), (0, 4)], "hold 8 of 4 elements"),
    ],
)
def test_slices_must_fill_their_tensor_exactly(tmp_path, cuts, sentence):
    slices = [extent(start, length) for start, length in cuts]
    whole = b"\x08\x04" + shape(4) + b"".join(b"\x3a" + varint(len(s)) + s for s in slices)
    entries = {b"": b"\x08\x01", b"v": whole}
    for start, length in cuts:
        key = slice_key(b"v", [(start, length)])
        entries[key] = b"\x08\x04" + shape(length) + b"\x28" + varint(length)
    write_table(tmp_path / "x.index", sorted(entries.items()))
    if sentence is None:
        assert len(migrate.open_checkpoint(tmp_path / "x")["v"].slices) == 2
        return
    with pytest.raises(BadInput, match=sentence):
        migrate.open_checkpoint(tmp_path / "x")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.index")
    with pytest.raises(BadInput, match="not a regular file"):
        migrate.open_checkpoint(tmp_path / "x")


@given(st.binary(max_size=120))
def test_any_bytes_decode_or_are_refused(data):
    with contextlib.suppress(BadInput):
        for _, value in wire.fields(memoryview(data), "message"):
            assert isinstance(value, (int, memoryview))


@given(st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 62)), max_size=3))
def test_keys_of_slices_sort_like_their_extents(extents):
    later = [(start + 1, length) for start, length in extents]
    assert slice_key(b"v", extents) < slice_key(b"v", later) or not extents
