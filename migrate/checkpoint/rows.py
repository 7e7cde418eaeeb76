"""The rows of a tensor in the order of the ids, put together from its stored pieces.

1. A piece is a box: some rows of some columns. If rows were dealt out to P partitions in turn
   (strategy "mod"), row r of partition p is row r * P + p; otherwise the rows of a partition follow
   those of the partition before it.
2. Every piece is read from front to back by its own stream, in whichever order the rows are asked.
3. Memory: the caller's array. Rows that were dealt out pass through a buffer of the same size, one
   partition after the other, and are interleaved while they are in the CPU's cache; their positions
   in the buffer, 8 bytes per row, are kept.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import numpy

from migrate.checkpoint.partitions import dealt_to, rows_before
from migrate.checkpoint.pieces import Piece, Stream
from migrate.checkpoint.shards import PieceStream

Span = Tuple[int, int, int, int]  # piece, first byte, bytes, crc32c


class RowReader:
    """Reads rows from `first` on, as many as it is asked for.

    Args:
        pieces: sorted by their starts, each with at least one dimension.
        streams: one per piece, at the first value that is wanted (`skipped`).
        blocks: (first row, rows) of each partition if rows were dealt out, else empty.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        streams: Sequence[Stream],
        first: int,
        blocks: Sequence[Tuple[int, int]] = (),
    ) -> None:
        self._streams = streams
        self._pieces = pieces
        self._next = first
        self._begun = 0  # pieces before this one were read to their ends
        self._parts = len(blocks)
        self._part = _numbers(pieces, blocks)
        whole = all(not any(piece.start[1:]) for piece in pieces)
        # One piece per partition, with all columns: a round takes one row of each.
        self._in_turn = bool(blocks) and whole and len(pieces) == len(blocks)
        self._buffer: Optional[numpy.ndarray] = None  # [parts, rounds, ...]
        self._turns = numpy.empty(0, numpy.int64)  # row of the buffer, of each row in turn

    def fill(self, out: numpy.ndarray) -> None:
        """Reads the next rows into `out`, [rows, ...]: the tensor's sizes but for the first."""
        first, last = self._next, self._next + len(out)
        self._next = last
        if self._parts:
            self._deal(first, out)
            return
        # Pieces are sorted by start; passing over read ones keeps a tensor of many parts linear.
        while self._begun < len(self._pieces) and _end(self._pieces[self._begun]) <= first:
            self._begun += 1
        for index in range(self._begun, len(self._pieces)):
            piece = self._pieces[index]
            if piece.start[0] >= last:
                break
            begin, end = max(piece.start[0], first), min(_end(piece), last)
            if begin < end:
                self._streams[index].fill(out[window(piece, slice(begin - first, end - first))])

    def spans(self) -> List[Span]:
        """The bytes read of each piece, where its stream keeps a checksum."""
        spans = [
            (index, *stream.span())
            for index, stream in enumerate(self._streams)
            if isinstance(stream, PieceStream)
        ]
        # A piece of which nothing was read has no crc to check.
        return [span for span in spans if span[2]]

    def _deal(self, first: int, out: numpy.ndarray) -> None:
        # Rows up to the next one of partition 0, from where whole rounds follow.
        head = min(-first % self._parts, len(out)) if self._in_turn else len(out)
        rounds = (len(out) - head) // self._parts
        self._deal_rows(first, out[:head])
        end = head + rounds * self._parts
        if rounds:
            if self._buffer is None or self._buffer.shape[1] < rounds:
                self._buffer = numpy.empty((self._parts, rounds, *out.shape[1:]), out.dtype)
                places = numpy.arange(self._parts * rounds).reshape(self._parts, rounds)
                self._turns = places.T.reshape(-1)
            for part, stream in zip(self._part, self._streams):
                stream.fill(self._buffer[part, :rounds])
            # Rows copied whole: assigning the transposed buffer took up to seven times as long.
            # The mode is the one in which `take` writes into `out` itself.
            one_by_one = self._buffer.reshape(len(self._turns), *out.shape[1:])
            turns = self._turns[: rounds * self._parts]
            one_by_one.take(turns, axis=0, out=out[head:end], mode="clip")
        self._deal_rows(first + end, out[end:])

    def _deal_rows(self, first: int, out: numpy.ndarray) -> None:
        if len(out):
            for piece, part, stream in zip(self._pieces, self._part, self._streams):
                rows = dealt_to(part, self._parts, first, len(out))
                stream.fill(out[window(piece, rows)])


def skipped(piece: Piece, first: int, blocks: Sequence[Tuple[int, int]] = ()) -> int:
    """Rows of `piece` before row `first` of the tensor; all arguments as for RowReader."""
    if blocks:
        part = blocks.index((piece.start[0], piece.shape[0]))
        return rows_before(part, len(blocks), first)
    return min(max(first - piece.start[0], 0), piece.shape[0])


def window(piece: Piece, rows: slice) -> Tuple[slice, ...]:
    """The index of `rows` and of the columns of `piece` in an array of whole rows."""
    rest = zip(piece.start[1:], piece.shape[1:])
    return (rows,) + tuple(slice(start, start + size) for start, size in rest)


def _end(piece: Piece) -> int:
    return piece.start[0] + piece.shape[0]


def _numbers(pieces: Sequence[Piece], blocks: Sequence[Tuple[int, int]]) -> List[int]:
    """The partition of each piece."""
    numbers = {block: number for number, block in enumerate(blocks)}
    return [numbers[piece.start[0], piece.shape[0]] for piece in pieces] if blocks else []
