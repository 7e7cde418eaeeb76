"""The data files of the checkpoint: each piece is written from front to back, at its own place.

Pieces of a tensor are filled side by side while its rows pass through once. The crc32c of each is
computed on the way.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

import numpy

from migrate.checkpoint.partitions import dealt_to
from migrate.checkpoint.pieces import Piece
from migrate.checkpoint.rows import window
from semisync.common.errors import BadInput
from semisync.encoding import crc32c
from semisync.storage.files import write_at

_MAX_OPEN = 64  # data files kept open at a time


class DataFiles:
    """The data files NAME.data-00000-of-0000N in `directory`, made empty.

    Args:
        wrote: called with the bytes that were written so far.
    """

    def __init__(self, directory: str, name: str, count: int, wrote: Callable[[int], None]) -> None:
        self._wrote, self._done = wrote, 0
        self.names = [f"{name}.data-{number:05d}-of-{count:05d}" for number in range(count)]
        self._files: Dict[int, int] = {}
        self._directory = directory
        for number in range(count):
            # All of them: one without a piece is an empty file.
            os.close(self._opened(number))

    def __enter__(self) -> DataFiles:
        return self

    def __exit__(self, *_: object) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def write(self, shard: int, offset: int, data: numpy.ndarray) -> None:
        """Writes `data` (uint8, one-dimensional) from byte `offset` on."""
        if shard not in self._files:
            self._files[shard] = self._opened(shard)
            if len(self._files) > _MAX_OPEN:
                os.close(self._files.pop(next(iter(self._files))))
        write_at(self._files[shard], offset, data.data)
        self._done += data.size
        self._wrote(self._done)

    def _opened(self, shard: int) -> int:
        path = os.path.join(self._directory, self.names[shard])
        # Without O_TRUNC: a file that was closed in favour of others is opened again.
        return os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)


class Box:
    """A piece that is being written.

    Attributes:
        crc32c: masked, of the bytes written so far; the caller sets it where TensorFlow's crc
            covers something else.
    """

    def __init__(self, files: DataFiles, piece: Piece) -> None:
        self._files, self.piece = files, piece
        self._position, self._crc = 0, 0
        self.crc32c = crc32c.masked(0)

    def append(self, data: numpy.ndarray) -> None:
        """Writes the next bytes (uint8, one-dimensional, contiguous)."""
        piece = self.piece
        if self._position + data.size > piece.size:
            raise BadInput(f"a piece at {list(piece.start)} gets more than its {piece.size} bytes")
        if data.size:
            self._crc = crc32c.extend(self._crc, data)
            self.crc32c = crc32c.masked(self._crc)
            self._files.write(piece.shard, piece.offset + self._position, data)
        self._position += data.size

    def finished(self, where: str) -> Piece:
        """The piece with its crc32c; raises BadInput if it is not full."""
        if self._position != self.piece.size:
            raise BadInput(
                f"{where}: its slice at {list(self.piece.start)} got {self._position} of "
                f"{self.piece.size} bytes"
            )
        return self.piece._replace(crc32c=self.crc32c)


def spread(
    blocks: Iterable[numpy.ndarray], boxes: Sequence[Box], turns: Sequence[Tuple[int, int]] = ()
) -> None:
    """Puts the rows of a tensor, from front to back, into its boxes.

    Args:
        turns: (first row, rows) of each partition where row i of `blocks` goes to partition i %
            len(turns); empty where they stand as in the tensor.
    """
    numbers = {block: number for number, block in enumerate(turns)}
    first = 0
    for block in blocks:
        for box in boxes:
            piece = box.piece.with_rows
            start, count = piece.start[0], piece.shape[0]
            if turns:
                rows = dealt_to(numbers[start, count], len(turns), first, len(block))
            else:
                # Both may lie beyond the block; a slice ends at its end.
                rows = slice(max(start - first, 0), max(start + count - first, 0))
            values = numpy.ascontiguousarray(block[window(piece, rows)])
            box.append(values.reshape(-1).view(numpy.uint8))
        first += len(block)


def boxes_of(files: DataFiles, pieces: Sequence[Piece]) -> List[Box]:
    """A box for each piece."""
    return [Box(files, piece) for piece in pieces]
