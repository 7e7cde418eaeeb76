"""Forecasts the cost of a conversion from the index alone.

A hash table counts as about its source's size, an upper bound: its rows are not counted before they
are sorted.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple, Optional

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion.items import items
from migrate.conversion.layout import needed_on_disk, regions_of
from migrate.ids import sorted_tables
from migrate.open import open_hash_tables
from migrate.planning.plan import Plan
from migrate.stream.regions import FILE_BYTES, UPLOAD_BYTES, parts
from migrate.targets.work_directory import partial_path
from semisync.storage.remote import is_remote
from semisync.storage.threads import default_count

# Bytes per thread above what Python and torch take: comparing, which takes more than writing; what
# is read ahead from a URL and its requests; a file that is uploaded.
_COMPARING, _READING = 100 << 20, 40 << 20


class Forecast(NamedTuple):
    """The cost of a conversion; sizes are in bytes.

    Attributes:
        read, shards: size to read, and the number of files that it is read from.
        written, files: size to write, and about how many files it makes.
        parts: the units in which it is written.
        share, share_bytes: parts and size of the rank that has most.
        threads, memory: of each rank.
        hashed: the part of `disk` that sorted hash tables take.
        disk: size on disk, of all ranks together.
        place, free: the folder that `disk` is taken in, and the free space there.
    """

    read: int
    shards: int
    written: int
    files: int
    parts: int
    share: int
    share_bytes: int
    threads: int
    memory: int
    hashed: int
    disk: int
    place: str
    free: int


def forecast(
    plan: Plan,
    checkpoint: Checkpoint,
    out: str,
    target: str,
    ranks: int = 1,
    workers: Optional[int] = None,
    scratch: Optional[str] = None,
) -> Forecast:
    """Forecasts `migrate.convert` with these arguments and number of ranks."""
    todo = items(plan, checkpoint, {})
    numbered = parts(list(regions_of(todo, checkpoint)), todo)
    written = sum(item.nbytes for item in todo)
    threads = workers or default_count(checkpoint.prefix, out)
    uploading = UPLOAD_BYTES if is_remote(out) else 0
    sources = open_hash_tables(checkpoint, plan.meta) if plan.hash_tables else {}
    hashed = sorted_tables.room(plan.hash_tables, sources)
    place = os.path.dirname(partial_path(out, scratch))
    # A conversion makes the folders above its output; their disk is that of the nearest one there
    # is.
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    return Forecast(
        read=sum(checkpoint[name].nbytes for name in {item.source for item in todo}),
        shards=len(checkpoint.shard_paths()),
        written=written,
        files=len(numbered) if uploading else -(-written // FILE_BYTES),
        parts=len(numbered),
        # Rank 0's, as `Announcement.of` deals them out: none has more.
        share=len(numbered[::ranks]),
        share_bytes=sum(
            region.rows * todo[region.item].row_bytes
            for part in numbered[::ranks]
            for region in part
        ),
        threads=threads,
        memory=threads * (_COMPARING + _READING * is_remote(checkpoint.prefix) + uploading),
        hashed=hashed,
        disk=hashed + needed_on_disk(todo, target, out, threads * ranks),
        place=place,
        free=shutil.disk_usage(place).free,
    )
