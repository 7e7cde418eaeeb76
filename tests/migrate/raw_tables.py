"""Writes hash tables as TFRA's FileSystemSaver and Monolith do."""

import struct

import numpy as np

from migrate.sources.crc32c import masked_value


def write_tfra(folder, name, parts, slots=()):
    """parts: (ids, rows) of each partition; slots: (slot's name, parts of its own)."""
    folder.mkdir(exist_ok=True)
    for table, of_table in [(name, parts), *((f"{name}_{one}", own) for one, own in slots)]:
        for number, (ids, rows) in enumerate(of_table, 1):
            stem = folder / f"{table}_mht_{number}of{len(of_table)}_rank0_size1"
            stem.with_name(stem.name + "-keys").write_bytes(np.asarray(ids, "<i8").tobytes())
            stem.with_name(stem.name + "-values").write_bytes(np.asarray(rows, "<f4").tobytes())
    return folder


def write_monolith(base, parts):
    """parts: (id, row, seconds) of each entry of each file; BASE-00000-of-0000N."""
    for number, entries in enumerate(parts):
        path = base.with_name(f"{base.name}-{number:05d}-of-{len(parts):05d}")
        path.write_bytes(b"".join(_record(_entry(*entry)) for entry in entries))
    return base


def _entry(key, row, seconds):
    numbers = b"".join(struct.pack("<Bf", 21, one) for one in row)
    return struct.pack("<Bq", 9, key) + numbers + b"\x20" + _varint(seconds)


def _varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _record(data):
    head = struct.pack("<Q", len(data))
    crcs = [struct.pack("<I", masked_value(one)) for one in (head, data)]
    return head + crcs[0] + data + crcs[1]
