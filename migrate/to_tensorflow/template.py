"""The structure of the checkpoint to write: names, types, shapes, and how each tensor is cut.

It comes from the original's index, or without an original from the manifest of the conversion.
Pieces keep the number of their data file; their offsets in it follow from the sizes of what is
written (`lay_out`).
"""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import row_blocks
from migrate.checkpoint.pieces import Piece, Tensor
from migrate.checkpoint.tensor_info import Slice, TensorInfo
from migrate.manifest.manifest import Manifest
from migrate.manifest.transforms import COPY
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME

Stored = Tuple[str, int]  # name as stored, and number of the piece among its tensor's


class Template(NamedTuple):
    """The layout of a checkpoint.

    Attributes:
        shards: number of data files.
        tensors: by the name as stored.
        wholes: name of a part as stored -> name of the whole tensor.
    """

    shards: int
    tensors: Dict[str, Tensor]
    wholes: Dict[str, str]

    def groups(self) -> Dict[str, List[Stored]]:
        """The pieces of each whole tensor."""
        groups: Dict[str, List[Stored]] = {}
        for name, tensor in self.tensors.items():
            of = groups.setdefault(self.wholes.get(name, name), [])
            of += [(name, number) for number in range(len(tensor.pieces))]
        return groups


def of_checkpoint(original: Checkpoint) -> Template:
    """The template of a checkpoint, of the format V2 or V1."""
    return Template(original.num_shards, original.stored.as_stored, original.parts)


def of_manifest(manifest: Manifest, place: str) -> Template:
    """The template, in one data file, of the checkpoint that a conversion read, without the tensors
    that were cast: the manifest does not record their first type.

    Args:
        place: names its directory.

    Raises:
        BadInput: a manifest of an earlier version does not say how rows were dealt out.
    """
    tensors: Dict[str, Tensor] = {}
    wholes: Dict[str, str] = {}
    for written in manifest.variables():
        shape, source = tuple(written.shape), written.source
        if written.transform != COPY.name:
            continue
        if written.partition_strategy and not written.slices:
            raise BadInput(
                f"the manifest of {place} does not say how {source!r} was stored; give the "
                "checkpoint that was converted as the original (--original)"
            )
        dtype = BY_NAME[written.dtype]
        for name, slices in (written.slices or {source: []}).items():
            pieces = [
                # `lay_out` sets offset and size, `write` the crc32c.
                Piece(tuple(start), tuple(size), 0, 0, 0, 0)
                for start, size in slices or [[[0] * len(shape), list(shape)]]
            ]
            tensors[name] = Tensor(dtype, shape, tuple(pieces), bool(slices))
            if name != source:
                wholes[name] = source
    return Template(1, tensors, wholes)


def lay_out(template: Template) -> Template:
    """The template with every piece at its offset, one after the other in each data file.

    Pieces of numbers get the size of their shape, others keep theirs.
    """
    ends = [0] * template.shards
    tensors: Dict[str, Tensor] = {}
    for name, tensor in template.tensors.items():
        pieces = []
        for piece in tensor.pieces:
            size = piece.size
            if tensor.dtype.array is not None:
                size = math.prod(piece.shape) * tensor.dtype.array.itemsize
            pieces.append(piece._replace(offset=ends[piece.shard], size=size))
            ends[piece.shard] += size
        tensors[name] = tensor._replace(pieces=tuple(pieces))
    return template._replace(tensors=tensors)


def resized(template: Template, shapes: Mapping[str, Tuple[int, ...]]) -> Template:
    """The template with other shapes of undivided tensors."""
    tensors = dict(template.tensors)
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        # Any other is left as it is: `check` refuses its shape.
        if tensor is not None and tensor.shape[1:] == shape[1:] and not tensor.partitioned:
            (piece,) = tensor.pieces
            piece = piece._replace(shape=shape)
            tensors[name] = tensor._replace(shape=shape, pieces=(piece,))
    return template._replace(tensors=tensors)


def turns(name: str, shape: Tuple[int, ...], pieces: Sequence[Piece]) -> List[Tuple[int, int]]:
    """(first row, rows) of each partition whose rows take turns; raises BadInput if they cannot."""
    slices = tuple(Slice(piece.start, piece.shape) for piece in pieces)
    return row_blocks(TensorInfo(shape, "", slices, "", 0), name)
