"""A checkpoint as a big-endian machine would have written it, made from a little-endian one."""

import math

import google_crc32c
import numpy as np

from migrate.checkpoint.index import read_index
from semisync.encoding.crc32c import masked
from semisync.encoding.sstable import read_table
from tests.migrate.table_writer import write_table


def swap_bytes(source, target):
    """Writes the one-file checkpoint `source` as `target`, its numbers in the other order."""
    data = bytearray((source.parent / f"{source.name}.data-00000-of-00001").read_bytes())
    table = dict(read_table(f"{source}.index"))
    for piece, dtype in _pieces(read_index(f"{source}.index")):
        span = slice(piece.offset, piece.offset + piece.size)
        if dtype.name == "string":
            crc = _swap_strings(data, span, math.prod(piece.shape))
        else:
            data[span] = np.frombuffer(data[span], f"u{dtype.swap}").byteswap().tobytes()
            crc = google_crc32c.value(bytes(data[span]))
        _replace_crc(table, piece.crc32c, masked(crc))
    table[b""] = b"\x08\x01\x10\x01\x1a\x02\x08\x01"
    write_table(target.parent / f"{target.name}.index", sorted(table.items()))
    (target.parent / f"{target.name}.data-00000-of-00001").write_bytes(data)


def _pieces(index):
    return [(piece, one.dtype) for one in index.tensors.values() for piece in one.pieces]


def _swap_strings(data, span, count):
    """The lengths are varints and stay; their crc is that of big-endian numbers."""
    position, lengths = span.start, []
    while len(lengths) < count:
        end = next(at for at in range(position, span.stop) if data[at] < 0x80) + 1
        lengths.append(sum((data[at] & 0x7F) << 7 * (at - position) for at in range(position, end)))
        position = end
    crc = google_crc32c.value(np.array(lengths, ">u4").tobytes())
    data[position : position + 4] = masked(crc).to_bytes(4, "big")
    return google_crc32c.extend(crc, bytes(data[position : span.stop]))


def _replace_crc(table, old, new):
    """Crcs are the only fixed32 fields of an entry, number 6."""
    for key, value in table.items():
        if key:
            field = b"\x35" + old.to_bytes(4, "little")
            table[key] = value.replace(field, b"\x35" + new.to_bytes(4, "little"))
