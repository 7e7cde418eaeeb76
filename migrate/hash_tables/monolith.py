"""Monolith's hash tables: `BASE-00000-of-00004`, TFRecord files of entries.

    EntryDump      {1 id sfixed64, 2 num: repeated float, 3 opt: OptimizerDump,
                    4 last_update_ts_sec}
    OptimizerDump  {1 dump: repeated SingleOptimizerDump}, one a segment of the row
    SingleOptimizerDump  one of several messages; repeated floats are slots of the segment

A slot has the segments that its optimizer trains, one after the other, and may so be narrower than
the row. A version is here a time in seconds.

A dump of several tables together has its entries compressed by snappy, table after table, and
beside each file BASE.meta-00000-of-00004, plain TFRecords of

    MultiHashTableMetadata  {1 table_name, 2 num_entries}

Each table is then read from the file's beginning, for snappy's blocks cannot be entered by number.
Source: monolith/native_training/runtime/hash_table/embedding_hash_table.proto,
optimizer/optimizer.proto and ops/multi_hash_table_save_restore_ops.cc
"""

from __future__ import annotations

import dataclasses
import glob
import itertools
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.encoding.records import records
from migrate.encoding.wire import Value, fields, message, number, text
from migrate.hash_tables.model import HashTable, Rows
from semisync.common.errors import BadInput

_SHARD = re.compile(r"^(.+)-(\d{5})-of-(\d{5})$")
_META = ".meta"

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
    """`stored` entries of one file after its first `skip`; `slot` is None for the rows, else the
    state to take instead; compressed: by snappy."""

    path: str
    stored: int
    width: int
    slot: Optional[str] = None
    skip: int = 0
    compressed: bool = False

    @property
    def place(self) -> str:
        """See `hashed.Part`."""
        return self.path

    @property
    def files(self) -> Tuple[str, ...]:
        """See `hashed.Part`."""
        return (self.path,)

    def has(self, column: str) -> bool:
        """See `hashed.Part`; a version is a time in seconds."""
        return column == "versions"

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See `hashed.Part`."""
        entries = itertools.islice(records(self.path, self.compressed), self.skip, None)
        for first in range(0, self.stored, rows_per_chunk):
            count = min(rows_per_chunk, self.stored - first)
            keys = numpy.empty(count, numpy.int64)
            values = numpy.empty((count, self.width), numpy.float32)
            times = numpy.zeros(count, numpy.int64)
            for at in range(count):
                entry = _entry(next(entries, memoryview(b"")), self.path)
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
    base = os.path.join(glob.escape(path), "*") if inside else glob.escape(path)
    shards: Dict[str, List[Tuple[int, int, str]]] = {}
    for file in sorted({*glob.glob(base + "-*-of-*"), *glob.glob(base + _META + "-*-of-*")}):
        match = _SHARD.match(file)
        if match and (inside or match[1] in (path, path + _META)):
            shards.setdefault(match[1], []).append((int(match[2]), int(match[3]), file))
    complete = {base: _complete(base, files) for base, files in shards.items()}
    tables: Dict[str, HashTable] = {}
    for base, files in complete.items():
        if base.endswith(_META):
            if base[: -len(_META)] not in complete:
                raise BadInput(f"{base} tells of entries, but {base[: -len(_META)]} is not there")
            continue
        metas = complete.get(base + _META)
        sections = _sections_of(files, metas) if metas else _whole(os.path.basename(base), files)
        for name in sections:
            if name in tables:
                raise BadInput(f"{path} has two dumps of a table {name!r}; read each by its name")
        tables.update({name: _table(name, parts) for name, parts in sections.items()})
    return tables or None


def _complete(base: str, files: List[Tuple[int, int, str]]) -> List[str]:
    """The files of a dump in their order; BadInput where one is missing."""
    count = files[0][1]
    if [(index, of) for index, of, _ in files] != [(k, count) for k in range(len(files))]:
        raise BadInput(f"{base}: its files are of different dumps or not all there")
    if len(files) != count:
        raise BadInput(f"{base} has {len(files)} of {count} files; the dump is incomplete")
    return [file for _, _, file in files]


class _Section(NamedTuple):
    """Entries of one table in one file: `stored` after the first `skip`; sample: one of them."""

    path: str
    compressed: bool
    skip: int
    stored: int
    sample: Optional[_Entry]


def _whole(name: str, files: List[str]) -> Dict[str, List[_Section]]:
    """A dump of one table; reads all records once to count and check them."""
    sections = []
    for file in files:
        count, sample = 0, None
        for record in records(file):
            sample = _entry(record, file) if sample is None else sample
            count += 1
        sections.append(_Section(file, False, 0, count, sample))
    return {name: sections}


def _sections_of(files: List[str], metas: List[str]) -> Dict[str, List[_Section]]:
    """The tables of a dump of several; reads all records once to count and check them."""
    if len(files) != len(metas):
        raise BadInput(f"{files[0]}: {len(files)} files of entries, but {len(metas)} of their meta")
    found: Dict[str, List[_Section]] = {}
    for file, meta in zip(files, metas):
        entries, skip = records(file, compressed=True), 0
        for record in records(meta):
            name, count = _metadata(record, meta)
            sample = None
            for at in range(count):
                entry = next(entries, None)
                if entry is None:
                    raise BadInput(f"{file} has {skip + at} entries, {meta} tells of more")
                sample = _entry(entry, file) if at == 0 else sample
            found.setdefault(name, []).append(_Section(file, True, skip, count, sample))
            skip += count
        if next(entries, None) is not None:
            raise BadInput(f"{file} has more than the {skip} entries that {meta} tells of")
    return found


def _metadata(record: memoryview, path: str) -> Tuple[str, int]:
    """Name of a table, and how many of the next entries are its own."""
    name, count = "", 0
    for field, value in fields(record, path):
        if field == 1:
            name = text(value, path)
        elif field == 2:
            count = number(value, path)
    return name, count


def _table(name: str, sections: List[_Section]) -> HashTable:
    """The table, with a slot for each state of its first entry."""
    first = next((one.sample for one in sections if one.sample is not None), None)
    width = first.row.size if first is not None else 0

    def parts(width: int, slot: Optional[str]) -> Tuple[RecordPart, ...]:
        return tuple(
            RecordPart(one.path, one.stored, width, slot, one.skip, one.compressed)
            for one in sections
        )

    table = HashTable(name, "Monolith", "int64", "float32", (width,), parts(width, None))
    for slot, values in first.slots.items() if first is not None else ():
        shape = (values.size,)
        table.slots[slot] = dataclasses.replace(
            table, value_shape=shape, parts=parts(values.size, slot), slots={}
        )
    return table


def _entry(record: memoryview, path: str) -> _Entry:
    key: Optional[int] = None
    row: List[Value] = []
    slots: Dict[str, numpy.ndarray] = {}
    time = 0
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
