"""A TensorFlow checkpoint of the format V1, TensorFlow's own before 1.0.

It is one LevelDB table, PREFIX, or one per saving device, PREFIX-00000-of-0000N:

    key ""              SavedTensorSlices {1 meta {1 tensor: SavedSliceMeta}}
    key of a slice      SavedTensorSlices {2 data: SavedSlice}
    SavedSliceMeta      {1 name, 2 shape, 3 type, 4 slice}
    SavedSlice          {1 name, 2 slice, 3 data: TensorProto}

Each table lists its own slices; together they fill a tensor. The values are in the TensorProto's
field for their type. A whole slice is one entry of the table, less than 2 GB, which is held in
memory while it is read; the crc32c of its block covers it.
Source: tensorflow/core/util/saved_tensor_slice.proto and tensor_slice_writer.cc
"""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.index import name_of, refuse_more_pieces, shape_of, slice_of
from migrate.checkpoint.opened import Opened
from migrate.checkpoint.paths import v1_tables
from migrate.checkpoint.pieces import Extent, Piece, Tensor, resolve
from migrate.checkpoint.scattered import gather
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import DTYPES, DType
from semisync.encoding.ordered_code import slice_key
from semisync.encoding.snappy import MAX_RATIO
from semisync.encoding.sstable import Table
from semisync.encoding.wire import fields, message, number, varints

# Fields of a TensorProto: of plain little-endian numbers, and of varints for every other type.
_PLAIN = {"float32": 5, "float64": 6, "complex64": 9, "complex128": 12}
_VARINTS = {"int64": 10, "bool": 11, "float16": 13, "bfloat16": 13, "uint32": 16, "uint64": 17}
_OTHER_VARINTS = 7
_STRINGS = 8
_MAX_VALUES = 1 << 29  # of 4 bytes they are 2 GB, more than a protobuf takes
_DECODED = 64 << 10  # bytes of varints at a time


class Tables:
    """The tables of a V1 checkpoint; a Piece's `shard` and `offset` number a table and a key."""

    def __init__(self, paths: List[str]) -> None:
        self.paths = paths
        self._open = Opened(lambda shard: Table(paths[shard]))
        self._keys: List[bytes] = []

    def path(self, shard: int) -> str:
        """Path of the table `shard`."""
        return self.paths[shard]

    def close(self) -> None:
        """Closes the tables; a later read opens them again."""
        self._open.close()

    def reopened(self) -> Tables:
        """The same tables with handles of their own."""
        other = Tables(self.paths)
        other._keys = self._keys
        return other

    def table(self, shard: int) -> Table:
        """The table `shard`, opened."""
        return self._open[shard]

    @property
    def count(self) -> int:
        """How many slices there are."""
        return len(self._keys)

    def add(self, key: bytes) -> int:
        """Remembers the key of a slice; returns its number."""
        self._keys.append(key)
        return len(self._keys) - 1

    def check_extent(self, piece: Piece, where: str) -> None:
        """Raises BadInput if `piece` has more values than the table, or one entry, can hold."""
        size, count = self.table(piece.shard).size, math.prod(piece.shape)
        if count > min(MAX_RATIO * size, _MAX_VALUES):
            raise BadInput(
                f"{where} is said to have {count} values, but {self.paths[piece.shard]} has {size} "
                f"bytes, and a slice has at most {_MAX_VALUES} values"
            )

    def check_crc(self, crc: int, piece: Piece, where: str) -> None:
        """Does nothing: every block of a table is checked when it is read."""

    def stream(self, piece: Piece, dtype: DType, where: str, skip: int = 0) -> SliceStream:
        """The values of `piece` from element `skip` on."""
        return SliceStream(self, piece, dtype, where, skip)

    def values(self, piece: Piece, dtype: DType, where: str) -> numpy.ndarray:
        """All values of `piece`, one-dimensional."""
        stored = self.table(piece.shard).get(self._keys[piece.offset])
        if stored is None:
            raise BadInput(f"{where} is missing from {self.paths[piece.shard]}")
        tensor = memoryview(b"")
        for field, value in fields(stored, where):
            if field == 2:
                saved = dict(fields(message(value, where), where))
                tensor = message(saved.get(3, tensor), where)
        count = math.prod(piece.shape)
        values = _values(tensor, dtype, count, where)
        if len(values) != count:
            raise BadInput(f"{where} holds {len(values)} values, expected {count}")
        return values


class SliceStream:
    """The values of one slice from front to back; in memory from the first read to the last."""

    def __init__(self, tables: Tables, piece: Piece, dtype: DType, where: str, skip: int) -> None:
        tables.check_extent(piece, where)
        self._tables = tables
        self._piece = piece
        self._dtype = dtype
        self._where = where
        self._position = skip
        self._values: Optional[numpy.ndarray] = None

    def fill(self, target: numpy.ndarray) -> None:
        """Puts the next values into `target`, in row-major order."""
        if self._values is None:
            self._values = self._tables.values(self._piece, self._dtype, self._where)
        end = self._position + target.size
        target[...] = self._values[self._position : end].reshape(target.shape)
        self._position = end
        if end == len(self._values):
            self._values = None


