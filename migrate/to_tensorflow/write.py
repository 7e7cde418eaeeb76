"""Writing the checkpoint: torch's tensors, those that torch lacks from the original; the index."""

from __future__ import annotations

import os
from typing import (
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

import numpy

from migrate.checkpoint.bundle import Bundle
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.pieces import Piece, Tensor
from migrate.checkpoint.tensor_info import rows_of
from migrate.manifest.transforms import cast
from migrate.to_tensorflow.checking import check, notes
from migrate.to_tensorflow.data_files import Box, DataFiles, boxes_of, spread
from migrate.to_tensorflow.held import BLOCK_BYTES, Held, Side
from migrate.to_tensorflow.placing import placing
from migrate.to_tensorflow.template import Stored, Template, lay_out, resized, turns
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME, DTYPES, DType, widened
from semisync.encoding.ordered_code import slice_key
from semisync.encoding.sstable_writing import TableWriter
from semisync.encoding.wire import fixed32_field, present_varint, varint_field
from semisync.encoding.wire import message_field as message
from semisync.storage.files import open_file, size_of

_NUMBERS = {dtype.name: number for number, dtype in DTYPES.items()}
_VERSION = 1  # kTensorBundleVersion
Progress = Callable[[int, int], None]
_COPIED = 1 << 20  # bytes of the original that are copied at a time


class Returned(NamedTuple):
    """The result of the writing.

    Attributes:
        prefix: of the checkpoint.
        shards: number of data files.
        tensors: how many it has.
        nbytes: of their values.
        copied: those that are the original's, not torch's.
        notes: for the reader.
    """

    prefix: str
    shards: int
    tensors: int
    nbytes: int
    copied: List[str]
    notes: List[str]


def write(
    side: Side,
    template: Template,
    original: Optional[Checkpoint],
    prefix: str,
    overwrite: bool,
    progress: Optional[Progress] = None,
) -> Returned:
    """Writes the checkpoint `prefix` from the tensors of `side`, and the rest from `original`.

    Raises:
        BadInput: torch's tensors do not fit `template`, or something is missing.
        UsageError, SemisyncError: see `placing`.
    """
    shapes = {name: held.shape for name, held in side.held.items() if held.resized}
    laid = lay_out(resized(template, shapes))
    copied = check(side, laid, original)
    total = sum(piece.size for tensor in laid.tensors.values() for piece in tensor.pieces)
    name = os.path.basename(prefix)

    def wrote(done: int) -> None:
        if progress is not None:
            progress(done, total)

    with placing(prefix, total, overwrite) as directory:
        with DataFiles(directory, name, laid.shards, wrote) as files:
            finished = _write_data(side, laid, original, files)
        with open(os.path.join(directory, name + ".index"), "wb") as file:
            write_index(file, laid.shards, _with(laid.tensors, finished))
        if original is not None:
            _copy_graph(original, os.path.join(directory, name + ".meta"))
    told = [*side.notes, *notes(side, laid, copied, original)]
    return Returned(prefix, laid.shards, len(laid.tensors), total, copied, told)


def _write_data(
    side: Side, laid: Template, original: Optional[Checkpoint], files: DataFiles
) -> Dict[Stored, Piece]:
    """Writes every tensor; returns its pieces, with their crc32c."""
    finished: Dict[Stored, Piece] = {}
    for whole, members in sorted(laid.groups().items()):
        boxes = boxes_of(files, [laid.tensors[name].pieces[number] for name, number in members])
        if whole in side.held:
            _write_held(side.held[whole], whole, laid.tensors[members[0][0]], boxes)
        elif original is not None:
            _copy(original, whole, members, boxes)
        for member, box in zip(members, boxes):
            finished[member] = box.finished(f"{side.place}: {whole!r}")
    return finished


def _copy_graph(original: Checkpoint, path: str) -> None:
    """Copies the MetaGraph beside the original, if there is one."""
    meta = original.prefix + ".meta"
    size = size_of(meta)
    if size is not None:
        with open_file(meta) as source, open(path, "wb") as file:
            file.write(source.read(0, size, meta))


def _with(tensors: Mapping[str, Tensor], finished: Mapping[Stored, Piece]) -> Dict[str, Tensor]:
    return {
        name: tensor._replace(
            pieces=tuple(finished[name, number] for number in range(len(tensor.pieces)))
        )
        for name, tensor in tensors.items()
    }


def _write_held(held: Held, name: str, tensor: Tensor, boxes: Sequence[Box]) -> None:
    blocks = held.blocks()
    if held.dtype != tensor.dtype.name:
        blocks = (_cast(block, tensor.dtype, name) for block in blocks)
    pieces = [box.piece for box in boxes]
    spread(blocks, boxes, turns(name, tensor.shape, pieces) if held.by_id else ())


def _cast(block: numpy.ndarray, dtype: DType, name: str) -> numpy.ndarray:
    """`block` in the stored type; raises BadInput if a value has no place in it."""
    values = cast(block, dtype.name)
    if dtype.is_floating:
        lost = numpy.isfinite(widened(block)) & ~numpy.isfinite(widened(values))
    else:
        lost = values != block
    if lost.any():
        raise BadInput(f"{name!r} has values that {dtype.name} cannot hold")
    return values


def _copy(
    original: Checkpoint, whole: str, members: Sequence[Stored], boxes: Sequence[Box]
) -> None:
    """Copies pieces of the original, byte by byte where its files are like the written ones."""
    store, dtype = original.store, original[whole].dtype
    if not isinstance(store, Bundle) or store.big_endian:
        if BY_NAME[dtype].array is None:
            raise BadInput(
                f"{original.prefix}: {whole!r} is of type {dtype}, which is copied from "
                "little-endian checkpoints of the format V2 alone; let TensorFlow restore and save "
                "it once"
            )
        row = max(original[whole].nbytes // max(rows_of(original[whole].shape), 1), 1)
        # V1 or big-endian: read as values, and written as this format has them.
        blocks = (block for _, block in original.chunks(whole, max(BLOCK_BYTES // row, 1)))
        spread(blocks, boxes)
        return
    if dtype == "string":
        original.verify(whole)  # their crc32c covers other bytes than the stored ones
    for (name, number), box in zip(members, boxes):
        source = original.stored.as_stored[name].pieces[number]
        where = f"{original.prefix}: tensor {name!r}"
        store.check_extent(source, where)
        for data in _bytes(store, source, where):
            box.append(data)
        if BY_NAME[dtype].array is None:
            box.crc32c = source.crc32c
        elif box.crc32c != source.crc32c:
            raise BadInput(
                f"{where} has crc32c {box.crc32c:08x}, expected {source.crc32c:08x}; "
                f"{store.path(source.shard)} is corrupt"
            )


def _bytes(store: Bundle, piece: Piece, where: str) -> Iterator[numpy.ndarray]:
    for start in range(0, piece.size, _COPIED):
        data = numpy.empty(min(_COPIED, piece.size - start), numpy.uint8)
        store.read_into(piece.shard, piece.offset + start, data, where)
        yield data


def write_index(file: BinaryIO, shards: int, tensors: Dict[str, Tensor]) -> None:
    """Writes the index of `tensors`, by name, whose pieces stand in `shards` data files.

    As BundleWriter and MergeBundles do: the same tensors at the same places give the same bytes as
    TensorFlow's own. `migrate.checkpoint.index` has the layout of the entries.
    Source: tensorflow/core/util/tensor_bundle/tensor_bundle.cc
    """
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
    # A table's keys ascend, as LevelDB demands; "", the header, is the first.
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
    # The length is written even if it is 0: without the field it is the whole dimension.
    extents = zip(piece.start, piece.shape)
    return b"".join(
        message(1, varint_field(1, start) + present_varint(2, length)) for start, length in extents
    )
