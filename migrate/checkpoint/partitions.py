"""The partitions of a variable along its rows, and which ids each has.

TensorFlow cuts a variable of n rows into P partitions: n // P rows each, and one more in the first
n % P. Ids find their rows by one of two strategies:

    div   an id is the number of a row, counted through all partitions
    mod   partition id % P has the id, in row id // P

A partitioned variable is stored partition after partition, so that under "mod" its rows do not
stand in the order of the ids.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

import numpy

from migrate.checkpoint.tensor_info import TensorInfo, rows_of
from semisync.common.errors import BadInput


def partitions(info: TensorInfo) -> int:
    """Number of parts along the rows."""
    return len({piece.start[0] for piece in info.slices}) or 1


def row_blocks(info: TensorInfo, name: str) -> List[Tuple[int, int]]:
    """(first row, rows) of each partition along the rows.

    Raises:
        BadInput: the partitions are not those that TensorFlow makes: rows // P each, and one
            more in the first rows % P; look-ups by "mod" and "div" rely on it.
    """
    rows = rows_of(info.shape)
    blocks = sorted({(piece.start[0], piece.shape[0]) for piece in info.slices}) or [(0, rows)]
    count = len(blocks)
    sizes = [rows // count + (index < rows % count) for index in range(count)]
    even = [(sum(sizes[:index]), size) for index, size in enumerate(sizes)]
    if blocks != even:
        raise BadInput(
            f"tensor {name!r}: its partitions have {[size for _, size in blocks]} rows, expected "
            f"{sizes}: no partition strategy of TensorFlow reads such a variable"
        )
    return blocks


def dealt_to(part: int, parts: int, first: int = 0, count: Optional[int] = None) -> slice:
    """The ids of partition `part` under "mod" among `count` ids, or all ids, from `first` on."""
    return slice((part - first) % parts, count, parts)


def rows_before(part: int, parts: int, first: int) -> int:
    """How many ids below `first` partition `part` has under "mod"."""
    return -((part - first) // parts)  # the division rounds up


def by_partition(rows: int, parts: int) -> numpy.ndarray:
    """The ids 0 to `rows` - 1 in the order in which `parts` partitions store them under "mod"."""
    return numpy.argsort(numpy.arange(rows) % parts, kind="stable")


def by_id(rows: int, parts: int) -> numpy.ndarray:
    """The positions of the ids 0 to `rows` - 1 among the rows that `by_partition` orders."""
    # The argsort of a permutation is its inverse.
    return numpy.argsort(by_partition(rows, parts))
