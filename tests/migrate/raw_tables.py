"""Writes hash tables as TFRA's FileSystemSaver, HugeCTR, SOK and Monolith do."""

import struct

import numpy as np
import pyarrow

from semisync.encoding.crc32c import masked_value
from tests.migrate.table_writer import varint


def write_tfra(folder, name, parts, slots=()):
    """parts: (ids, rows) of each partition; slots: (slot's name, parts of its own)."""
    folder.mkdir(exist_ok=True)
    for table, of_table in [(name, parts), *((f"{name}_{one}", own) for one, own in slots)]:
        for number, (ids, rows) in enumerate(of_table, 1):
            stem = folder / f"{table}_mht_{number}of{len(of_table)}_rank0_size1"
            stem.with_name(stem.name + "-keys").write_bytes(np.asarray(ids, "<i8").tobytes())
            stem.with_name(stem.name + "-values").write_bytes(np.asarray(rows, "<f4").tobytes())
    return folder


def write_hugectr(folder, ids, rows):
    folder.mkdir(exist_ok=True)
    (folder / "key").write_bytes(np.asarray(ids, "<i8").tobytes())
    (folder / "emb_vector").write_bytes(np.asarray(rows, "<f4").tobytes())
    return folder


def write_sok(folder, name, ids, rows):
    """A table of two columns; its slot Adam_m has ten more than the rows."""
    folder.mkdir(exist_ok=True)
    named, rows = name.encode().rjust(256), np.asarray(rows, "<f4")

    def head(kind, slot, dtype):
        return named + struct.pack(">I", kind) + slot.rjust(32) + struct.pack(">I", dtype)

    meta = struct.pack(">4IQ", 1, 1, 5, 2, len(ids)) + named + b"Adam".rjust(32)
    (folder / "meta_info").write_bytes(meta)
    (folder / f"{name}-key").write_bytes(head(0, b"", 1) + np.asarray(ids, "<i8").tobytes())
    (folder / f"{name}-weight").write_bytes(head(1, b"", 5) + rows.tobytes())
    (folder / f"{name}-Adam-m").write_bytes(head(2, b"m", 5) + (rows + 10).tobytes())
    return folder


def write_several(base, tables):
    """A Monolith dump of several tables in one file. tables: name -> (id, row, seconds) each."""
    entries = b"".join(framed(_entry(*one)) for of_table in tables.values() for one in of_table)
    block = pyarrow.compress(entries, "snappy", asbytes=True)
    metas = [
        b"\x0a" + varint(len(name)) + name.encode() + b"\x10" + varint(len(of_table))
        for name, of_table in tables.items()
    ]
    data = base.with_name(f"{base.name}-00000-of-00001")
    data.write_bytes(struct.pack(">I", len(block)) + block)
    meta = base.with_name(f"{base.name}.meta-00000-of-00001")
    meta.write_bytes(b"".join(map(framed, metas)))
    return base


def write_monolith(base, parts):
    """parts: (id, row, seconds) of each entry of each file; BASE-00000-of-0000N."""
    for number, entries in enumerate(parts):
        path = base.with_name(f"{base.name}-{number:05d}-of-{len(parts):05d}")
        path.write_bytes(b"".join(framed(_entry(*entry)) for entry in entries))
    return base


def _entry(key, row, seconds):
    numbers = b"".join(struct.pack("<Bf", 21, one) for one in row)
    return struct.pack("<Bq", 9, key) + numbers + b"\x20" + varint(seconds)


def framed(data):
    """Bytes as a record of a TFRecord file."""
    head = struct.pack("<Q", len(data))
    crcs = [struct.pack("<I", masked_value(one)) for one in (head, data)]
    return head + crcs[0] + data + crcs[1]
