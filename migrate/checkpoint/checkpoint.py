"""A TensorFlow checkpoint of any format, read without TensorFlow.

    checkpoint = migrate.open_checkpoint("model.ckpt-40000")
    checkpoint["user/embedding"]                      # TensorInfo(shape, dtype, slices, kind, ...)
    checkpoint.read("user/embedding", rows=slice(0, 8))

Invariants

1. Opening reads the index alone. A data file is opened when a tensor in it is read.
2. The index is checked as a whole: crc32c of its blocks, sizes against shapes and data types,
   slices against the shape they must fill.
3. The crc32c of a stored piece covers the whole piece. `read` of a whole tensor, `chunks` and
   `verify` check every piece. `read` of a range of rows touches those rows alone and can therefore
   check only the pieces that lie within it; call `verify` first if that is not enough.
4. Memory: `read` needs the array it returns, `chunks` one chunk, and refuses rows of more than
   512 MiB; rows or columns that have to be rearranged pass through a small buffer. Only a V1
   checkpoint needs a whole stored slice.
"""

from __future__ import annotations

import copy
import math
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy

from migrate.checkpoint import objects
from migrate.checkpoint.objects import ObjectGraph
from migrate.checkpoint.partitions import row_blocks
from migrate.checkpoint.pieces import Piece, Store, Stream, Tensor
from migrate.checkpoint.rows import RowReader, Span, skipped, window
from migrate.checkpoint.scattered import Gathered
from migrate.checkpoint.strings import StringStream
from migrate.checkpoint.tensor_info import (
    Slice,
    TensorInfo,
    classify,
    refuse_wide_rows,
    rows_of,
)
from semisync.common.errors import BadInput, UsageError
from semisync.encoding import crc32c

_VERIFIED = 4 << 20  # bytes that `verify` holds at a time
_USUAL_STRING = 64  # bytes that an element counts for before its length is known


