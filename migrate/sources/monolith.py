"""Monolith's hash tables: `BASE-00000-of-00004`, TFRecord files of entries.

    record         length (8 bytes), its masked crc32c (4), data, its masked crc32c (4)
    EntryDump      {1 id sfixed64, 2 num: repeated float, 3 opt: OptimizerDump,
                    4 last_update_ts_sec}
    OptimizerDump  {1 dump: repeated SingleOptimizerDump}, one a segment of the row
    SingleOptimizerDump  one of several messages; repeated floats are slots of the segment

A slot has the segments that its optimizer trains, one after the other, and may so be narrower than
the row. The dumps of several tables together (snappy, with BASE.meta-*) are refused. A version is
here a time in seconds.
Source: monolith/native_training/runtime/hash_table/embedding_hash_table.proto and
optimizer/optimizer.proto
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
from typing import Dict, Iterator, List, Optional, Tuple

import numpy

from migrate.sources import crc32c
from migrate.sources.files import StoredFile
from migrate.sources.hashed import HashTable, Rows
from migrate.sources.wire import Value, fields, message, number
from semisync.errors import BadInput

_SHARD = re.compile(r"^(.+)-(\d{5})-of-(\d{5})$")
_MAX_RECORD = 64 << 20  # bytes of one entry

# Slots of each optimizer: number of the message, its name, its repeated floats by field number.
_OPTIMIZERS: Dict[int, Tuple[str, Dict[int, str]]] = {
    1: ("adagrad", {1: "norm"}),
    2: ("sgd", {}),
    3: ("ftrl", {1: "zero", 2: "norm"}),
    4: ("dynamic_wd_adagrad", {1: "norm"}),
    6: ("adadelta", {1: "accum", 2: "accum_update"}),
    7: ("adam", {1: "m", 2: "v", 3: "beta1_power", 4: "beta2_power"}),
    8: ("amsgrad", {1: "m", 2: "v", 3: "vhat", 4: "beta1_power", 5: "beta2_power"}),
    9: ("momentum", {1: "n"}),
    11: ("rmsprop", {1: "n"}),
    12: ("rmspropv2", {1: "n"}),
    13: ("group_ftrl", {1: "zero", 2: "norm"}),
    14: ("batch_softmax", {}),
    15: ("group_adagrad", {1: "grad_square_sum"}),
}


@dataclasses.dataclass(frozen=True)
class RecordPart:
    """The entries of one file; `slot` is None for the rows, else the state to take instead."""

    path: str
    stored: int
    width: int
    slot: Optional[str] = None

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See `hashed.Part`."""
        records = _records(self.path)
        for first in range(0, self.stored, rows_per_chunk):
            count = min(rows_per_chunk, self.stored - first)
            keys = numpy.empty(count, numpy.int64)
            values = numpy.empty((count, self.width), numpy.float32)
            times = numpy.zeros(count, numpy.int64)
            for at in range(count):
                entry = _entry(next(records, memoryview(b"")), self.path)
                row = entry.row if self.slot is None else entry.slots.get(self.slot)
                if row is None or row.size != self.width:
                    raise BadInput(
                        f"{self.path}: id {entry.key} has {0 if row is None else row.size} numbers "
                        f"in {self.slot or 'its row'}, others {self.width}"
                    )
                keys[at], values[at], times[at] = entry.key, row, entry.time
            yield Rows(keys, values, None, times)


@dataclasses.dataclass(frozen=True)
class _Entry:
    key: int
    row: numpy.ndarray
    slots: Dict[str, numpy.ndarray]
    time: int


def monolith_tables(path: str) -> Optional[Dict[str, HashTable]]:
    """The tables whose files are PATH-00000-of-0000N, or lie in the directory PATH.

    None where there are none.
    """
    inside = os.path.isdir(path)
    pattern = os.path.join(glob.escape(path), "*-of-*") if inside else glob.escape(path) + "-*-of-*"
    shards: Dict[str, List[Tuple[int, int, str]]] = {}
    for file in sorted(glob.glob(pattern)):
        match = _SHARD.match(file)
        if match and (inside or match[1] == path):
            shards.setdefault(match[1], []).append((int(match[2]), int(match[3]), file))
    tables = {}
    for base, files in shards.items():
        if base.endswith(".meta"):
            raise BadInput(
                f"{base} belongs to a dump of several tables together, which is not read; dump "
                "each table by itself"
            )
        count = files[0][1]
        if [(index, of) for index, of, _ in files] != [(k, count) for k in range(len(files))]:
            raise BadInput(f"{base}: its files are of different dumps or not all there")
        if len(files) != count:
            raise BadInput(f"{base} has {len(files)} of {count} files; the dump is incomplete")
        name = os.path.basename(base)
        tables[name] = _table(name, [file for _, _, file in files])
    return tables or None


