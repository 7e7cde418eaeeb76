"""A TensorFlow checkpoint, of the format V2 ("tensor bundle") or V1, read without TensorFlow.

    checkpoint = open_checkpoint("model.ckpt-40000")
    checkpoint["user/embedding"]                      # TensorInfo(shape, dtype, slices, kind, ...)
    checkpoint.read("user/embedding", rows=slice(0, 8))

Invariants

1. Opening reads the index alone. A data file is opened when a tensor in it is read.
2. The index is checked as a whole: crc32c of its blocks, sizes against shapes and data types,
   slices against the shape they must fill.
3. The crc32c of a stored piece covers the whole piece. `read` of a whole tensor, `chunks` and
   `verify` check every piece. `read` of a range of rows touches those rows alone, so that it can
   check only the pieces that lie within it; call `verify` first where that is not enough.
4. Memory: `read` needs the array it returns, `chunks` one chunk; rows or columns that have to be
   rearranged pass through a small buffer. Only a V1 checkpoint needs a whole stored slice.
"""

from __future__ import annotations

import copy
import math
import os
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy

from migrate.checkpoint import kinds, objects
from migrate.checkpoint.directory import checkpoint_prefix
from migrate.checkpoint.entries import Piece, Tensor, read_index
from migrate.checkpoint.model import Slice, TensorInfo, row_blocks
from migrate.checkpoint.rows import RowReader, Span, box, skipped
from migrate.checkpoint.scattered import gather
from migrate.checkpoint.shards import PieceStream, Shards, check
from migrate.checkpoint.strings import StringStream
from migrate.checkpoint.v1 import SliceStream, Tables, read_v1
from migrate.encoding import crc32c
from migrate.encoding.dtypes import DType
from migrate.storage.files import index_path, of_saved_model, size_of, v1_tables
from migrate.storage.remote import is_remote
from semisync.common.errors import BadInput, UsageError

_VERIFIED = 4 << 20  # bytes that `verify` holds at a time
_USUAL_STRING = 64  # bytes that an element counts for before its length is known


class Bundle(Shards):
    """The data files of a tensor bundle, with a stream of values for each stored piece."""

    def reopened(self) -> Bundle:
        """The same with files of its own."""
        return Bundle(self._prefix, self._count, self.big_endian, self.checksums)

    def stream(
        self, piece: Piece, dtype: DType, where: str, skip: int = 0
    ) -> Union[PieceStream, StringStream]:
        """The values of `piece` from element `skip` on."""
        if dtype.array is None:
            return StringStream(self, piece, where, skip)
        bytes_skipped = skip * dtype.array.itemsize
        swap = dtype.swap if self.big_endian else 1
        return PieceStream(self, piece, where, bytes_skipped, swap)


Store = Union[Bundle, Tables]
Stream = Union[PieceStream, StringStream, SliceStream]


