"""Writes LevelDB tables for the tests: any block size, raw or snappy, any entries."""

import pyarrow

from migrate.encoding.crc32c import masked_value
from migrate.encoding.sstable import TABLE_MAGIC


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def block(entries):
    out, last, restarts = bytearray(), b"", [0]
    for index, (key, value) in enumerate(entries):
        shared = 0
        if index % 16 == 0 and index:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    for position in [*restarts, len(restarts)]:
        out += position.to_bytes(4, "little")
    return bytes(out)


def write_table(path, entries, per_block=7, snappy=False):
    """A table of `entries` (key, value), `per_block` of them a block."""
    out, index = bytearray(), []

    def add(content):
        kind = b"\x00"
        if snappy:
            content, kind = pyarrow.compress(content, "snappy", asbytes=True), b"\x01"
        handle = varint(len(out)) + varint(len(content))
        out.extend(content + kind + masked_value(content + kind).to_bytes(4, "little"))
        return handle

    for start in range(0, len(entries), per_block):
        part = entries[start : start + per_block]
        index.append((part[-1][0], add(block(part))))
    footer = add(block([])) + add(block(index))
    path.write_bytes(bytes(out) + footer.ljust(40, b"\x00") + TABLE_MAGIC)
