"""The format V2 of a checkpoint, a "tensor bundle": PREFIX.index and PREFIX.data-00000-of-0000N.

The variables of a SavedModel are such a bundle, DIR/variables/variables. Opening reads the index
alone; a data file is opened when a tensor in it is read.
"""

from __future__ import annotations

from typing import Optional

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.index import read_index
from migrate.checkpoint.paths import saved_model_prefix
from migrate.checkpoint.pieces import Piece, Stream
from migrate.checkpoint.scattered import Gathered, gather
from migrate.checkpoint.shards import PieceStream, Shards
from migrate.checkpoint.strings import StringStream
from semisync.encoding.dtypes import DType
from semisync.storage.files import size_of


class Bundle(Shards):
    """The data files of a tensor bundle, with a stream of values for each stored piece."""

    def reopened(self) -> Bundle:
        """The same data files with handles of their own."""
        return Bundle(self.prefix, self.count, self.big_endian, self.checksums)

    def stream(self, piece: Piece, dtype: DType, where: str, skip: int = 0) -> Stream:
        """The values of `piece` from element `skip` on."""
        if dtype.array is None:
            return StringStream(self, piece, where, skip)
        swap = dtype.swap if self.big_endian else 1
        return PieceStream(self, piece, where, skip * dtype.array.itemsize, swap)


def open_bundle(prefix: str, checksums: bool = True) -> Optional[Checkpoint]:
    """The bundle with this prefix; None if there is no index."""
    index = prefix + ".index"
    if size_of(index) is None:
        return None
    shards, big_endian, tensors = read_index(index)
    return Checkpoint(
        prefix, gather(tensors, prefix), Bundle(prefix, shards, big_endian, checksums)
    )


def open_saved_model(directory: str, checksums: bool = True) -> Optional[Checkpoint]:
    """The variables of the SavedModel in `directory`; None unless it is one."""
    prefix = saved_model_prefix(directory)
    return None if prefix is None else open_bundle(prefix, checksums)


def without_tensors(path: str) -> Checkpoint:
    """An empty checkpoint; it stands for a path that has only hash tables in their own files."""
    return Checkpoint(path, Gathered({}, {}, {}), Bundle(path, 0))
