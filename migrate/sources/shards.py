"""The data files of a tensor bundle, `PREFIX.data-00000-of-0000N`, read in place.

`Shards` reads bytes at a position. `PieceStream` reads one stored tensor from front to back and
checks its crc32c when the last byte has passed, so that verification needs no second pass and no
more memory than the caller's buffer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import BinaryIO

import numpy

from migrate.sources import crc32c
from migrate.sources.entries import Piece
from migrate.sources.files import open_regular
from semisync.errors import BadInput

_MAX_OPEN = 64  # data files kept open at a time
_STEP = 1 << 20  # bytes read at a time, so that the crc finds them in the processor's cache


class Shards:
    """Positional reads from the data files of the checkpoint `prefix`."""

    def __init__(self, prefix: str, count: int) -> None:
        self._prefix = prefix
        self._count = count
        self._open: OrderedDict[int, BinaryIO] = OrderedDict()

    def path(self, shard: int) -> str:
        """Path of the data file `shard`."""
        return f"{self._prefix}.data-{shard:05d}-of-{self._count:05d}"

    def read_into(self, shard: int, offset: int, buffer: numpy.ndarray, where: str) -> None:
        """Fills `buffer` (uint8, one-dimensional, contiguous); BadInput where the file ends."""
        descriptor = self._file(shard).fileno()
        filled = 0
        while filled < buffer.size:
            try:
                got = os.preadv(descriptor, [buffer[filled:].data], offset + filled)
            except OSError as error:
                raise BadInput(f"{where}: {self.path(shard)}: {error.strerror}") from error
            if not got:
                raise BadInput(
                    f"{where} needs {buffer.size} bytes at byte {offset} of {self.path(shard)}, "
                    "which ends before them; the file is truncated"
                )
            filled += got

    def check_extent(self, piece: Piece, where: str) -> None:
        """BadInput where the data file is too short for `piece`: said before memory is taken."""
        size = os.fstat(self._file(piece.shard).fileno()).st_size
        if piece.offset + piece.size > size:
            raise BadInput(
                f"{where} needs {piece.size} bytes at byte {piece.offset} of "
                f"{self.path(piece.shard)}, which has {size}; the file is truncated"
            )

    def close(self) -> None:
        """Closes the data files; a later read opens them again."""
        while self._open:
            self._open.popitem()[1].close()

    def _file(self, shard: int) -> BinaryIO:
        file = self._open.pop(shard, None) or open_regular(self.path(shard))
        self._open[shard] = file
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        return file


class PieceStream:
    """Reads one piece from front to back; the read that reaches its end checks the crc32c.

    skip: bytes at the front to leave out; a piece that was not read from its first byte cannot be
    checked.
    """

    def __init__(self, shards: Shards, piece: Piece, where: str, skip: int = 0) -> None:
        shards.check_extent(piece, where)
        self._shards = shards
        self._piece = piece
        self._where = where
        self._position = skip
        self._checked = skip == 0
        self._crc = 0

    def read_into(self, buffer: numpy.ndarray) -> None:
        """Fills `buffer` (uint8, one-dimensional) with the piece's next bytes."""
        piece = self._piece
        for start in range(0, buffer.size, _STEP):
            step = buffer[start : start + _STEP]
            offset = piece.offset + self._position
            self._shards.read_into(piece.shard, offset, step, self._where)
            if self._checked:
                self._crc = crc32c.extend(self._crc, step)
            self._position += step.size
        if self._checked and self._position == piece.size:
            self._check()

    def _check(self) -> None:
        found, expected = crc32c.masked(self._crc), self._piece.crc32c
        if found != expected:
            raise BadInput(
                f"{self._where} has crc32c {found:08x}, expected {expected:08x}; "
                f"{self._shards.path(self._piece.shard)} is corrupt"
            )
