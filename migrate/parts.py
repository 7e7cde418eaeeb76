"""Carrying out parts of a conversion: read, transform, hash, write, sync, report.

1. The rows of a region are read while those of the region before are hashed and written.
2. A part is reported (`Record`) when its files are synced to the disk, while the next is worked on.
3. A record has the SHA-256 of each run of rows, for the manifest, and the crc32c of the bytes read
   of each stored piece: the pieces are checked when all their ranges are in (`check_source`), for
   no reader of a part of a piece can.

Memory: three regions at a time, whatever the size of a table.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import numpy

from migrate.ahead import one_ahead
from migrate.items import Item
from migrate.manifest import Piece
from migrate.regions import Part, Region
from migrate.sources.bundle import Checkpoint, Span
from migrate.sources.dtypes import BY_NAME
from migrate.transforms import Loss, apply


@dataclass
class Run:
    """Consecutive rows of one item that a part wrote; spans: what was read of which pieces."""

    item: int
    piece: Piece
    spans: List[Span] = field(default_factory=list)
    loss: Loss = field(default_factory=Loss)


class Record(NamedTuple):
    """What was done: the number of the part, and its runs."""

    part: int
    runs: List[Run]


def write_parts(
    checkpoint: Checkpoint,
    items: Sequence[Item],
    parts: Sequence[Tuple[int, Part]],
    directory: str,
) -> Iterator[Record]:
    """Writes `parts` (number, regions) into the files of `directory`; yields each when synced."""
    with _Files(directory) as files:
        for record, names in one_ahead(_written(checkpoint, items, parts, files)):
            files.sync(names)
            yield record


def _written(
    checkpoint: Checkpoint,
    items: Sequence[Item],
    parts: Sequence[Tuple[int, Part]],
    files: _Files,
) -> Iterator[Tuple[Record, Set[str]]]:
    for number, part in parts:
        runs = [_write_run(checkpoint, items, run, files) for run in _runs(part)]
        yield Record(number, runs), {region.file for region in part}


def _runs(part: Part) -> Iterator[List[Region]]:
    """The regions of one item after the other."""
    run: List[Region] = []
    for region in part:
        if run and run[-1].item != region.item:
            yield run
            run = []
        run.append(region)
    if run:
        yield run


def _write_run(
    checkpoint: Checkpoint, items: Sequence[Item], regions: List[Region], files: _Files
) -> Run:
    item = items[regions[0].item]
    first, rows = regions[0].first, sum(region.rows for region in regions)
    run = Run(regions[0].item, Piece(first, rows, ""))
    digest = hashlib.sha256()
    chunks = _values(checkpoint, item, slice(first, first + rows), regions[0].rows, run)
    if len(regions) > 1:
        chunks = one_ahead(chunks)
    for values, region in zip(chunks, regions):  # chunks first, so that zip runs it to its end
        data = values.reshape(-1).view(numpy.uint8).data
        digest.update(data)
        files.write(region, data)
    run.piece.sha256 = digest.hexdigest()
    return run


def _values(
    checkpoint: Checkpoint, item: Item, rows: slice, rows_per_region: int, run: Run
) -> Iterator[numpy.ndarray]:
    """The item's rows as the target has them, region by region."""
    if item.value is not None:
        yield numpy.full(1, item.value, BY_NAME[item.dtype].array)
        return
    chunks = checkpoint.chunks(item.source, rows_per_region, item.interleave, rows, run.spans)
    for _, values in chunks:
        yield apply(item.transform, values, item.dtype, run.loss)


def check_source(checkpoint: Checkpoint, items: Sequence[Item], runs: Sequence[Run]) -> None:
    """That every stored piece of every tensor had the crc32c that the index says; else BadInput.

    runs: those of all parts.
    """
    spans: Dict[int, List[Span]] = {}
    for run in runs:
        if items[run.item].value is None:
            spans.setdefault(run.item, []).extend(run.spans)
    for index, of_item in spans.items():
        checkpoint.check_spans(items[index].source, of_item)


class _Files:
    """The files of the target, opened when first written to."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._open: Dict[str, int] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def write(self, region: Region, data: memoryview) -> None:
        """Writes the bytes of `region`."""
        if region.file not in self._open:
            path = os.path.join(self._directory, region.file)
            self._open[region.file] = os.open(path, os.O_WRONLY)
        done = 0
        while done < len(data):
            done += os.pwrite(self._open[region.file], data[done:], region.offset + done)

    def sync(self, names: Set[str]) -> None:
        """Waits until what was written to these files is on the disk."""
        for name in names:
            os.fdatasync(self._open[name])
