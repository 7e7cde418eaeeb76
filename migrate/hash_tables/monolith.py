"""Monolith's hash tables: `BASE-00000-of-00004`, TFRecord files of entries.

A slot has the segments of the row that its optimizer trains, one after the other, and may
therefore be narrower than the row. A version is a time in seconds here.

A dump of several tables together has its entries compressed by snappy, table after table, and
beside each file BASE.meta-00000-of-00004, plain TFRecords that give each table's number of entries.
Each table is then read from the file's beginning: no index leads to the n-th compressed entry.

Source: monolith/native_training/runtime/ops/multi_hash_table_save_restore_ops.cc
"""

from __future__ import annotations

import dataclasses
import glob
import itertools
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.files import Types
from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.hash_tables.monolith_entries import Entry, decode_entry, decode_metadata
from semisync.common.errors import BadInput
from semisync.encoding.tfrecord import read_records
from semisync.storage.files import size_of

_SHARD = re.compile(r"^(.+)-(\d{5})-of-(\d{5})$")
_META = ".meta"


@dataclasses.dataclass(frozen=True)
class RecordPart:
    """`stored` entries of one file after its first `skip`.

    Attributes:
        slot: None for the rows; otherwise the slot whose values take their place.
        compressed: whether snappy compressed the entries.
    """

    path: str
    stored: int
    width: int
    slot: Optional[str] = None
    skip: int = 0
    compressed: bool = False

    @property
    def place(self) -> str:
        """See Part."""
        return self.path

    @property
    def files(self) -> Tuple[str, ...]:
        """See Part."""
        return (self.path,)

    def has(self, column: str) -> bool:
        """See Part; a version is a time in seconds."""
        return column == "versions"

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part."""
        entries = itertools.islice(read_records(self.path, self.compressed), self.skip, None)
        for first in range(0, self.stored, rows_per_chunk):
            count = min(rows_per_chunk, self.stored - first)
            keys = numpy.empty(count, numpy.int64)
            values = numpy.empty((count, self.width), numpy.float32)
            times = numpy.zeros(count, numpy.int64)
            for at in range(count):
                # An empty record is refused: the file has lost entries since they were counted.
                entry = decode_entry(next(entries, memoryview(b"")), self.path)
                row = entry.row if self.slot is None else entry.slots.get(self.slot)
                if row is None or row.size != self.width:
                    raise BadInput(
                        f"{self.path}: id {entry.key} has {0 if row is None else row.size} numbers "
                        f"in {self.slot or 'its row'}, others {self.width}"
                    )
                keys[at], values[at], times[at] = entry.key, row, entry.time
            yield Rows(keys, values, None, times)


def read_dumps(path: str, types: Types) -> Optional[Dict[str, HashTable]]:
    """The tables whose files are PATH-00000-of-0000N, or lie in the directory PATH; None if there
    are none, or PATH is a checkpoint. `types` is not needed: the records are typed.
    """
    if size_of(path + ".index") is not None:
        return None
    inside = os.path.isdir(path)
    # The path as it is: brackets in a folder's name are no pattern.
    base = os.path.join(glob.escape(path), "*") if inside else glob.escape(path)
    shards: Dict[str, List[Tuple[int, int, str]]] = {}
    for file in sorted({*glob.glob(base + "-*-of-*"), *glob.glob(base + _META + "-*-of-*")}):
        match = _SHARD.match(file)
        # `*` matches more than digits: of a path, only its own files count.
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
    """The files of a dump in their order; raises BadInput if one is missing."""
    count = files[0][1]
    if [(index, of) for index, of, _ in files] != [(k, count) for k in range(len(files))]:
        raise BadInput(f"{base}: its files are of different dumps or not all there")
    if len(files) != count:
        raise BadInput(f"{base} has {len(files)} of {count} files; the dump is incomplete")
    return [file for _, _, file in files]


class _Section(NamedTuple):
    """Entries of one table in one file: `stored` after the first `skip`; `sample` is the first."""

    path: str
    compressed: bool
    skip: int
    stored: int
    sample: Optional[Entry]


def _whole(name: str, files: List[str]) -> Dict[str, List[_Section]]:
    """A dump of one table; reads all records once to count and check them."""
    sections = []
    for file in files:
        count, sample = 0, None
        for record in read_records(file):
            # One is decoded, for the sizes and the slots; reading checks the crc32c of every
            # record.
            sample = decode_entry(record, file) if sample is None else sample
            count += 1
        sections.append(_Section(file, False, 0, count, sample))
    return {name: sections}


def _sections_of(files: List[str], metas: List[str]) -> Dict[str, List[_Section]]:
    """The tables of a dump of several; reads all records once to count and check them."""
    if len(files) != len(metas):
        raise BadInput(f"{files[0]}: {len(files)} files of entries, but {len(metas)} of their meta")
    sections: Dict[str, List[_Section]] = {}
    for file, meta in zip(files, metas):
        entries, skip = read_records(file, compressed=True), 0
        for record in read_records(meta):
            name, count = decode_metadata(record, meta)
            sample = None
            for at in range(count):
                entry = next(entries, None)
                if entry is None:
                    raise BadInput(f"{file} has {skip + at} entries, {meta} tells of more")
                sample = decode_entry(entry, file) if at == 0 else sample
            sections.setdefault(name, []).append(_Section(file, True, skip, count, sample))
            skip += count
        if next(entries, None) is not None:
            raise BadInput(f"{file} has more than the {skip} entries that {meta} tells of")
    return sections


def _table(name: str, sections: List[_Section]) -> HashTable:
    """The table, with a slot for each state of its first entry."""
    first = next((section.sample for section in sections if section.sample is not None), None)
    width = first.row.size if first is not None else 0

    def parts(width: int, slot: Optional[str]) -> Tuple[RecordPart, ...]:
        return tuple(
            RecordPart(
                path=section.path,
                stored=section.stored,
                width=width,
                slot=slot,
                skip=section.skip,
                compressed=section.compressed,
            )
            for section in sections
        )

    table = HashTable(
        name=name,
        kind="Monolith",
        key_dtype="int64",
        dtype="float32",
        value_shape=(width,),
        parts=parts(width, None),
    )
    for slot, values in first.slots.items() if first is not None else ():
        shape = (values.size,)
        table.slots[slot] = dataclasses.replace(
            table, value_shape=shape, parts=parts(values.size, slot), slots={}
        )
    return table