def open_v1(prefix: str, checksums: bool = True) -> Optional[Checkpoint]:
    """The V1 checkpoint with this prefix; None if there are no such tables.

    Args:
        checksums: of no effect; the blocks of a table are always checked.
    """
    paths = v1_tables(prefix)
    if not paths:
        return None
    tables = Tables(paths)
    return Checkpoint(prefix, gather(_tensors(tables), prefix), tables)


def _tensors(tables: Tables) -> Dict[str, Tensor]:
    slices: Dict[str, List[Piece]] = {}
    types: Dict[str, Tuple[DType, Tuple[int, ...]]] = {}
    for shard, path in enumerate(tables.paths):
        for name, dtype, shape, stored in _metas(tables.table(shard), path):
            where = f"{path}: tensor {name!r}"
            if types.setdefault(name, (dtype, shape)) != (dtype, shape):
                raise BadInput(f"{where} has another type or shape than in {tables.paths[0]}")
            refuse_more_pieces(tables.count + len(stored), path)
            for extents in stored:
                start, size = resolve(extents, shape, where)
                itemsize = dtype.array.itemsize if dtype.array is not None else 0
                piece = Piece(
                    start=start,
                    shape=size,
                    shard=shard,
                    # The key has the extents as listed: a whole dimension has no length there.
                    offset=tables.add(slice_key(name.encode(), extents)),
                    size=math.prod(size) * itemsize,
                    crc32c=0,
                )
                slices.setdefault(name, []).append(piece)
    tensors = {}
    for name, (dtype, shape) in sorted(types.items()):
        pieces = tuple(sorted(slices.get(name, [])))
        tensors[name] = Tensor(dtype, shape, pieces, len(pieces) > 1)
    return tensors


Meta = Tuple[str, DType, Tuple[int, ...], List[Tuple[Extent, ...]]]


def _metas(table: Table, path: str) -> List[Meta]:
    """Name, type, shape and slices of each tensor that a table has a part of."""
    stored = table.get(b"")
    if stored is None:
        raise BadInput(f"{path} is a table, but neither a checkpoint nor its index")
    metas = []
    for field, value in fields(stored, path):
        for inner, meta in fields(message(value, path), path) if field == 1 else ():
            if inner == 1:
                metas.append(_meta(message(meta, path), path))
    return metas


def _meta(data: memoryview, path: str) -> Meta:
    name, kind = "", 0
    shape: Tuple[int, ...] = ()
    extents: List[Tuple[Extent, ...]] = []
    for field, value in fields(data, path):
        if field == 1:
            name = name_of(bytes(message(value, path)), path)
        elif field == 2:
            shape = shape_of(message(value, path), path)
        elif field == 3:
            kind = number(value, path)
        elif field == 4:
            extents.append(slice_of(message(value, path), path))
    if kind not in DTYPES:
        raise BadInput(f"{path}: tensor {name!r} has the unknown data type number {kind}")
    return name, DTYPES[kind], shape, extents


def _values(tensor: memoryview, dtype: DType, count: int, where: str) -> numpy.ndarray:
    """The values in a TensorProto; `count` are due, and of varints one more at most is decoded."""
    if dtype.name == "string":
        strings = [bytes(message(v, where)) for f, v in fields(tensor, where) if f == _STRINGS]
        # numpy's own type of bytes drops zeros at the end of a string.
        out = numpy.empty(len(strings), dtype=object)
        out[:] = strings
        return out
    assert dtype.array is not None  # the caller refused such types
    # What is not listed (int8 to int32, uint8, uint16, quantized types) is in int_val, field 7.
    wanted = _PLAIN.get(dtype.name) or _VARINTS.get(dtype.name, _OTHER_VARINTS)
    parts = [message(value, where) for field, value in fields(tensor, where) if field == wanted]
    raw = numpy.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), numpy.uint8)
    if dtype.name in _PLAIN:
        if raw.size % dtype.array.itemsize:
            raise BadInput(f"{where} holds {raw.size} bytes, no whole number of {dtype.name}")
        return raw.view(dtype.array)
    out, at, done = numpy.empty(count + 1, dtype.array), 0, 0
    while at < raw.size and done <= count:
        decoded, used = varints(raw[at : at + _DECODED], count + 1 - done)
        if not used:
            raise BadInput(f"{where}: a number is cut short; the file is damaged")
        out[done : done + len(decoded)] = _narrow(decoded, dtype, where)
        at, done = at + used, done + len(decoded)
    return out[:done]


def _narrow(values: numpy.ndarray, dtype: DType, where: str) -> numpy.ndarray:
    """Decoded varints as numbers of the tensor's type; refuses those out of its range."""
    target = dtype.array
    assert target is not None
    # half_val holds the 16 bits of a float16 or bfloat16 as an integer.
    bits = numpy.dtype("<u2") if dtype.name in ("float16", "bfloat16") else target
    # Protobuf sign-extends a negative int32 to a varint of 64 bits.
    signed = values.view(numpy.int64) if bits.kind == "i" else values
    narrow = signed.astype(bits)
    if (narrow.astype(signed.dtype) != signed).any():
        raise BadInput(f"{where} holds numbers that {dtype.name} cannot; the file is damaged")
    return narrow if bits is target else narrow.view(target)