def _table(name: str, files: List[str]) -> HashTable:
    """A table; reads all records once to count and check them."""
    counts, first = [], None
    for file in files:
        count = 0
        for record in _records(file):
            if first is None:
                first = _entry(record, file)
            count += 1
        counts.append(count)
    width = first.row.size if first is not None else 0

    def parts(width: int, slot: Optional[str]) -> Tuple[RecordPart, ...]:
        return tuple(RecordPart(*one, width, slot) for one in zip(files, counts))

    table = HashTable(name, "Monolith", "int64", "float32", (width,), parts(width, None))
    for slot, values in first.slots.items() if first is not None else ():
        shape = (values.size,)
        table.slots[slot] = dataclasses.replace(
            table, value_shape=shape, parts=parts(values.size, slot), slots={}
        )
    return table


def _records(path: str) -> Iterator[memoryview]:
    """The records of a TFRecord file, checked."""
    with StoredFile(path) as file:
        position = 0
        while position < file.size:
            where = f"{path}: record at byte {position}"
            head = file.read(position, 12, where)
            if crc32c.masked_value(head[:8]) != int.from_bytes(head[8:], "little"):
                raise BadInput(f"{where}: its length is corrupt, or this is no TFRecord file")
            length = int.from_bytes(head[:8], "little")
            if length > _MAX_RECORD:
                raise BadInput(f"{where} has {length} bytes, more than an entry can")
            data = file.read(position + 12, length + 4, where)
            if crc32c.masked_value(data[:-4]) != int.from_bytes(data[-4:], "little"):
                raise BadInput(f"{where}: its crc32c is wrong; it is corrupt")
            yield memoryview(data)[:-4]
            position += 16 + length


def _entry(record: memoryview, path: str) -> _Entry:
    key, row, slots, time = None, [], {}, 0  # type: Optional[int], List[Value], Dict, int
    for field, value in fields(record, path):
        if field == 1:
            key = number(value, path)
        elif field == 2:
            row.append(value)
        elif field == 3:
            slots = _slots(message(value, path), path)
        elif field == 4:
            time = number(value, path)
    if key is None:
        raise BadInput(f"{path}: an entry has no id; this is no dump of Monolith")
    return _Entry(key, _floats(row, path), slots, time)


def _slots(dump: memoryview, path: str) -> Dict[str, numpy.ndarray]:
    """The state by "<optimizer>_<slot>", segments one after the other."""
    found: Dict[str, List[numpy.ndarray]] = {}
    for field, segment in fields(dump, path):
        for kind, state in fields(message(segment, path), path) if field == 1 else ():
            if kind not in _OPTIMIZERS:
                raise BadInput(f"{path}: an entry has the unknown optimizer number {kind}")
            optimizer, names = _OPTIMIZERS[kind]
            columns: Dict[str, List[Value]] = {}
            for inner, value in fields(message(state, path), path):
                if inner in names:
                    columns.setdefault(f"{optimizer}_{names[inner]}", []).append(value)
            for name, values in columns.items():
                found.setdefault(name, []).append(_floats(values, path))
    return {name: numpy.concatenate(parts) for name, parts in found.items()}


def _floats(values: List[Value], path: str) -> numpy.ndarray:
    """Floats that stand one a field (as their four bytes) or packed."""
    raw = bytearray()
    for value in values:
        if isinstance(value, int):
            if value >= 1 << 32:
                raise BadInput(f"{path}: the numbers of an entry are not floats")
            raw += value.to_bytes(4, "little")
        else:
            raw += value
    if len(raw) % 4:
        raise BadInput(f"{path}: the numbers of an entry are cut short")
    return numpy.frombuffer(bytes(raw), "<f4")
