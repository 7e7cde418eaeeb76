"""Writes LevelDB tables for the tests: any block size, raw or snappy, any entries."""

import pyarrow

from semisync.encoding.crc32c import masked_value
from semisync.encoding.sstable import TABLE_MAGIC


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


def sharing(prefix, ends, value):
    """The block of the keys `prefix` + each of `ends`, the same `value` at each.

    It is as long as the ends; `block` would need the keys.
    """
    out, shared, rest = bytearray(), 0, prefix
    for end in ends:
        out += varint(shared) + varint(len(rest + end)) + varint(len(value)) + rest + end + value
        shared, rest = len(prefix), b""
    return bytes(out) + bytes(4) + (1).to_bytes(4, "little")


def write_table(path, entries, per_block=7, snappy=False, more=()):
    """A table of `entries` (key, value), `per_block` of them a block, and of blocks after these.

    Args:
        more: (last key, contents) of each block.
    """
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
    index += [(last, add(contents)) for last, contents in more]
    footer = add(block([])) + add(block(index))
    path.write_bytes(bytes(out) + footer.ljust(40, b"\x00") + TABLE_MAGIC)
