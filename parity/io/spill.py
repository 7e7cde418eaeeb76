"""Rows put aside in temporary files, so that rows of one name come back together.

A row goes to the bucket that the hash of its name says, so each bucket holds all rows of its names
and, unless few names have most rows, about 1 / BUCKETS of all rows. The files are Arrow streams in
a folder of their own under TMPDIR, not compressed, and removed in the end.
"""

import os
import tempfile
from typing import Iterator, List, Optional

import numpy as np
import pyarrow as pa

from semisync.common.errors import BadInput

_BITS = 6
BUCKETS = 1 << _BITS
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / the golden ratio (Knuth's multiplicative hashing)
_PLACES = np.random.default_rng(0).integers(1 << 63, size=256, dtype=np.uint64) | np.uint64(1)


class Buckets:
    """Tables of one schema. As a context, it removes its files at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="parity-")
        self._schema: Optional[pa.Schema] = None
        self._writers: List[pa.RecordBatchWriter] = []

    def __enter__(self) -> "Buckets":
        return self

    def __exit__(self, *_: object) -> None:
        self._writers = []  # unfinished where there was an error, which closing them would hide
        self._folder.cleanup()

    def add(self, table: pa.Table, by: str) -> None:
        """Puts rows aside by the name in that column.

        Raises: BadInput where the disk is full, and for columns of another type than before.
        """
        try:
            if self._schema is None:
                self._schema = table.schema
                self._writers = [pa.ipc.new_stream(self._path(i), self._schema) for i in _ALL]
            table = table.cast(self._schema)
            bucket = (hashes(table[by]) >> np.uint64(64 - _BITS)).astype(np.uint8)
            edges = np.concatenate(([0], np.cumsum(np.bincount(bucket, minlength=BUCKETS))))
            table = table.take(np.argsort(bucket, kind="stable"))
            for i in np.flatnonzero(np.diff(edges)):
                part = table.slice(edges[i], edges[i + 1] - edges[i])
                self._writers[i].write_table(part)
        except (pa.ArrowException, ValueError) as error:
            raise BadInput(f"the files do not have the same columns and types: {error}") from error
        except OSError as error:
            raise self._no_room(error) from error

    def tables(self) -> Iterator[pa.Table]:
        """Each bucket's rows, in the order in which they came; nothing can be added after.

        Raises: BadInput where the disk is full.
        """
        self._close()
        for i in _ALL if self._schema else ():
            with pa.ipc.open_stream(self._path(i)) as stream:
                yield stream.read_all()

    def _path(self, bucket: int) -> str:
        return os.path.join(self._folder.name, str(bucket))

    def _close(self) -> None:
        try:
            for writer in self._writers:
                writer.close()
        except OSError as error:
            raise self._no_room(error) from error
        self._writers = []

    def _no_room(self, error: OSError) -> BadInput:
        return BadInput(
            f"temporary files cannot be written to {self._folder.name}: {error.strerror}; set "
            "TMPDIR to a folder with more room"
        )


_ALL = range(BUCKETS)


def hashes(names: pa.ChunkedArray) -> np.ndarray:
    """uint64 (n,): equal for equal names of one type, none missing."""
    kind = names.type
    if pa.types.is_integer(kind):
        return _mixed(names.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    if not pa.types.is_large_string(kind):
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        names = names.cast(pa.large_binary() if binary else pa.large_string())
    array = names.combine_chunks()
    _, offsets, data = array.buffers()
    edges = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.frombuffer(data or b"", np.uint8)[edges[0] : edges[-1]].astype(np.uint64)
    place = np.arange(edges[0], edges[-1]) - np.repeat(edges[:-1], np.diff(edges))
    held += np.uint64(1)
    held *= _PLACES[place % len(_PLACES)]
    before = np.concatenate((np.zeros(1, np.uint64), np.cumsum(held)))
    return _mixed(before[edges[1:] - edges[0]] - before[edges[:-1] - edges[0]])


def _mixed(numbers: np.ndarray) -> np.ndarray:
    numbers = numbers * _MIX
    return (numbers ^ (numbers >> np.uint64(32))) * _MIX