class Checkpoint(Mapping[str, TensorInfo]):
    """A mapping of tensor names to `TensorInfo`; `read` and `chunks` give the values.

    `migrate.open_checkpoint` opens it; use it as a context manager, or call `close`.

    Args:
        prefix: of its files.
        stored: its reader's record from the index.
        store: the data files.

    Attributes:
        prefix: of its files.
        stored: its reader's record from the index.
        store: the data files.
        parts: name under which a part of a tensor is stored -> the tensor's, see
            `migrate.checkpoint.scattered`.
        newer: the increment that is laid over it, see `migrate.checkpoint.overlay`.
        made: tensors that stand for hash tables, see `migrate.hash_tables.whole_tables`.

    Examples:
        >>> with migrate.open_checkpoint("model.ckpt-40000") as checkpoint:
        ...     print(checkpoint["products"].shape)
        ...     print(checkpoint.read("products", rows=slice(7, 9)).shape)
        (100, 4)
        (2, 4)
    """

    newer: Optional[Checkpoint] = None
    _graph: Optional[ObjectGraph] = None
    made: Mapping[str, Any] = {}

    def __init__(self, prefix: str, stored: Gathered, store: Store) -> None:
        self.prefix = prefix
        self.stored = stored
        self.store = store
        self.parts = stored.parts
        types = {name: (tensor.dtype, tensor.shape) for name, tensor in stored.tensors.items()}
        kind = classify(types)
        self._infos = {name: _info(stored.tensors[name], kind[name]) for name in types}

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
        self.store.close()

    @property
    def num_shards(self) -> int:
        """Number of data files."""
        return len(self.store.paths)

    def shard_paths(self) -> List[str]:
        """Paths of the data files.

        Returns:
            A list.
        """
        return self.store.paths

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """The values of a tensor, or of a range of its rows (its first dimension).

        Args:
            name: a tensor of this checkpoint.
            rows: a slice of step 1, as for a list; None: all.

        Returns:
            An array of the stored data type. Strings are an object array of bytes, bfloat16 is
            `semisync.encoding.dtypes.BFLOAT16`.

        Raises:
            BadInput: data is damaged or missing, or of a type without a reader.
            UsageError: an unknown name, or a slice with a step.
        """
        tensor = self._tensor(name)
        first, last = _range(rows, tensor.shape, name)
        dtype = _array_type(tensor, name)
        touched = [
            piece
            for piece in (one.with_rows for one in tensor.pieces)
            if max(piece.start[0], first) < min(piece.start[0] + piece.shape[0], last)
        ]
        for piece in touched:  # the data files are long enough: asked before memory is taken
            self.store.check_extent(piece, self._where(piece, name))
        out = numpy.empty((last - first,) + tensor.shape[1:], dtype)
        for piece in touched:
            begin = max(piece.start[0], first)
            end = min(piece.start[0] + piece.shape[0], last)
            skip = (begin - piece.start[0]) * math.prod(piece.shape[1:])
            stream = self._stream(piece, name, skip)
            stream.fill(out[window(piece, slice(begin - first, end - first))])
        return out if tensor.shape else out.reshape(())

    def verify(self, name: str) -> None:
        """Reads all of a tensor in bounded memory.

        Args:
            name: a tensor of this checkpoint.

        Raises:
            BadInput: a crc32c is wrong.
        """
        tensor = self._tensor(name)
        dtype = _array_type(tensor, name)
        for piece in tensor.pieces:
            stream, left = self._stream(piece, name), math.prod(piece.shape)
            if isinstance(stream, StringStream):
                stream.verify()
                continue
            buffer = numpy.empty(min(left, _VERIFIED // dtype.itemsize), dtype)
            # A piece need not be read by rows here: its values pass in row-major order.
            while left:
                part = buffer[:left]
                stream.fill(part)
                left -= len(part)

    def objects(self) -> ObjectGraph:
        """The meaning of the keys of an object-based checkpoint; empty for one by names.

        Returns:
            An `ObjectGraph`.

        Raises:
            BadInput: it is damaged.
        """
        if self._graph is None:
            self._graph = self._read_graph()
        return self._graph

    def _read_graph(self) -> ObjectGraph:
        if objects.KEY not in self:
            return objects.EMPTY
        if self[objects.KEY].nbytes > objects.MAX_BYTES:
            raise BadInput(
                f"{self.prefix}: {objects.KEY} has {self[objects.KEY].nbytes} bytes, expected at "
                f"most {objects.MAX_BYTES}"
            )
        data = self.read(objects.KEY)
        if data.shape or not isinstance(data.item(), bytes):
            raise BadInput(f"{self.prefix}: {objects.KEY} is not a string, as object graphs are")
        return objects.decode(data.item(), f"{self.prefix}: object graph")

    def chunks(
        self,
        name: str,
        rows_per_chunk: int,
        interleave: bool = False,
        rows: Optional[slice] = None,
    ) -> Iterator[Tuple[int, numpy.ndarray]]:
        """Yields a tensor's rows from front to back, and verifies every stored piece.

        Args:
            name: a tensor; a scalar counts as one row.
            rows_per_chunk: at most this many rows per chunk.
            interleave: deal the rows out from the P partitions in turn, as partition strategy "mod"
                did: row r of partition p comes out as row r * P + p.
            rows: of the result, these alone; pieces that lie in them only in part are not
                verified.

        Yields:
            (first row, rows).

        Raises:
            UsageError: `rows_per_chunk` is less than 1, or the name is unknown.
            BadInput: a row has more than 512 MiB, or data is damaged or missing. A wrong crc32c
                shows when the last row of a piece has been read, so trust nothing before the
                iteration has ended.
        """
        if rows_per_chunk < 1:
            raise UsageError(f"rows_per_chunk is {rows_per_chunk}, expected at least 1")
        tensor = self._tensor(name)
        dtype = _array_type(tensor, name)
        self._refuse_wide_rows(name)
        shape = tensor.shape or (1,)
        start, end = _range(rows, shape, name)
        reader = self.reader(name, interleave, start)
        for first in range(start, end, rows_per_chunk):
            out = numpy.empty((min(rows_per_chunk, end - first),) + shape[1:], dtype)
            reader.fill(out)
            yield first, out

    def reader(self, name: str, interleave: bool = False, first: int = 0) -> RowReader:
        """Reads the rows of a tensor into arrays of the caller's, as `chunks` reads them.

        It is for one thread at a time; its `spans` record its reads.

        Args:
            name: a tensor of this checkpoint.
            interleave: as in `chunks`.
            first: the row to begin with.

        Returns:
            A `RowReader`.

        Raises:
            BadInput: a row has more than 512 MiB.
        """
        self._refuse_wide_rows(name)
        pieces = [piece.with_rows for piece in self._tensor(name).pieces]
        blocks = row_blocks(self[name], name) if interleave else []
        streams = [
            self._stream(piece, name, skipped(piece, first, blocks) * math.prod(piece.shape[1:]))
            for piece in pieces
        ]
        return RowReader(pieces, streams, first, blocks)

    def reopened(self) -> Checkpoint:
        """The same checkpoint with files of its own, for another thread; close it too.

        Returns:
            A `Checkpoint`.
        """
        # Shallow: the index is shared, which nobody changes; only the files are opened anew.
        other = copy.copy(self)
        other.store = self.store.reopened()
        return other

    def check_spans(self, name: str, spans: Sequence[Span]) -> None:
        """Checks the crc32c of a tensor whose rows several readers read, all of them together.

        Strings and V1 are checked as they are read.

        Args:
            name: a tensor of this checkpoint.
            spans: of the readers.

        Raises:
            BadInput: a crc32c is wrong.
        """
        pieces = self._tensor(name).pieces
        crcs = [0] * len(pieces)
        # By piece and first byte: the order in which the parts' crcs combine to the whole's.
        for index, _, length, crc in sorted(spans):
            crcs[index] = crc32c.combine(crcs[index], crc, length)
        for crc, piece in zip(crcs, pieces):
            self.store.check_crc(crc, piece, self._where(piece, name))

    def _tensor(self, name: str) -> Tensor:
        if name not in self.stored.tensors:
            raise UsageError(
                f"{self.prefix} holds no tensor {name!r}; `semisync inspect` lists all"
            )
        return self.stored.tensors[name]

    def _refuse_wide_rows(self, name: str) -> None:
        tensor = self._tensor(name)
        size = tensor.dtype.array.itemsize if tensor.dtype.array is not None else _USUAL_STRING
        if all(tensor.shape):
            row = math.prod(tensor.shape[1:]) * size
            refuse_wide_rows(row, f"{self.prefix}: tensor {name!r}, {list(tensor.shape)},")

    def _where(self, piece: Piece, name: str) -> str:
        at = f", slice at {list(piece.start)}" if self._tensor(name).partitioned else ""
        return f"{self.prefix}: tensor {name!r}{at}"

    def _stream(self, piece: Piece, name: str, skip: int = 0) -> Stream:
        return self.store.stream(piece, self._tensor(name).dtype, self._where(piece, name), skip)


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
        return 0, rows_of(shape)
    if not shape or rows.step not in (None, 1):
        raise UsageError(
            f"rows={rows} of tensor {name!r}, {list(shape)}: expected a slice of step 1"
        )
    first, last, _ = rows.indices(shape[0])
    return first, max(first, last)
