"""String tensors of a tensor bundle, read in a stream.

    varint length of each element, the masked crc32c of the lengths, the bytes of all elements

The crc of the lengths covers each as four bytes (eight where it needs them). The crc of the entry
covers those numbers, the stored four bytes of their crc, and the elements. Numbers have the byte
order of the machine that wrote them.

1. A first pass over the lengths checks their crc and finds where the elements begin.
2. Then two cursors advance together, one over the lengths and one over the elements; neither holds
   more than its buffer and the elements asked for.
Source: WriteStringTensor in tensorflow/core/util/tensor_bundle/tensor_bundle.cc
"""

from __future__ import annotations

import math
from typing import Iterator, Optional

import numpy

from migrate.checkpoint.pieces import Piece
from migrate.checkpoint.shards import Shards
from semisync.common.errors import BadInput
from semisync.encoding import crc32c
from semisync.encoding.wire import varints

_BUFFER = 64 << 10  # bytes of varints decoded at a time
_AT_ONCE = 1 << 30  # bytes of the strings of one call


class StringStream:
    """The elements of one stored string tensor from front to back.

    Args:
        skip: elements to leave out at the front; their bytes are not read, so that the
            elements' own crc cannot be checked.

    Raises:
        BadInput: lengths, sizes or crcs do not agree.
    """

    def __init__(self, shards: Shards, piece: Piece, where: str, skip: int = 0) -> None:
        shards.check_extent(piece, where)
        self._shards = shards
        self._piece = piece
        self._where = where
        self._left = math.prod(piece.shape)
        self._lengths = _Lengths(shards, piece, where, self._left)
        crc = self._first_pass()
        # The entry's crc covers all elements: with some left out it cannot be compared.
        self._crc: Optional[int] = crc if shards.checksums and not skip else None
        self._lengths = _Lengths(shards, piece, where, self._left)
        while skip > 0:
            # By parts: the lengths of all skipped elements together could take gigabytes.
            count = min(skip, _BUFFER)
            self._position += int(self._lengths.take(count).sum())
            self._left -= count
            skip -= count

    def fill(self, target: numpy.ndarray) -> None:
        """Puts the next elements, as bytes, into `target` (object), in row-major order."""
        lengths = self._lengths.take(target.size)
        size = int(lengths.sum())
        if size > _AT_ONCE:
            raise BadInput(
                f"{self._where}: {target.size} strings have {size:,} bytes; at most {_AT_ONCE:,} "
                "are read at once"
            )
        self._left -= target.size
        data = self._read(size)
        content, elements, start = data.tobytes(), numpy.empty(target.size, dtype=object), 0
        for index, length in enumerate(lengths.tolist()):
            # An object array: numpy's own type of bytes drops zeros at the end of an element.
            elements[index] = content[start : start + length]
            start += length
        target[...] = elements.reshape(target.shape)

    def verify(self) -> None:
        """Reads the rest, and keeps none of it; in place of `fill`."""
        end = self._piece.offset + self._piece.size
        # So that `_read` compares the crc at the end, as after the last element.
        self._left = 0
        while self._position < end:
            self._read(min(end - self._position, self._shards.step(self._piece.shard)))

    def _read(self, size: int) -> numpy.ndarray:
        """The next bytes, uint8; after the last element they are checked."""
        data = numpy.empty(size, numpy.uint8)
        self._shards.read_into(self._piece.shard, self._position, data, self._where)
        self._position += size
        if self._crc is not None:
            self._crc = crc32c.extend(self._crc, data)
            # Both conditions: elements without bytes may follow the last byte.
            if not self._left and self._position == self._piece.offset + self._piece.size:
                self._shards.check_crc(self._crc, self._piece, self._where)
        return data

    def _first_pass(self) -> int:
        """Checks the lengths and finds the first element; returns the crc up to there."""
        import google_crc32c

        order = ">" if self._shards.big_endian else "<"
        crc, total = 0, 0
        for lengths in self._lengths.all():
            total += sum(lengths.tolist())
            # TensorFlow's WriteStringTensor hashes a length as uint32 if it fits, else as uint64.
            if (lengths >> 32).any():
                raw = b"".join(
                    numpy.array(n, f"{order}u{4 if n < 1 << 32 else 8}").tobytes()
                    for n in lengths.tolist()
                )
            else:
                raw = lengths.astype(f"{order}u4").tobytes()
            crc = google_crc32c.extend(crc, raw)
        piece, start = self._piece, self._lengths.position
        end = piece.offset + piece.size
        # Before anything is allocated for the strings; 4 bytes are the crc of the lengths.
        if start + 4 + total != end:
            raise BadInput(
                f"{self._where} holds {piece.size} bytes, but its strings need "
                f"{start + 4 + total - piece.offset}"
            )
        stored = numpy.empty(4, numpy.uint8)
        self._shards.read_into(piece.shard, start, stored, self._where)
        expected = int(stored.view(f"{order}u4")[0])
        if self._shards.checksums and crc32c.masked(crc) != expected:
            raise BadInput(
                f"{self._where}: the crc32c of the string lengths is wrong; it is corrupt"
            )
        self._position = start + 4
        crc = google_crc32c.extend(crc, stored.tobytes())
        if not total:  # no later read of an element will check it
            self._shards.check_crc(crc, piece, self._where)
        return crc


class _Lengths:
    """The varints at the front of a piece, decoded a buffer at a time.

    Attributes:
        position: in the data file, of the first varint not yet decoded.
    """

    def __init__(self, shards: Shards, piece: Piece, where: str, count: int) -> None:
        self._shards = shards
        self._piece = piece
        self._where = where
        self._left = count
        self._decoded = numpy.empty(0, numpy.uint64)
        self.position = piece.offset

    def take(self, count: int) -> numpy.ndarray:
        """The next `count` lengths, uint64 [count]."""
        parts = [self._decoded]
        have = len(self._decoded)
        while have < count:
            parts.append(self._more())
            have += len(parts[-1])
        lengths = numpy.concatenate(parts)
        self._decoded = lengths[count:]
        return lengths[:count]

    def all(self) -> Iterator[numpy.ndarray]:
        """The lengths that are left, in arrays of a convenient size."""
        while self._left:
            yield self._more()

    def _more(self) -> numpy.ndarray:
        end = self._piece.offset + self._piece.size
        raw = numpy.empty(min(_BUFFER, end - self.position), numpy.uint8)
        self._shards.read_into(self._piece.shard, self.position, raw, self._where)
        lengths, used = varints(raw, self._left)
        if not used:
            raise BadInput(
                f"{self._where}: the length of a string is cut short at byte {self.position}; "
                "it is corrupt"
            )
        self.position += used
        self._left -= len(lengths)
        return lengths
