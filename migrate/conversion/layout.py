"""The places of a conversion's tensors, and the files that are made for them.

1. The target's format gives each chunk of each tensor its place in a file; items that are files of
   their own follow.
2. The files are made in their full sizes, with all bytes between the values.
3. Room is taken before it is written: where the file system can do that (fallocate(2); ext4 for
   one), writing needs less CPU time afterwards and a full disk shows at once. Where it cannot, as
   ext2, glibc would write a zero into every block instead, and the disk would be written twice: but
   not into a file that is open to append or to write only, for which posix_fallocate(3) promises
   EBADF.
"""

from __future__ import annotations

import errno
import heapq
import importlib
import itertools
import os
from types import ModuleType
from typing import BinaryIO, Iterator, List

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import rows_of
from migrate.stream import regions
from migrate.stream.item import Item
from migrate.stream.regions import Layout, Part, Region, cuts, with_files
from semisync.storage.remote import is_remote

_CANNOT = (errno.EBADF, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def lay_out(target: str, todo: List[Item], checkpoint: Checkpoint, out: str) -> Layout:
    """The places of all items; those with a file of their own come last in `todo`."""
    room = regions.UPLOAD_BYTES if is_remote(out) else regions.FILE_BYTES
    of_items = [list(cuts(item, _source_row_bytes(item, checkpoint))) for item in todo]
    count = sum(not item.is_file for item in todo)
    layout: Layout = format_of(target).lay_out(todo[:count], of_items[:count], room)
    return with_files(layout, todo, of_items, count)


def regions_of(todo: List[Item], checkpoint: Checkpoint) -> Iterator[Region]:
    """The regions of all items, without their places."""
    for index, item in enumerate(todo):
        for first, rows in cuts(item, _source_row_bytes(item, checkpoint)):
            yield Region(index, first, rows, "", 0)


def format_of(target: str) -> ModuleType:
    """The module of a format (`migrate.targets`), which imports torch."""
    return importlib.import_module(f"migrate.targets.{target}")


def needed_on_disk(todo: List[Item], target: str, out: str, threads: int) -> int:
    """Bytes on disk that writing `todo` takes; for a URL, what `threads` have there at one time."""
    total = sum(item.nbytes for item in todo)
    if not is_remote(out):
        return total
    whole = [item.nbytes for item in todo] if target == "safetensors" else []
    files = heapq.nlargest(threads, [*whole, *[regions.UPLOAD_BYTES] * threads])
    return min(total, sum(files))


def parts_of(layout: Layout, todo: List[Item], out: str) -> List[Part]:
    """The parts, the units of writing and resuming: of a URL whole files."""
    return regions.files(layout.regions) if is_remote(out) else regions.parts(layout.regions, todo)


def _source_row_bytes(item: Item, checkpoint: Checkpoint) -> int:
    if item.origins or item.source not in checkpoint:
        return 0  # sorted already, a row as in the target
    info = checkpoint[item.source]
    rows = rows_of(info.shape)
    return info.nbytes // rows if rows else 0


def prepare(directory: str, layout: Layout) -> None:
    """Makes the files in their full sizes, with all bytes between the values."""
    for name, size in layout.files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
        with open(os.path.join(directory, name), "ab") as file:
            reserve(file, size)
            file.truncate(size)
    for name, frames in itertools.groupby(layout.frames, key=lambda frame: frame.file):
        with open(os.path.join(directory, name), "rb+", buffering=0) as file:
            for frame in frames:
                os.pwrite(file.fileno(), frame.data, frame.offset)


def reserve(file: BinaryIO, size: int) -> bool:
    """Reserves `size` bytes after the contents of `file`, which is open in mode "ab".

    Returns:
        Whether the file system can.

    Raises:
        OSError: the disk is full.
    """
    if not size:
        return False
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    return True
