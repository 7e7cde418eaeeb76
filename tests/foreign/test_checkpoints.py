"""A small checkpoint of a stranger's costs little, whatever it says of itself."""

import itertools
import os

import pytest

import migrate
from migrate.checkpoint import objects
from migrate.checkpoint.pieces import Piece, check_tiling
from semisync.common.errors import BadInput
from semisync.encoding.crc32c import masked_value
from semisync.encoding.sstable_writing import TableWriter
from semisync.encoding.wire import encode_varint, varint_field
from semisync.encoding.wire import message_field as message
from tests.migrate.table_writer import sharing, write_table
from tests.support import limited

HEADER = (b"", varint_field(1, 1))  # one data file
EMPTY = varint_field(1, 1) + message(2, message(2, b""))  # float32 [0]
DATA = "m.data-00000-of-00001"


def bundle(folder, entries, data=b""):
    """A checkpoint with these entries of its index; returns its prefix."""
    with open(folder / "m.index", "wb") as file:
        table = TableWriter(file)
        for key, value in [HEADER, *entries]:
            table.add(key, value)
        table.finish()
    (folder / DATA).write_bytes(data)
    return folder / "m"


def refused(prefix, match):
    with pytest.raises(BadInput, match=match):
        migrate.open_checkpoint(prefix)


@pytest.mark.long
def test_names_that_share_a_long_prefix_are_refused_by_their_length(tmp_path):
    names = sharing(b"a" * 400_000, [b"%06d" % number for number in range(60_000)], EMPTY)
    write_table(tmp_path / "m.index", [HEADER], more=[(b"b", names)])
    assert (tmp_path / "m.index").stat().st_size < 2 << 20
    (tmp_path / DATA).write_bytes(b"")
    for command in (["inspect", "m"], ["convert", "m", "out"]):
        sentence = limited.refusal(*command, cwd=tmp_path)
        assert "m.index: a name has 400006 bytes, expected at most 8192" in sentence


def test_names_of_the_longest_length_are_refused_by_what_they_come_to(tmp_path):
    names = sharing(b"a" * 8000, [b"%06d" % number for number in range(20_000)], b"")
    write_table(tmp_path / "m.index", [HEADER], more=[(b"b", names)])
    refused(
        tmp_path / "m", "m.index spells out names of more than 128 MiB; TensorFlow did not write it"
    )


def test_a_name_with_a_zero_byte_is_refused(tmp_path):
    refused(
        bundle(tmp_path, [(b"con\0nul", EMPTY)]), "name b'con.*nul' of a tensor has a zero byte"
    )


def test_a_block_that_does_not_end_is_refused(tmp_path):
    entries = [HEADER, *((b"%06d" % number, EMPTY) for number in range(30_000))]
    write_table(tmp_path / "m.index", entries, len(entries))
    refused(tmp_path / "m", "m.index: a block goes on after 262144 bytes, where TensorFlow ends it")


def test_an_index_of_an_absurd_size_is_refused_before_it_is_read(tmp_path):
    index = tmp_path / "m.index"
    write_table(index, [HEADER])
    footer = index.read_bytes()
    with open(index, "wb") as file:
        file.write(footer[:-48])
        file.seek((1 << 40) - 48)
        file.write(footer[-48:])
    refused(tmp_path / "m", "m.index has 1099511627776 bytes; no checkpoint's index has over")


@pytest.mark.long
def test_a_tensor_of_countless_slices_is_refused(tmp_path):
    entry = varint_field(1, 1) + message(2, b"") + message(7, b"") * 600_000
    refused(bundle(tmp_path, [(b"w", entry)]), "lists more than 524,288 tensors and slices")


def test_slices_cut_in_both_directions_are_compared_as_long_as_that_is_quick(monkeypatch):
    monkeypatch.setattr("migrate.checkpoint.pieces._MAX_COMPARED", 100_000)

    def grid(size):
        cells = itertools.product(range(size), range(size))
        return [Piece(cell, (1, 1), 0, 0, 4, 0) for cell in cells]

    check_tiling(grid(50), (50, 50), "w")
    with pytest.raises(BadInput, match="its 4900 slices are cut in several directions"):
        check_tiling(grid(70), (70, 70), "w")


def test_thousands_of_columns_are_no_attack():
    columns = [Piece((0, column), (9, 1), 0, 0, 36, 0) for column in range(20_000)]
    check_tiling(columns, (9, 20_000), "w")
    moved = columns[7]._replace(start=(0, 8))
    with pytest.raises(BadInput, match="overlap at"):
        check_tiling(sorted([*columns[:7], moved, *columns[8:]]), (9, 20_000), "w")


def test_an_object_graph_of_any_size_is_not_decoded(tmp_path):
    size = objects.MAX_BYTES + 1
    entry = varint_field(1, 7) + message(2, b"") + varint_field(5, size)
    prefix = bundle(tmp_path, [(objects.KEY.encode(), entry)], bytes(size))
    expected = pytest.raises(BadInput, match=f"has {size} bytes, expected at most {size - 1}")
    with migrate.open_checkpoint(prefix) as checkpoint, expected:
        checkpoint.objects()


@pytest.mark.long
def test_a_row_of_eight_gigabytes_is_refused_before_it_is_read(tmp_path):
    shape = b"".join(message(2, varint_field(1, size)) for size in (1, 1 << 31))
    entry = varint_field(1, 1) + message(2, shape) + varint_field(5, 8 << 30)
    bundle(tmp_path, [(b"w", entry)])
    os.truncate(tmp_path / DATA, 8 << 30)
    for command in (["inspect", "m"], ["convert", "m", "out", "--no-tables"]):
        sentence = limited.refusal(*command, cwd=tmp_path)
        assert "'w', [1, 2147483648], has rows of 8,589,934,592 bytes; read by rows" in sentence


def test_a_string_of_gigabytes_is_not_read_at_once(tmp_path):
    size = 5 << 30
    length = encode_varint(size)
    head = length + masked_value(size.to_bytes(8, "little")).to_bytes(4, "little")
    entry = varint_field(1, 7) + message(2, b"") + varint_field(5, len(head) + size)
    prefix = bundle(tmp_path, [(b"w", entry)], head)
    os.truncate(tmp_path / DATA, len(head) + size)
    expected = pytest.raises(BadInput, match="1 strings have 5,368,709,120 bytes")
    with migrate.open_checkpoint(prefix) as checkpoint, expected:
        checkpoint.read("w")
