"""The data files of a tensor bundle, `PREFIX.data-00000-of-0000N`, read in place.

`Shards` reads bytes at a position. `PieceStream` reads one stored tensor from front to back and
checks its crc32c after the last byte: verification needs no second pass and no more memory than the
caller's buffer.
"""

from __future__ import annotations

from typing import List, Tuple

import numpy

from migrate.checkpoint.opened import Opened
from migrate.checkpoint.pieces import Piece
from semisync.common.errors import BadInput
from semisync.encoding import crc32c
from semisync.storage.files import open_file

_BUFFER = 256 << 10  # bytes


def _path(prefix: str, shard: int, count: int) -> str:
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


class Shards:
    """Positional reads from the data files of the checkpoint `prefix`.

    Args:
        big_endian: byte order of the numbers in the files.
        checksums: whether streams check their crc32c.
    """

    def __init__(
        self, prefix: str, count: int, big_endian: bool = False, checksums: bool = True
    ) -> None:
        self.big_endian = big_endian
        self.checksums = checksums
        self.prefix = prefix
        self.count = count
        self._open = Opened(lambda shard: open_file(_path(prefix, shard, count)))

    @property
    def paths(self) -> List[str]:
        """Paths of the data files."""
        return [self.path(shard) for shard in range(self.count)]

    def path(self, shard: int) -> str:
        """Path of the data file `shard`."""
        return _path(self.prefix, shard, self.count)

    def read_into(self, shard: int, offset: int, buffer: numpy.ndarray, where: str) -> None:
        """Fills `buffer` (uint8, one-dimensional, contiguous); raises BadInput if the file ends."""
        self._open[shard].read_into(offset, buffer, where)

    def check_extent(self, piece: Piece, where: str) -> None:
        """Raises BadInput if the data file is too short for `piece`, before memory is allocated."""
        self._open[piece.shard].check_extent(piece.offset, piece.size, where)

    def check_crc(self, crc: int, piece: Piece, where: str) -> None:
        """Raises BadInput if the `crc` of the bytes that were read is not the one in the index."""
        actual, expected = crc32c.masked(crc), piece.crc32c
        if self.checksums and actual != expected:
            raise BadInput(
                f"{where} has crc32c {actual:08x}, expected {expected:08x}; "
                f"{self.path(piece.shard)} is corrupt"
            )

    def step(self, shard: int) -> int:
        """Bytes to ask for at a time."""
        return self._open[shard].step

    def close(self) -> None:
        """Closes the data files; a later read opens them again."""
        self._open.close()


class PieceStream:
    """Reads one piece from front to back; the read that reaches its end checks the crc32c.

    Args:
        skip: bytes to leave out at the front; a piece that was not read from its first byte
            cannot be checked here, but `span` has the known part.
        swap: bytes of the numbers to reverse; 1 if the files are little-endian.
    """

    def __init__(
        self, shards: Shards, piece: Piece, where: str, skip: int = 0, swap: int = 1
    ) -> None:
        shards.check_extent(piece, where)
        self._shards = shards
        self._piece = piece
        self._where = where
        self._skip = skip
        self._position = skip
        self._swap = swap
        self._crc = 0

    def fill(self, target: numpy.ndarray) -> None:
        """Reads the next values into `target`, in row-major order.

        A target that is not contiguous is filled through a buffer that stays in the CPU's cache.
        """
        if not target.size:
            return
        if target.flags.c_contiguous:
            self.read_into(target.reshape(-1).view(numpy.uint8))
            return
        rows = max(_BUFFER // (target.nbytes // len(target)), 1)
        buffer = numpy.empty((min(rows, len(target)),) + target.shape[1:], target.dtype)
        for first in range(0, len(target), rows):
            part = target[first : first + rows]
            values = buffer[: len(part)]
            self.read_into(values.reshape(-1).view(numpy.uint8))
            part[...] = values

    def read_into(self, buffer: numpy.ndarray) -> None:
        """Fills `buffer` (uint8, one-dimensional) with the next bytes: whole numbers."""
        piece = self._piece
        size = self._shards.step(piece.shard)
        for start in range(0, buffer.size, size):
            # In steps: the checksum finds each in the CPU's cache; from a server each is one
            # request.
            step = buffer[start : start + size]
            offset = piece.offset + self._position
            self._shards.read_into(piece.shard, offset, step, self._where)
            if self._shards.checksums:
                self._crc = crc32c.extend(self._crc, step)
            self._position += step.size
        if not self._skip and self._position == piece.size:
            self._shards.check_crc(self._crc, piece, self._where)
        # After the crc, which covers the bytes as they are stored.
        if self._swap > 1:
            buffer.view(f"u{self._swap}").byteswap(inplace=True)

    def span(self) -> Tuple[int, int, int]:
        """(first byte, bytes, crc32c) of the bytes read."""
        return self._skip, self._position - self._skip, self._crc
