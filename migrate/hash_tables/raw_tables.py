"""Hash tables in raw files: an array of keys in one, an array of rows in another.

    TFRA FileSystemSaver  DIR/X_mht_1of2_rank0_size1-keys and -values; no header, dtype or checksum;
                          slots X_Adam_m_mht_...
    HugeCTR               DIR/key (int64), DIR/emb_vector (float32); localized also slot_id
    SOK (HugeCTR's kit)   DIR/meta_info, DIR/X-key, X-weight, X-<Optimizer>-<slot>; see `_sok`

What the files do not say is taken to be int64 keys and float32 rows unless told otherwise, and the
sizes must fit. TFRA's files have been seen here; of HugeCTR and SOK only the sources have been read
(docs/hugectr_user_guide, sparse_operation_kit/dump_load.py).
"""

from __future__ import annotations

import dataclasses
import os
import re
import string
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.encoding.dtypes import BY_NAME
from migrate.hash_tables.model import HashTable, Rows
from migrate.hash_tables.slots import with_slots
from migrate.storage.files import StoredFile
from semisync.common.errors import BadInput

_TFRA = re.compile(r"^(.+)_mht_(\d+)of(\d+)_rank(\d+)_size(\d+)-keys$")
_SOK_HEAD = 296  # bytes before the array: table name 256, file type 4, slot name 32, dtype 4
_SOK_DTYPES = ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class FilePart:
    """Rows in a pair of files: `stored` keys, and as many rows of `dim` numbers."""

    keys: str
    values: str
    key_dtype: numpy.dtype
    dtype: numpy.dtype
    stored: int
    dim: int
    head: int = 0

    @property
    def place(self) -> str:
        """See `hashed.Part`."""
        return self.keys

    @property
    def files(self) -> Tuple[str, ...]:
        """See `hashed.Part`."""
        return (self.keys, self.values)

    def has(self, column: str) -> bool:
        """See `hashed.Part`; the formats have neither."""
        return False

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See `hashed.Part`. The files have no checksums: only their sizes are checked."""
        with StoredFile(self.keys) as keys, StoredFile(self.values) as values:
            for file, size in ((keys, self.key_dtype.itemsize), (values, self._row_size)):
                if file.size != self.head + self.stored * size:
                    raise BadInput(f"{file.path} changed its size while it was read")
            for first in range(0, self.stored, rows_per_chunk):
                count = min(rows_per_chunk, self.stored - first)
                ids = numpy.empty(count, self.key_dtype)
                rows = numpy.empty((count, self.dim), self.dtype)
                for file, out in ((keys, ids), (values, rows)):
                    start = self.head + first * (out.nbytes // count)
                    file.read_into(start, out.reshape(-1).view(numpy.uint8), file.path)
                yield Rows(ids, rows)

    @property
    def _row_size(self) -> int:
        return self.dim * self.dtype.itemsize


def raw_tables(
    directory: str, key_dtype: str = "int64", dtype: str = "float32"
) -> Optional[Dict[str, HashTable]]:
    """The tables of `directory` by name; None where it has no files of these formats."""
    names = sorted(os.listdir(directory))
    if "meta_info" in names:
        return _sok(directory)
    if "key" in names and "emb_vector" in names:
        paths = [(os.path.join(directory, "key"), os.path.join(directory, "emb_vector"))]
        name = os.path.basename(os.path.abspath(directory))
        return {name: _table(name, "HugeCTR", paths, "int64", "float32")}
    found: Dict[str, List[Tuple[_Place, str]]] = {}
    for name in names:
        match = _TFRA.match(name)
        if match:
            place = _Place(int(match[4]), int(match[2]) - 1, int(match[3]), int(match[5]))
            found.setdefault(match[1], []).append((place, name[: -len("-keys")]))
    tables = {}
    for table, parts in found.items():
        _check_complete(directory, table, [place for place, _ in parts])
        stems = [os.path.join(directory, stem) for _, stem in sorted(parts)]
        paths = [(stem + "-keys", stem + "-values") for stem in stems]
        tables[table] = _table(table, "TFRA", paths, key_dtype, dtype)
    tables = with_slots(tables)
    for one in tables.values():
        _size_slots(one)
    return tables or None


class _Place(NamedTuple):
    """Which of the partitions of which rank; counts as the name of the file has them."""

    rank: int
    part: int
    parts: int
    ranks: int


def _check_complete(directory: str, table: str, places: List[_Place]) -> None:
    """Parts are numbered over all ranks, or over those of one rank again and again."""
    counts = {(place.parts, place.ranks) for place in places}
    if len(counts) > 1:
        raise BadInput(f"{directory}: table {table!r} mixes saves of {sorted(counts)} parts, ranks")
    parts, ranks = counts.pop()
    found = {(place.rank, place.part) for place in places}
    over_all = {part for _, part in found} == set(range(parts)) and len(found) == parts
    missing_rank = set(range(ranks)) - {rank for rank, _ in found}
    if missing_rank or not (over_all or len(found) == parts * ranks):
        raise BadInput(
            f"{directory}: table {table!r} has {len(found)} files, but their names tell of {parts} "
            f"parts and {ranks} ranks; some are missing"
        )


def _table(
    name: str, kind: str, paths: List[Tuple[str, str]], key_dtype: str, dtype: str
) -> HashTable:
    """A table whose row size follows from the sizes of its files."""
    key, value = _array(key_dtype), _array(dtype)
    sizes = []
    for pair in paths:
        with StoredFile(pair[0]) as keys, StoredFile(pair[1]) as values:
            sizes.append((keys.size, values.size))
    count, total = (sum(column) for column in zip(*sizes))
    rows = count // key.itemsize
    dim = total // (rows * value.itemsize) if rows else 0
    parts = []
    for (keys_path, values_path), (key_bytes, value_bytes) in zip(paths, sizes):
        stored = key_bytes // key.itemsize
        fits = (stored * key.itemsize, stored * dim * value.itemsize) == (key_bytes, value_bytes)
        if not fits or (stored and not dim):
            raise BadInput(
                f"{values_path} has {value_bytes} bytes for {key_bytes} bytes of keys: no "
                f"{dtype} rows of one size with {key_dtype} keys; name the types or mend the file"
            )
        parts.append(FilePart(keys_path, values_path, key, value, stored, dim))
    return HashTable(name, kind, key_dtype, dtype, (dim,), tuple(parts))


def _size_slots(table: HashTable) -> None:
    """Slots that have no rows yet tell no size of one: they get the table's."""
    for name, slot in table.slots.items():
        if not slot.stored:
            table.slots[name] = dataclasses.replace(slot, value_shape=table.value_shape)