class Checkpoint(Mapping[str, TensorInfo]):
    """Mapping of tensor names to TensorInfo; `read` and `chunks` give the values.

    prefix  that of its files
    parts   name under which a part of a tensor is stored -> the tensor's, see
            migrate.checkpoint.scattered
    """

    def __init__(self, prefix: str, checksums: bool = True) -> None:
        prefix = checkpoint_prefix(prefix)
        self.prefix = prefix if is_remote(prefix) else os.path.abspath(prefix)
        tensors, self._store = self._open(checksums)
        self._tensors, self.parts = gather(tensors, self.prefix)
        kind = kinds.classify({name: (t.dtype, t.shape) for name, t in self._tensors.items()})
        self._infos = {name: _info(tensor, kind[name]) for name, tensor in self._tensors.items()}

    def __getitem__(self, name: str) -> TensorInfo:
        return self._infos[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the data files; a later read opens them again."""
        self._store.close()

    @property
    def num_shards(self) -> int:
        """Number of data files."""
        return len(self._store.paths)

    def shard_paths(self) -> List[str]:
        """Paths of the data files."""
        return self._store.paths

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """The values of `name`, or of a range of its rows (its first dimension).

        name: a tensor of this checkpoint. rows: a slice of step 1, as for a list.
        Returns an array of the stored data type; strings are an object array of bytes, bfloat16
        is `migrate.encoding.dtypes.BFLOAT16`.
        Raises BadInput for damaged or missing data and for types without a reader, UsageError
        for an unknown name or a slice with a step.
        """
        tensor = self._tensor(name)
        first, last = _range(rows, tensor.shape, name)
        dtype = _array_type(tensor, name)
        touched = [
            piece
            for piece in map(_with_rows, tensor.pieces)
            if max(piece.start[0], first) < min(piece.start[0] + piece.shape[0], last)
        ]
        for piece in touched:  # the data files are long enough: asked before memory is taken
            self._store.check_extent(piece, self._where(piece, name))
        out = numpy.empty((last - first,) + tensor.shape[1:], dtype)
        for piece in touched:
            begin = max(piece.start[0], first)
            end = min(piece.start[0] + piece.shape[0], last)
            skip = (begin - piece.start[0]) * math.prod(piece.shape[1:])
            stream = self._stream(piece, name, skip)
            stream.fill(out[box(piece, slice(begin - first, end - first))])
        return out if tensor.shape else out.reshape(())

    def verify(self, name: str) -> None:
        """Reads all of `name` in bounded memory; raises BadInput where a crc32c is wrong."""
        tensor = self._tensor(name)
        dtype = _array_type(tensor, name)
        size = dtype.itemsize if tensor.dtype.array is not None else _USUAL_STRING
        for piece in tensor.pieces:
            stream, left = self._stream(piece, name), math.prod(piece.shape)
            buffer = numpy.empty(min(left, _VERIFIED // size), dtype)
            while left:
                part = buffer[:left]
                stream.fill(part)
                left -= len(part)

    def objects(self) -> objects.ObjectGraph:
        """What the keys of an object-based checkpoint stand for; empty for one by names."""
        if objects.KEY not in self._tensors:
            return objects.EMPTY
        data = self.read(objects.KEY)
        if data.shape or not isinstance(data.item(), bytes):
            raise BadInput(f"{self.prefix}: {objects.KEY} is no string, as object graphs are")
        return objects.decode(data.item(), f"{self.prefix}: object graph")

    def chunks(
        self,
        name: str,
        rows_per_chunk: int,
        interleave: bool = False,
        rows: Optional[slice] = None,
    ) -> Iterator[Tuple[int, numpy.ndarray]]:
        """Yields (first row, rows) from front to back; every stored piece is verified.

        name: a tensor; a scalar counts as one row. rows_per_chunk: at most this many rows a
        chunk. interleave: deal the rows out from the P partitions in turn, as partition
        strategy "mod" did: row r of partition p comes out as row r * P + p. rows: of what comes
        out, these alone; pieces that lie in them in part are not verified.
        Raises BadInput for damaged or missing data; a wrong crc32c shows when the last row of a
        piece has been read, so nothing is to be trusted before the iteration has ended.
        """
        if rows_per_chunk < 1:
            raise UsageError(f"rows_per_chunk is {rows_per_chunk}, expected at least 1")
        tensor = self._tensor(name)
        dtype = _array_type(tensor, name)
        shape = tensor.shape or (1,)
        start, end = _range(rows, shape, name)
        reader = self.reader(name, interleave, start)
        for first in range(start, end, rows_per_chunk):
            out = numpy.empty((min(rows_per_chunk, end - first),) + shape[1:], dtype)
            reader.fill(out)
            yield first, out

    def reader(self, name: str, interleave: bool = False, first: int = 0) -> RowReader:
        """What reads the rows of `name` from row `first` on into arrays of the caller's.

        As `chunks`, and for one thread at a time; `spans` tells what it read.
        """
        pieces = [_with_rows(piece) for piece in self._tensor(name).pieces]
        blocks = row_blocks(self[name], name) if interleave else []
        streams = [
            self._stream(piece, name, skipped(piece, first, blocks) * math.prod(piece.shape[1:]))
            for piece in pieces
        ]
        return RowReader(pieces, streams, first, blocks)

    def reopened(self) -> Checkpoint:
        """The same checkpoint with files of its own, for another thread; to be closed too."""
        other = copy.copy(self)
        other._store = self._store.reopened()
        return other

    def check_spans(self, name: str, spans: Sequence[Span]) -> None:
        """That the `spans` of readers, which together read all rows of `name`, have the crc32c of
        every stored piece; BadInput where they have not.

        What is no PieceStream, strings and V1, is checked as it is read.
        """
        if not isinstance(self._store, Bundle) or not self._store.checksums:
            return
        pieces = self._tensor(name).pieces
        crcs = [0] * len(pieces)
        for index, _, length, crc in sorted(spans):
            crcs[index] = crc32c.combine(crcs[index], crc, length)
        for crc, piece in zip(crcs, pieces):
            check(crc, piece, self._where(piece, name), self._store)

    def _open(self, checksums: bool) -> Tuple[Dict[str, Tensor], Store]:
        if size_of(self.prefix + ".index") is None:
            tables = v1_tables(self.prefix)
            if tables:
                return read_v1(tables)
            if of_saved_model(self.prefix) is None and self._has_other_tables():
                return {}, Bundle(self.prefix, 0, False, checksums)
            self.prefix = of_saved_model(self.prefix) or self.prefix
        shards, big_endian, tensors = read_index(index_path(self.prefix))
        return tensors, Bundle(self.prefix, shards, big_endian, checksums)

    def _has_other_tables(self) -> bool:
        """Whether the path holds hash tables in files of their own, beside no checkpoint."""
        from migrate.open import other_tables  # which reads checkpoints, too

        return not is_remote(self.prefix) and other_tables(self.prefix) is not None

    def _tensor(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise UsageError(
                f"{self.prefix} holds no tensor {name!r}; `semisync inspect` lists all"
            )
        return self._tensors[name]

    def _where(self, piece: Piece, name: str) -> str:
        at = f", slice at {list(piece.start)}" if self._tensors[name].partitioned else ""
        return f"{self.prefix}: tensor {name!r}{at}"

    def _stream(self, piece: Piece, name: str, skip: int = 0) -> Stream:
        dtype = self._tensors[name].dtype
        return self._store.stream(piece, dtype, self._where(piece, name), skip)


def open_checkpoint(prefix: str, checksums: bool = True, newer: Optional[str] = None) -> Checkpoint:
    """Opens the checkpoint whose files are `prefix`.index and `prefix`.data-*.

    Instead of these, `prefix` may be that of a V1 checkpoint, the directory of a SavedModel, or a
    directory whose file `checkpoint` names one; it may be a URL that fsspec serves (s3://, gs://,
    hdfs://), except for V1.
    Files of hash tables alone (Monolith, TFRA, HugeCTR, SOK) are a checkpoint without tensors:
    `migrate.hash_tables` lists what is there.
    checksums: False reads data without checking its crc32c, for what was verified before; the
    index is checked always.
    newer: prefix of a DeepRec incremental checkpoint of a later step, to be laid over it.
    Raises BadInput where there is none, where it is damaged, where its format is another, or where
    `newer` is no increment of it.
    """
    found = Checkpoint(os.fspath(prefix), checksums)
    if newer is None:
        return found
    from migrate.hash_tables.increment import Overlaid  # which is a Checkpoint

    return Overlaid(found, Checkpoint(os.fspath(newer), checksums))


def _info(tensor: Tensor, kind: str) -> TensorInfo:
    slices = tuple(Slice(piece.start, piece.shape) for piece in tensor.pieces)
    return TensorInfo(
        shape=tensor.shape,
        dtype=tensor.dtype.name,
        slices=slices if tensor.partitioned else (),
        kind=kind,
        nbytes=sum(piece.size for piece in tensor.pieces),
    )


def _array_type(tensor: Tensor, name: str) -> numpy.dtype:
    if tensor.dtype.name == "string":
        return numpy.dtype(object)
    if tensor.dtype.array is None:
        raise BadInput(f"tensor {name!r} is of type {tensor.dtype.name}, which has no reader")
    return tensor.dtype.array


def _range(rows: Optional[slice], shape: Sequence[int], name: str) -> Tuple[int, int]:
    """First row and the one after the last; a scalar counts as one row."""
    if rows is None:
        return 0, shape[0] if shape else 1
    if not shape or rows.step not in (None, 1):
        raise UsageError(
            f"rows={rows} of tensor {name!r}, {list(shape)}: expected a slice of step 1"
        )
    first, last, _ = rows.indices(shape[0])
    return first, max(first, last)


def _with_rows(piece: Piece) -> Piece:
    """A scalar as one row."""
    return piece if piece.shape else piece._replace(start=(0,), shape=(1,))
