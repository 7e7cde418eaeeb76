"""How a stored tensor is divided: boxes of it, each of them the bytes of one file."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Protocol, Sequence, Tuple

import numpy

from semisync.common.errors import BadInput
from semisync.encoding.dtypes import DType

_MAX_COMPARED = 2_000_000  # pairs of slices, some five seconds

Extent = Tuple[int, Optional[int]]  # start and length; None is the whole dimension


class Piece(NamedTuple):
    """Bytes of one data file and the box of the tensor that they fill, row-major."""

    start: Tuple[int, ...]
    shape: Tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc32c: int

    @property
    def with_rows(self) -> Piece:
        """This piece; that of a scalar as one row."""
        return self if self.shape else self._replace(start=(0,), shape=(1,))


class Tensor(NamedTuple):
    """A stored tensor; `partitioned` distinguishes a single slice from an undivided tensor."""

    dtype: DType
    shape: Tuple[int, ...]
    pieces: Tuple[Piece, ...]
    partitioned: bool


class Stream(Protocol):
    """The values of one piece from front to back."""

    def fill(self, target: numpy.ndarray) -> None:
        """Reads the next values into `target`, any view of an array, in row-major order."""
        ...


class Store(Protocol):
    """The data files of a checkpoint: the interface of each format's reader."""

    @property
    def paths(self) -> List[str]:
        """Paths of the data files."""

    def close(self) -> None:
        """Closes the data files; a later read opens them again."""

    def reopened(self) -> Store:
        """The same data files with handles of their own, for another thread."""

    def check_extent(self, piece: Piece, where: str) -> None:
        """Raises BadInput if the data file is too short for `piece`, before memory is allocated."""

    def check_crc(self, crc: int, piece: Piece, where: str) -> None:
        """Raises BadInput if `crc`, of the bytes that streams read, is not the stored one."""

    def stream(self, piece: Piece, dtype: DType, where: str, skip: int = 0) -> Stream:
        """The values of `piece` from element `skip` on."""


def resolve(
    extents: Sequence[Extent], full: Tuple[int, ...], where: str
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Start and shape of a slice of a tensor of shape `full`, within which it must lie."""
    if len(extents) != len(full):
        raise BadInput(f"{where} has {len(full)} dimensions, but a slice of {len(extents)}")
    start = tuple(first for first, _ in extents)
    shape = tuple(
        size - first if length is None else length for (first, length), size in zip(extents, full)
    )
    for first, length, size in zip(start, shape, full):
        if first < 0 or length < 0 or first + length > size:
            raise BadInput(f"{where}: a slice {list(start)} + {list(shape)} leaves {list(full)}")
    return start, shape


def check_tiling(pieces: Sequence[Piece], full: Tuple[int, ...], where: str) -> None:
    """Slices, sorted by start, must fill the tensor without a gap and without an overlap."""
    filled = sum(math.prod(piece.shape) for piece in pieces)
    # As many elements as the tensor has and, below, no overlap: then there is no gap either.
    if filled != math.prod(full):
        raise BadInput(f"{where}: its slices hold {filled} of {math.prod(full)} elements")
    axis = _most_cut(pieces)
    begun: List[Piece] = []  # pieces that may still reach the next one
    compared = 0
    # A slice of the start, not an index: a scalar's start is empty.
    for piece in sorted(pieces, key=lambda one: one.start[axis : axis + 1]):
        begun = [other for other in begun if _end(other, axis) > piece.start[axis]]
        compared += len(begun)
        if compared > _MAX_COMPARED:
            raise BadInput(
                f"{where}: its {len(pieces)} slices are cut in several directions, too many to "
                "check; TensorFlow's partitioners cut in one"
            )
        if any(_overlap(other, piece) for other in begun):
            raise BadInput(f"{where}: two of its slices overlap at {list(piece.start)}")
        begun.append(piece)


def _most_cut(pieces: Sequence[Piece]) -> int:
    """The dimension with the most starts: along it few pieces lie side by side."""
    starts = zip(*(piece.start for piece in pieces))
    counts = [len(set(of_dimension)) for of_dimension in starts]
    return counts.index(max(counts)) if counts else 0


def _end(piece: Piece, axis: int) -> int:
    return piece.start[axis] + piece.shape[axis]


def _overlap(one: Piece, other: Piece) -> bool:
    return all(
        max(a, b) < min(a + m, b + n)
        for a, m, b, n in zip(one.start, one.shape, other.start, other.shape)
    )
