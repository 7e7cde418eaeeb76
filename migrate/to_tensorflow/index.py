"""The index of a tensor bundle, as TensorFlow's BundleWriter and MergeBundles write it.

`migrate.checkpoint.index` reads it and has the layout of its entries. The same tensors at the same
places give the same bytes as TensorFlow's own.
Source: tensorflow/core/util/tensor_bundle/tensor_bundle.cc
"""

from __future__ import annotations

from typing import BinaryIO, Dict, Iterable, Sequence

from migrate.checkpoint.pieces import Piece, Tensor
from semisync.encoding.dtypes import DTYPES, DType
from semisync.encoding.messages import fixed32_field, message, present_varint, varint_field
from semisync.encoding.ordered_code import slice_key
from semisync.encoding.sstable_writing import TableWriter

_NUMBERS = {dtype.name: number for number, dtype in DTYPES.items()}
_VERSION = 1  # kTensorBundleVersion


def write_index(file: BinaryIO, shards: int, tensors: Dict[str, Tensor]) -> None:
    """Writes the index of `tensors`, by name, whose pieces stand in `shards` data files."""
    entries = {b"": varint_field(1, shards) + message(3, varint_field(1, _VERSION))}
    for name, tensor in tensors.items():
        key = name.encode()
        if not tensor.partitioned:
            (piece,) = tensor.pieces
            entries[key] = _stored(tensor.dtype, piece)
            continue
        in_files = sorted(tensor.pieces, key=lambda piece: (piece.shard, piece.offset))
        slices = b"".join(message(7, _slice(piece)) for piece in in_files)
        shard = varint_field(3, in_files[0].shard)  # which MergeBundles leaves there
        entries[key] = _head(tensor.dtype, tensor.shape) + shard + slices
        for piece in tensor.pieces:
            entries[slice_key(key, list(zip(piece.start, piece.shape)))] = _stored(
                tensor.dtype, piece
            )
    table = TableWriter(file)
    for key in sorted(entries):
        table.add(key, entries[key])
    table.finish()


def _stored(dtype: DType, piece: Piece) -> bytes:
    return (
        _head(dtype, piece.shape)
        + varint_field(3, piece.shard)
        + varint_field(4, piece.offset)
        + varint_field(5, piece.size)
        + fixed32_field(6, piece.crc32c)
    )


def _head(dtype: DType, shape: Sequence[int]) -> bytes:
    return varint_field(1, _NUMBERS[dtype.name]) + message(2, _shape(shape))


def _shape(shape: Iterable[int]) -> bytes:
    return b"".join(message(2, varint_field(1, size)) for size in shape)


def _slice(piece: Piece) -> bytes:
    extents = zip(piece.start, piece.shape)
    return b"".join(
        message(1, varint_field(1, start) + present_varint(2, length)) for start, length in extents
    )
