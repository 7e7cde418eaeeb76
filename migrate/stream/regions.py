"""The places of each tensor's rows in the files of the target.

1. A `Region` is a run of rows of one tensor that lie together in one file, CHUNK_BYTES at most
   (at least one row). Its place is known before the first byte is written, so that any process
   can write any region, in any order, twice if need be.
2. The bytes between the regions (headers, padding) are a `Frame`; the target knows its bytes.
3. A `Part` is a list of regions, PART_BYTES in all: the unit that one worker writes, syncs and
   reports, and that an interrupted conversion need not write again. For an object store it is a
   whole file of UPLOAD_BYTES, which a put request takes at once.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from migrate.checkpoint.tensor_info import refuse_wide_rows
from migrate.stream.item import Item

CHUNK_BYTES = 16 << 20
PART_BYTES = 64 << 20
FILE_BYTES = 4 << 30
UPLOAD_BYTES = 65 << 20  # four chunks and their frames


class Region(NamedTuple):
    """Rows first..first+rows of the item number `item`, from byte `offset` of `file` on."""

    item: int
    first: int
    rows: int
    file: str
    offset: int


class Frame(NamedTuple):
    """Bytes of `file` that hold no tensor's values."""

    file: str
    offset: int
    data: bytes


class Layout(NamedTuple):
    """The files of a target.

    Attributes:
        files: name -> size in bytes.
        regions: in the order of the files, and within an item in the order of its rows.
        room: bytes after which a new file starts.
    """

    files: Dict[str, int]
    frames: List[Frame]
    regions: List[Region]
    room: int


Part = List[Region]


def cuts(item: Item, source_row_bytes: int) -> Iterator[Tuple[int, int]]:
    """(first row, rows) of each region of `item`; an empty tensor has none.

    Raises:
        BadInput: a row is too large to be held.
    """
    largest = max(item.row_bytes, source_row_bytes, 1)
    refuse_wide_rows(largest, f"{item.source!r}, {list(item.shape)},")
    step = max(CHUNK_BYTES // largest, 1)
    if item.nbytes:
        for first in range(0, item.rows, step):
            yield first, min(step, item.rows - first)


def parts(regions: Sequence[Region], items: Sequence[Item]) -> List[Part]:
    """Groups `regions`, in their order, into parts of PART_BYTES."""
    grouped: List[Part] = []
    room = 0
    for region in regions:
        size = region.rows * items[region.item].row_bytes
        if not grouped or size > room:
            grouped.append([])
            room = PART_BYTES
        grouped[-1].append(region)
        room -= size
    return grouped