def _array(dtype: str) -> numpy.dtype:
    found = BY_NAME[dtype].array if dtype in BY_NAME else None
    if found is None:
        raise BadInput(f"{dtype!r} is no data type of numbers; name one such as int64 or float32")
    return found


def _sok(directory: str) -> Dict[str, HashTable]:
    """SOK's dump. meta_info, all numbers big-endian, is

    4 bytes        number n of tables
    n x 4, 4, 4    types of keys, types of rows, row sizes
    n x 8          numbers of rows
    n x 256, 32    names of tables and optimizers, padded with spaces on the left
    """
    path = os.path.join(directory, "meta_info")
    with StoredFile(path) as file:
        count = int.from_bytes(file.read(0, 4, path), "big")
        if file.size != 4 + count * 308:
            raise BadInput(f"{path} has {file.size} bytes, not what {count} tables need")
        data = file.read(4, count * 308, path)
    numbers = numpy.frombuffer(data[: 12 * count], ">u4").reshape(3, count).tolist()
    rows = numpy.frombuffer(data[12 * count : 20 * count], ">u8").tolist()
    tables = {}
    for index in range(count):
        start = 20 * count + 256 * index
        name = _ascii(data[start : start + 256], path)
        key_type, row_type, dim = (column[index] for column in numbers)
        if max(key_type, row_type) >= len(_SOK_DTYPES):
            raise BadInput(f"{path}: table {name!r} has an unknown data type")
        stem = os.path.join(directory, "".join("_" if c in string.punctuation else c for c in name))
        tables[name] = _sok_table(
            name, stem, _SOK_DTYPES[key_type], _SOK_DTYPES[row_type], rows[index], dim
        )
    return tables


def _sok_table(name: str, stem: str, key_dtype: str, dtype: str, rows: int, dim: int) -> HashTable:
    key, value = _array(key_dtype), _array(dtype)

    def one(values: str) -> FilePart:
        sizes = {stem + "-key": key.itemsize, values: dim * value.itemsize}
        for path, size in sizes.items():
            with StoredFile(path) as file:
                if file.size != _SOK_HEAD + rows * size:
                    raise BadInput(f"{path} has {file.size} bytes, not the {rows} rows of {name!r}")
                if _ascii(file.read(0, 256, path), path) != name:
                    raise BadInput(f"{path} belongs to another table than {name!r}")
        return FilePart(stem + "-key", values, key, value, rows, dim, _SOK_HEAD)

    table = HashTable(name, "HugeCTR", key_dtype, dtype, (dim,), (one(stem + "-weight"),))
    folder, base = os.path.split(stem)
    for file in sorted(os.listdir(folder)):
        pieces = file[len(base) + 1 :].split("-")
        if file.startswith(base + "-") and len(pieces) == 2:
            slot = dataclasses.replace(table, parts=(one(os.path.join(folder, file)),))
            table.slots["_".join(pieces)] = slot
    return table


def _ascii(data: bytes, path: str) -> str:
    try:
        return data.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: the name of a table is not text") from error
