"""Carrying out parts of a conversion: read, transform, hash, write, sync, report.

1. A part is worked on by one thread, in blocks that stay in the CPU's cache while they are
   read, checked, transformed, hashed and written.
2. A part is reported (`Record`) when its files are synced to the disk, or uploaded (`Place`), while
   others are worked on.
3. A record has the SHA-256 of each run of rows, for the manifest, and the crc32c of the bytes read
   of each stored piece: the pieces are checked when all their ranges are in (`check_source`), for
   no reader of a part of a piece can.

Memory: a thread has a block, or two where rows are dealt out, and some regions where the rows of
a hash table are fetched, whatever the size of a table.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import partitions
from migrate.checkpoint.rows import Span
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.manifest.manifest import Piece
from migrate.manifest.transforms import Loss
from migrate.stream.columns import FOLDER, Columns
from migrate.stream.item import Item
from migrate.stream.regions import CHUNK_BYTES, Part, Region
from migrate.stream.sorting import one_thread_a_sort
from semisync.encoding.dtypes import number_type
from semisync.storage.files import write_at
from semisync.storage.remote import is_remote
from semisync.storage.threads import PerThread, in_threads

BLOCK_BYTES = 1 << 20
_READ_BYTES = 64 << 10  # of a partition at a time, where rows are dealt out from many


@dataclass
class Run:
    """Consecutive rows of one item that a part wrote, and the spans that were read for them."""

    item: int
    piece: Piece
    spans: List[Span] = field(default_factory=list)
    loss: Loss = field(default_factory=Loss)


class Record(NamedTuple):
    """The finished work: the number of the part, and its runs."""

    part: int
    runs: List[Run]


class Place:
    """The folder of the target's files: they are there in their full sizes, and stay.

    Attributes:
        out: where they are read again.
    """

    def __init__(self, folder: str) -> None:
        self.folder = self.out = folder

    def has(self, part: Part) -> bool:
        """Whether a part is still there that was reported."""
        return True

    def begin(self, part: Part) -> None:
        """Called before a part is written."""

    def end(self, part: Part) -> Set[str]:
        """Called when a part has been written; returns the files that are to be synced."""
        return {region.file for region in part}

    def finish(self, last: str) -> None:
        """Called when the folder has all files; all but `last` may be seen from now on."""

    def publish(self, last: str) -> None:
        """Makes the file `last` visible, which says that everything is there."""


def write_parts(
    checkpoint: Checkpoint,
    items: Sequence[Item],
    parts: Sequence[Part],
    directory: str,
    place: Place,
    workers: int,
    numbers: Iterable[int],
) -> Iterator[Record]:
    """Writes the `parts` of these numbers into the files of `place` in `workers` threads; yields
    each when it is synced, in any order.

    Args:
        directory: of the conversion, with its sorted hash tables.
    """
    sorting = one_thread_a_sort() if any(item.origins for item in items) else nullcontext()
    with sorting, PerThread(lambda: _Files(checkpoint, directory, place.folder)) as files:
        write = partial(_write_part, files, items, place)
        numbered = ((number, parts[number]) for number in numbers)
        for written in in_threads(write, numbered, workers):
            _sync(place.folder, {name for _, names in written for name in names})
            for record, _ in written:
                yield record


def _sync(directory: str, names: Set[str]) -> None:
    """Waits until all writes to these files are on the disk."""
    for name in names:
        descriptor = os.open(os.path.join(directory, name), os.O_WRONLY)
        try:
            # A new descriptor will do: the kernel syncs the file's pages, whoever wrote them.
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def _write_part(
    files: PerThread[_Files], items: Sequence[Item], place: Place, numbered: Tuple[int, Part]
) -> Tuple[Record, Set[str]]:
    """Writes one part; returns the finished work, and the files that are to be synced."""
    number, part = numbered
    place.begin(part)
    runs = [
        _write_run(files.get(), items, list(run))
        # A part's regions of one item are consecutive rows: one reader goes through them.
        for _, run in groupby(part, key=lambda region: region.item)
    ]
    # The place may upload and remove the files, and the next part has others.
    files.get().close_written()
    return Record(number, runs), place.end(part)


def _write_run(files: _Files, items: Sequence[Item], regions: List[Region]) -> Run:
    item, first = items[regions[0].item], regions[0].first
    run = Run(regions[0].item, Piece(first, sum(region.rows for region in regions), ""))
    digest = hashlib.sha256()
    made = _made(files.columns, item, regions, run)
    for region, start, values in made or _values(files.checkpoint, item, regions, run):
        data = values.reshape(-1).view(numpy.uint8).data
        digest.update(data)
        files.write(region.file, region.offset + start * item.row_bytes, data)
    run.piece.sha256 = digest.hexdigest()
    return run


def _made(
    columns: Columns, item: Item, regions: List[Region], run: Run
) -> Optional[Iterator[Tuple[Region, int, numpy.ndarray]]]:
    """As `_values`, for items that are no tensor of the checkpoint; None for the others."""
    if item.value is not None:
        array, shape = number_type(item.dtype), item.shape[1:]
        return (
            (region, 0, numpy.full((region.rows, *shape), item.value, array)) for region in regions
        )
    if not item.origins:
        return None
    return (
        (region, start, item.transform.apply(rows, item.dtype, run.loss))
        for region in regions
        for start, rows in columns.blocks(item.origins, region.first, region.rows)
    )


def _values(
    checkpoint: Checkpoint, item: Item, regions: List[Region], run: Run
) -> Iterator[Tuple[Region, int, numpy.ndarray]]:
    """The item's rows as the target has them, a block at a time: (region, first row in it, rows).

    An array is good until the next one.
    """
    reader = checkpoint.reader(item.source, item.interleave, run.piece.first)
    rows, buffer = _block(checkpoint[item.source], item, is_remote(checkpoint.prefix))
    for region in regions:
        for start in range(0, region.rows, rows):
            values = buffer[: min(rows, region.rows - start)]
            reader.fill(values)
            yield region, start, item.transform.apply(values, item.dtype, run.loss)
    run.spans = reader.spans()


def _block(info: TensorInfo, item: Item, remote: bool) -> Tuple[int, numpy.ndarray]:
    """Rows that are worked on at a time, and an array for them."""
    dealt = partitions(info) if item.interleave else 1
    # A row of the source: the item's may have another type, and fewer columns.
    row_bytes = max(info.nbytes // item.rows, 1)
    size = min(max(BLOCK_BYTES, dealt * _READ_BYTES), CHUNK_BYTES)
    if remote:
        size = CHUNK_BYTES  # a partition's share of a block is one request
    rows = max(size // row_bytes, 1)
    if rows > dealt:
        rows -= rows % dealt  # whole turns
    shape = info.shape or (1,)
    return rows, numpy.empty((min(rows, shape[0]), *shape[1:]), number_type(info.dtype))


def check_source(checkpoint: Checkpoint, items: Sequence[Item], runs: Sequence[Run]) -> None:
    """Raises BadInput unless every stored piece of every tensor had the index's crc32c.

    Args:
        runs: those of all parts.
    """
    spans: Dict[int, List[Span]] = {}
    for run in runs:
        item = items[run.item]
        if item.value is None and not item.origins:  # those were checked when they were sorted
            spans.setdefault(run.item, []).extend(run.spans)
    for index, of_item in spans.items():
        checkpoint.check_spans(items[index].source, of_item)


class _Files:
    """A thread's open files: the checkpoint, the sorted hash tables, the target's as used."""

    def __init__(self, checkpoint: Checkpoint, directory: str, folder: str) -> None:
        self.checkpoint = checkpoint.reopened()
        self.columns = Columns(os.path.join(directory, FOLDER))
        self._folder = folder
        self._open: Dict[str, int] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self.checkpoint.close()
        self.columns.close()
        self.close_written()

    def close_written(self) -> None:
        """Closes the target's files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def write(self, name: str, offset: int, data: memoryview) -> None:
        """Writes `data` into the file from byte `offset` on."""
        if name not in self._open:
            self._open[name] = os.open(os.path.join(self._folder, name), os.O_WRONLY)
        write_at(self._open[name], offset, data)
