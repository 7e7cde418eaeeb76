"""Hash tables in raw files: an array of keys in one, an array of rows in another.

Such files say little of themselves: the row size follows from the sizes of both, which must fit
together for all parts of a table, and there is no checksum. Any file passes for one, so that a link
could bring a file of the reader's own among the rows: links out of the folder are refused.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Iterator, List, NamedTuple, Sequence, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME
from semisync.storage.files import StoredFile
from semisync.storage.within import refuse_link_out


class Types(NamedTuple):
    """Data types of files that do not say theirs."""

    key: str = "int64"
    value: str = "float32"


ASSUMED = Types()


@dataclasses.dataclass(frozen=True)
class FilePart:
    """Rows in a pair of files, `stored` keys and values [stored, dim], each after `head` bytes."""

    keys: str
    values: str
    key_dtype: numpy.dtype
    dtype: numpy.dtype
    stored: int
    dim: int
    head: int = 0

    @property
    def place(self) -> str:
        """See Part."""
        return self.keys

    @property
    def files(self) -> Tuple[str, ...]:
        """See Part."""
        return (self.keys, self.values)

    def has(self, column: str) -> bool:
        """See Part; the formats have neither."""
        return False

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part. The files have no checksums: only their sizes are checked."""
        with StoredFile(self.keys) as keys, StoredFile(self.values) as values:
            row_size = self.dim * self.dtype.itemsize
            for file, size in ((keys, self.key_dtype.itemsize), (values, row_size)):
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


def listing(directory: str) -> List[str]:
    """Names in a directory, sorted; none for another path."""
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def sized_table(name: str, kind: str, paths: Sequence[Tuple[str, str]], types: Types) -> HashTable:
    """A table whose row size follows from the sizes of its pairs of files."""
    key, value = number_array(types.key), number_array(types.value)
    sizes = []
    for pair in paths:
        for path in pair:
            refuse_link_out(*os.path.split(path))
        with StoredFile(pair[0]) as keys, StoredFile(pair[1]) as values:
            sizes.append((keys.size, values.size))
    # From all parts together: an empty one does not show the size of a row.
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
                f"{types.value} rows of one size with {types.key} keys; name the types or correct "
                "the file"
            )
        parts.append(
            FilePart(
                keys=keys_path,
                values=values_path,
                key_dtype=key,
                dtype=value,
                stored=stored,
                dim=dim,
            )
        )
    return HashTable(
        name=name,
        kind=kind,
        key_dtype=types.key,
        dtype=types.value,
        value_shape=(dim,),
        parts=tuple(parts),
    )


def number_array(dtype: str) -> numpy.dtype:
    """The numpy type of a data type by its name; raises BadInput if it is not one of numbers."""
    array = BY_NAME[dtype].array if dtype in BY_NAME else None
    if array is None:
        raise BadInput(f"{dtype!r} is not a numeric data type; name one such as int64 or float32")
    return array
