"""The hashes of ids and their rows, added up by classes of ids: equal where two sides agree."""

from __future__ import annotations

import secrets
from typing import Iterator, Optional

import numpy

from migrate.verification.ids.sides import Chosen, Column

CLASSES = 1 << 16
_TOGETHER = 1 << 20  # rows that are compared one by one in one go
_MULTIPLIER = 0x9E3779B97F4A7C15  # spreads ids over the classes


class ClassSums:
    """The hashes of a column's rows, added up by class of their ids.

    Attributes:
        sums: uint64 [CLASSES], zero where additions and subtractions cancel.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self.sums = numpy.zeros(CLASSES, numpy.uint64)
        self._seed = numpy.uint64(secrets.randbits(64))
        self._weights: Optional[numpy.ndarray] = None

    def add(self, ids: numpy.ndarray, rows: numpy.ndarray, sign: int) -> None:
        """Adds the hashes of rows [n, bytes], or with sign -1 subtracts them."""
        if self.column.fill is not None:
            # An id that lacks the state is as one with the initial value: neither counts.
            kept = (rows != self.column.fill).any(axis=1)
            ids, rows = ids[kept], rows[kept]
        words: numpy.ndarray = rows.view(numpy.uint32 if rows.shape[1] % 4 == 0 else numpy.uint8)
        if self._weights is None:
            # Odd: no bit of a word is lost in a product modulo 2^64.
            drawn = [secrets.randbits(64) | 1 for _ in range(words.shape[1])]
            self._weights = numpy.array(drawn, numpy.uint64)
        with numpy.errstate(over="ignore"):
            hashes = numpy.einsum("ij,j->i", words, self._weights)  # twice as fast as @
            hashes = _mixed(hashes + _mixed(ids.view(numpy.uint64) ^ self._seed))
            (numpy.add if sign > 0 else numpy.subtract).at(self.sums, classes_of(ids), hashes)


def _mixed(values: numpy.ndarray) -> numpy.ndarray:
    values = (values ^ (values >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    mixed: numpy.ndarray = values ^ (values >> numpy.uint64(31))
    return mixed


def classes_of(ids: numpy.ndarray) -> numpy.ndarray:
    """The class [n] uint16 of each of `ids` [n] int64."""
    with numpy.errstate(over="ignore"):
        spread = ids.view(numpy.uint64) * numpy.uint64(_MULTIPLIER)
    return (spread >> numpy.uint64(48)).astype(numpy.uint16)


def in_groups(wrong: numpy.ndarray, count: numpy.ndarray) -> Iterator[Chosen]:
    """Yields functions that choose the ids of the `wrong` classes, in groups that fit memory.

    Args:
        wrong: a mask over the classes.
        count: the target's ids in each, int64.
    """
    (classes,) = numpy.nonzero(wrong)
    group = numpy.zeros(CLASSES, bool)
    rows = 0
    for number in classes.tolist():
        if rows + int(count[number]) > _TOGETHER and rows:
            yield _members(group)
            group, rows = numpy.zeros(CLASSES, bool), 0
        group[number] = True
        rows += int(count[number])
    if group.any():
        yield _members(group)


def _members(group: numpy.ndarray) -> Chosen:
    return lambda ids: group[classes_of(ids)]
