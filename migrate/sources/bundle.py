"""A TensorFlow checkpoint of the format V2 ("tensor bundle"), read without TensorFlow.

    checkpoint = open_checkpoint("model.ckpt-40000")
    checkpoint["user/embedding"]                      # TensorInfo(shape, dtype, slices, kind, ...)
    checkpoint.read("user/embedding", rows=slice(0, 8))

Invariants

1. Opening reads the index alone. A data file is opened when a tensor in it is read.
2. The index is checked as a whole: crc32c of its blocks, sizes against shapes and data types,
   slices against the shape they must fill.
3. `read` of a whole tensor and `chunks` check the crc32c of every stored piece. `read` of a range
   of rows touches those rows alone, and can check only the pieces that lie within it.
4. Memory: `read` needs the array it returns, `chunks` one chunk; rows or columns that have to be
   rearranged pass through a small buffer.
"""

from __future__ import annotations

import os
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy

from migrate.sources import kinds, strings
from migrate.sources.entries import Piece, Tensor, read_index, volume
from migrate.sources.files import index_path
from migrate.sources.info import Slice, TensorInfo, row_blocks
from migrate.sources.shards import PieceStream, Shards
from semisync.errors import BadInput, UsageError

_BUFFER = 256 << 10  # bytes


class Checkpoint(Mapping[str, TensorInfo]):
    """Mapping of tensor names to TensorInfo; `read` and `chunks` give the values."""

    def __init__(self, prefix: str) -> None:
        self.prefix = os.path.abspath(prefix)
        self.num_shards, self._tensors = read_index(index_path(self.prefix))
        self._shards = Shards(self.prefix, self.num_shards)
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
        self._shards.close()

    def shard_paths(self) -> List[str]:
        """Paths of the data files."""
        return [self._shards.path(shard) for shard in range(self.num_shards)]

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """The values of `name`, or of a range of its rows (its first dimension).

        name: a tensor of this checkpoint. rows: a slice of step 1, as for a list.
        Returns an array of the stored data type; strings are an object array of bytes, bfloat16
        is `migrate.sources.dtypes.BFLOAT16`.
        Raises BadInput for damaged or missing data and for types without a reader, UsageError
        for an unknown name or a slice with a step.
        """
        tensor = self._tensor(name)
        first, last = _range(rows, tensor.shape, name)
        if tensor.dtype.name == "string":
            values = self._read_strings(tensor, name)
            return values if rows is None else values[first:last]
        if rows is None:
            shape = tensor.shape
            for _, values in self.chunks(name, max(last, 1)):
                return values.reshape(shape)
            return numpy.empty(shape, _array_type(tensor, name))
        return self._read_range(tensor, name, first, last)

    def chunks(
        self, name: str, rows_per_chunk: int, interleave: bool = False
    ) -> Iterator[Tuple[int, numpy.ndarray]]:
        """Yields (first row, rows) from front to back; every stored piece is verified.

        name: a numeric tensor; a scalar counts as one row. rows_per_chunk: at most this many
        rows a chunk. interleave: deal the rows out from the P partitions in turn, as partition
        strategy "mod" did: row r of partition p comes out as row r * P + p.
        Raises BadInput for damaged or missing data; a wrong crc32c shows when the last row of a
        piece has been read, so nothing is to be trusted before the iteration has ended.
        """
        tensor = self._tensor(name)
        dtype = _array_type(tensor, name)
        if rows_per_chunk < 1:
            raise UsageError(f"rows_per_chunk is {rows_per_chunk}, expected at least 1")
        pieces = [_with_rows(piece) for piece in tensor.pieces]
        shape = tensor.shape or (1,)
        blocks = row_blocks(self[name], name) if interleave else []
        streams = [self._stream(piece, name) for piece in tensor.pieces]
        for first in range(0, shape[0], rows_per_chunk):
            last = min(first + rows_per_chunk, shape[0])
            out = numpy.empty((last - first,) + shape[1:], dtype)
            for piece, stream in zip(pieces, streams):
                if interleave:
                    part = blocks.index((piece.start[0], piece.shape[0]))
                    target = slice((part - first) % len(blocks), last - first, len(blocks))
                else:
                    begin = max(piece.start[0], first)
                    end = min(piece.start[0] + piece.shape[0], last)
                    target = slice(begin - first, max(begin, end) - first, 1)
                _fill(out[_columns(piece, target)], stream)
            yield first, out

    def _tensor(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise UsageError(
                f"{self.prefix} holds no tensor {name!r}; `semisync inspect` lists all"
            )
        return self._tensors[name]

    def _where(self, piece: Piece, name: str) -> str:
        at = f", slice at {list(piece.start)}" if self._tensors[name].partitioned else ""
        return f"{self.prefix}: tensor {name!r}{at}"

    def _check_extents(self, tensor: Tensor, name: str) -> None:
        """That the data files are as long as the index says: asked before memory is taken."""
        for piece in tensor.pieces:
            self._shards.check_extent(piece, self._where(piece, name))

    def _stream(self, piece: Piece, name: str, skip: int = 0) -> PieceStream:
        return PieceStream(self._shards, piece, self._where(piece, name), skip)

    def _read_range(self, tensor: Tensor, name: str, first: int, last: int) -> numpy.ndarray:
        dtype = _array_type(tensor, name)
        self._check_extents(tensor, name)
        out = numpy.empty((last - first,) + tensor.shape[1:], dtype)
        for piece in tensor.pieces:
            begin = max(piece.start[0], first)
            end = min(piece.start[0] + piece.shape[0], last)
            if begin >= end or not piece.size:
                continue
            skip = (begin - piece.start[0]) * (piece.size // piece.shape[0])
            rows = slice(begin - first, end - first, 1)
            _fill(out[_columns(piece, rows)], self._stream(piece, name, skip))
        return out

    def _read_strings(self, tensor: Tensor, name: str) -> numpy.ndarray:
        self._check_extents(tensor, name)
        out = numpy.empty(tensor.shape, dtype=object)
        for piece in tensor.pieces:
            where = self._where(piece, name)
            data = numpy.empty(piece.size, numpy.uint8)
            self._shards.read_into(piece.shard, piece.offset, data, where)
            values = strings.decode(data.tobytes(), volume(piece.shape), piece.crc32c, where)
            box = tuple(slice(s, s + n) for s, n in zip(piece.start, piece.shape))
            out[box] = values.reshape(piece.shape)
        return out


def open_checkpoint(prefix: str) -> Checkpoint:
    """Opens the checkpoint whose files are `prefix`.index and `prefix`.data-*.

    Raises BadInput where there is none, where it is damaged, or where its format is another.
    """
    return Checkpoint(os.fspath(prefix))


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


def _columns(piece: Piece, rows: slice) -> Tuple[slice, ...]:
    rest = zip(piece.start[1:], piece.shape[1:])
    return (rows,) + tuple(slice(start, start + size) for start, size in rest)


def _fill(target: numpy.ndarray, stream: PieceStream) -> None:
    """Reads the next bytes of `stream` into `target`, in row-major order.

    A target that is not contiguous is filled by way of a small buffer that stays in the
    processor's cache; it holds one row at least.
    """
    if not target.size:
        return
    if target.flags.c_contiguous:
        stream.read_into(target.reshape(-1).view(numpy.uint8))
        return
    rows = max(_BUFFER // (target.nbytes // len(target)), 1)
    buffer = numpy.empty((min(rows, len(target)),) + target.shape[1:], target.dtype)
    for first in range(0, len(target), rows):
        part = target[first : first + rows]
        values = buffer[: len(part)]
        stream.read_into(values.reshape(-1).view(numpy.uint8))
        part[...] = values
