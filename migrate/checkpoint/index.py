"""The entries of a tensor bundle's index: which bytes of which data file hold a tensor.

    key ""            BundleHeaderProto {1 num_shards, 2 endianness, 3 version}
    key name          BundleEntryProto {1 dtype, 2 shape, 3 shard_id, 4 offset, 5 size,
                                        6 crc32c (masked), 7 slices}
    key of a slice    the BundleEntryProto of one slice of a partitioned variable

A partitioned variable's own entry has its full shape and its slices, but no data. Fields with
their default value are omitted.
Source: tensorflow/core/protobuf/tensor_bundle.proto
"""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Tuple

from migrate.checkpoint.pieces import Extent, Piece, Tensor, resolve
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import DTYPES, DType
from semisync.encoding.ordered_code import slice_key
from semisync.encoding.sstable import read_table
from semisync.encoding.wire import fields, message, number, tensor_shape

_MAX_SHARDS = 100_000  # five digits in the names of the data files
_READABLE_VERSION = 1  # kTensorBundleVersion: files may ask for a reader at least this new
_MAX_RANK = 32  # the limit of numpy 1
_MAX_ELEMENTS = 1 << 60  # even of an empty tensor's other dimensions
# An index's cost limit, about half a minute and 1 GB: a hundred tables with Adam's slots in 1000
# parts each are 300,000 pieces, in an index of 40 MB.
_MAX_PIECES = 1 << 19
_MAX_BYTES = 128 << 20


class Entry(NamedTuple):
    """One BundleEntryProto, as stored."""

    dtype: DType
    shape: Tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc32c: int
    slices: Tuple[Tuple[Extent, ...], ...]

    def piece(self, start: Tuple[int, ...]) -> Piece:
        """The stored bytes, as the part of a tensor that begins at `start`."""
        return Piece(
            start=start,
            shape=self.shape,
            shard=self.shard,
            offset=self.offset,
            size=self.size,
            crc32c=self.crc32c,
        )


class Index(NamedTuple):
    """The number of data files, and the tensors by name, in the order of the index."""

    shards: int
    big_endian: bool
    tensors: Dict[str, Tensor]


def read_index(path: str) -> Index:
    """The whole index, checked but for slices, which `migrate.checkpoint.scattered` checks."""
    entries = {}
    for key, value in read_table(path, _MAX_BYTES):
        entries[key] = value
        # As entries come, before a huge index is in memory; less 1 for the header.
        refuse_more_pieces(len(entries) - 1, path)
    if b"" not in entries:
        raise BadInput(f"{path} is a table without a checkpoint's header; it is another file")
    shards, big_endian = _header(memoryview(entries.pop(b"")), f"{path}: header")
    tensors, pieces = {}, 0
    for key, value in entries.items():
        if key.startswith(b"\x00"):
            # Only the ordered code of a slice begins with a zero byte; no name has one (`name_of`).
            continue  # a slice: found from its variable's entry
        name = name_of(key, path)
        where = f"{path}: tensor {name!r}"
        entry = _entry(memoryview(value), shards, where)
        pieces += max(len(entry.slices), 1)
        # Again here: many entries may name one and the same slice.
        refuse_more_pieces(pieces, path)
        tensors[name] = _tensor(key, entry, entries, shards, where)
    return Index(shards, big_endian, tensors)


def refuse_more_pieces(pieces: int, path: str) -> None:
    """Raises BadInput for more tensors and slices than any real checkpoint has."""
    if pieces > _MAX_PIECES:
        raise BadInput(f"{path} lists more than {_MAX_PIECES:,} tensors and slices, the most read")


def name_of(key: bytes, path: str) -> str:
    """The name of a tensor; one with a zero byte fits neither a manifest nor a file's name."""
    try:
        name = key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: the name {key!r} of a tensor is not UTF-8") from error
    if "\0" in name:
        raise BadInput(f"{path}: the name {key!r} of a tensor has a zero byte")
    return name


def _header(data: memoryview, where: str) -> Tuple[int, bool]:
    """Number of data files, and whether the numbers in them are big-endian."""
    shards, endianness, needs = 0, 0, 0
    for field, value in fields(data, where):
        if field == 1:
            shards = number(value, where)
        elif field == 2:
            endianness = number(value, where)
        elif field == 3:
            version = dict(fields(message(value, where), where))
            # VersionDef {1 producer, 2 min_consumer}
            needs = number(version.get(2, 0), where)
    if not 0 < shards <= _MAX_SHARDS:
        raise BadInput(f"{where} claims {shards} data files, expected 1 to {_MAX_SHARDS}")
    if endianness not in (0, 1):
        raise BadInput(f"{where} has endianness {endianness}, expected 0 (little) or 1 (big)")
    if needs > _READABLE_VERSION:
        raise BadInput(
            f"{where} asks for a reader of version {needs}, known are up to {_READABLE_VERSION}"
        )
    return shards, endianness == 1


def _entry(data: memoryview, shards: int, where: str) -> Entry:
    numbers = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    shape: Tuple[int, ...] = ()
    slices: List[Tuple[Extent, ...]] = []
    for field, value in fields(data, where):
        if field in numbers:
            numbers[field] = number(value, where)
        elif field == 2:
            shape = shape_of(message(value, where), where)
        elif field == 7:
            slices.append(slice_of(message(value, where), where))
    dtype, shard, offset, size, crc = numbers.values()
    if dtype not in DTYPES:
        raise BadInput(f"{where} has the unknown data type number {dtype}")
    if not 0 <= shard < shards or offset < 0 or size < 0:
        raise BadInput(
            f"{where} claims {size} bytes at byte {offset} of data file {shard}, "
            f"but there are {shards} data files"
        )
    return Entry(
        dtype=DTYPES[dtype],
        shape=shape,
        shard=shard,
        offset=offset,
        size=size,
        crc32c=crc,
        slices=tuple(slices),
    )


def shape_of(data: memoryview, where: str) -> Tuple[int, ...]:
    """The shape in the TensorShapeProto of an existing tensor."""
    sizes = tensor_shape(data, where)
    if sizes is None:
        raise BadInput(f"{where} has no shape")
    elements = math.prod(max(size, 1) for size in sizes)
    if len(sizes) > _MAX_RANK or any(size < 0 for size in sizes) or elements > _MAX_ELEMENTS:
        raise BadInput(f"{where} has the impossible shape {sizes[:8]}")
    return tuple(sizes)


def slice_of(data: memoryview, where: str) -> Tuple[Extent, ...]:
    """TensorSliceProto {1 extent {1 start, 2 length}}; no length means the whole dimension."""
    extents: List[Extent] = []
    for field, value in fields(data, where):
        if field == 1:
            extent = dict(fields(message(value, where), where))
            length = number(extent[2], where) if 2 in extent else None
            extents.append((number(extent.get(1, 0), where), length))
    return tuple(extents)


def _tensor(
    key: bytes, entry: Entry, entries: Dict[bytes, bytes], shards: int, where: str
) -> Tensor:
    if not entry.slices:
        _check_size(entry, where)
        whole = entry.piece((0,) * len(entry.shape))
        return Tensor(entry.dtype, entry.shape, (whole,), False)
    pieces = []
    for extents in entry.slices:
        start, shape = resolve(extents, entry.shape, where)
        stored = entries.get(slice_key(key, extents))
        if stored is None:
            raise BadInput(f"{where}: its slice at {list(start)} is missing from the index")
        part = _entry(memoryview(stored), shards, f"{where}, slice at {list(start)}")
        if part.dtype != entry.dtype or part.shape != shape:
            raise BadInput(
                f"{where}: its slice at {list(start)} is {part.dtype.name} {list(part.shape)}, "
                f"expected {entry.dtype.name} {list(shape)}"
            )
        _check_size(part, f"{where}, slice at {list(start)}")
        pieces.append(part.piece(start))
    # By start, its first field: readers of rows rely on this order.
    return Tensor(entry.dtype, entry.shape, tuple(sorted(pieces)), True)


def _check_size(entry: Entry, where: str) -> None:
    # Each string takes at least the one byte of its length.
    if entry.dtype.name == "string" and entry.size < math.prod(entry.shape):
        raise BadInput(
            f"{where} holds {entry.size} bytes, too few for {math.prod(entry.shape)} strings"
        )
    if entry.dtype.array is None:
        return
    expected = math.prod(entry.shape) * entry.dtype.array.itemsize
    if entry.size != expected:
        raise BadInput(
            f"{where} is {entry.dtype.name} {list(entry.shape)}, {expected} bytes, "
            f"but its entry says {entry.size}"
        )
