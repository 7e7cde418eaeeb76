"""The places of a conversion's tensors, and the files that are made for them, here or in a store.

1. The target's format gives each chunk of each tensor its place in a file; items that are files of
   their own follow.
2. The files are made in their full sizes, with all bytes between the values.
3. Room is taken before it is written: where the file system can do that (fallocate(2); ext4 for
   one), writing needs less CPU time afterwards and a full disk shows at once. Where it cannot, as
   ext2, glibc would write a zero into every block instead, and the disk would be written twice: but
   not into a file that is open to append or to write only, for which posix_fallocate(3) promises
   EBADF.

A conversion into an object store may be larger than any local disk:

1. A store can neither move a file nor write into one: each is made whole in a scratch folder, in
   which a few exist at a time, uploaded, and removed. Each process has a folder of its own there,
   so that an orphaned process uploads nothing unfinished. The journal stands beside them.
2. A part is a file. The journal has it when the store has it, so that a resumed run uploads those
   missing there, and those that the store lacks in that size.
3. The manifest comes last, after both sides were compared: without it there is no conversion.
"""

from __future__ import annotations

import errno
import glob
import heapq
import importlib
import itertools
import os
import shutil
import tempfile
from types import ModuleType
from typing import BinaryIO, Dict, Iterator, List, Optional, Set

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import rows_of
from migrate.stream import regions
from migrate.stream.item import Item
from migrate.stream.regions import Layout, Part, Region, cuts
from migrate.stream.writing import Place
from migrate.targets.work_directory import FILES, Unfinished
from semisync.storage.folders import joined
from semisync.storage.remote import is_remote, sizes_below, upload

# Where the file system cannot: EBADF by glibc, see 3.; EINVAL by posix_fallocate(3).
_CANNOT = (errno.EBADF, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def lay_out(target: str, todo: List[Item], checkpoint: Checkpoint, out: str) -> Layout:
    """The places of all items; those with a file of their own come last in `todo`."""
    room = regions.UPLOAD_BYTES if is_remote(out) else regions.FILE_BYTES
    of_items = [list(cuts(item, _source_row_bytes(item, checkpoint))) for item in todo]
    count = sum(not item.is_file for item in todo)
    layout: Layout = _format_of(target).lay_out(todo[:count], of_items[:count], room)
    for index, (item, of_item) in enumerate(zip(todo[count:], of_items[count:]), count):
        layout.files[item.fqn] = item.nbytes
        layout.regions.extend(
            Region(index, first, rows, item.fqn, first * item.row_bytes) for first, rows in of_item
        )
    return layout


def finish(target: str, folder: str, todo: List[Item], layout: Layout) -> None:
    """Writes the format's own index of the tensors, whose files are in `folder`."""
    tensors = [item for item in todo if not item.is_file]
    # Files of their own come behind the tensors (`lay_out`), and are no part of the index.
    regions_of_tensors = [region for region in layout.regions if region.item < len(tensors)]
    _format_of(target).finish(folder, tensors, layout._replace(regions=regions_of_tensors))


def regions_of(todo: List[Item], checkpoint: Checkpoint) -> Iterator[Region]:
    """The regions of all items, without their places."""
    for index, item in enumerate(todo):
        for first, rows in cuts(item, _source_row_bytes(item, checkpoint)):
            yield Region(index, first, rows, "", 0)


def _format_of(target: str) -> ModuleType:
    """The module of a format (`migrate.targets`), which imports torch."""
    return importlib.import_module(f"migrate.targets.{target}")


def needed_on_disk(todo: List[Item], target: str, out: str, threads: int) -> int:
    """Bytes on disk that writing `todo` takes; for a URL, what `threads` have there at one time."""
    total = sum(item.nbytes for item in todo)
    if not is_remote(out):
        return total
    # There a tensor, however large, is in one file.
    whole = [item.nbytes for item in todo] if target == "safetensors" else []
    files = heapq.nlargest(threads, [*whole, *[regions.UPLOAD_BYTES] * threads])
    return min(total, sum(files))


def parts_of(layout: Layout, todo: List[Item], out: str) -> List[Part]:
    """The parts, the units of writing and resuming: of a URL whole files."""
    if not is_remote(out):
        return regions.parts(layout.regions, todo)
    by_file = itertools.groupby(layout.regions, key=lambda region: region.file)
    return [list(of_file) for _, of_file in by_file]


def _source_row_bytes(item: Item, checkpoint: Checkpoint) -> int:
    if item.origins or item.source not in checkpoint:
        return 0  # sorted already, a row as in the target
    info = checkpoint[item.source]
    rows = rows_of(info.shape)
    return info.nbytes // rows if rows else 0


def _prepare(directory: str, layout: Layout) -> None:
    """Makes the files in their full sizes, with all bytes between the values."""
    for name, size in layout.files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
        # Neither emptied nor truncated to less: a resumed run keeps the finished parts. See 3. for
        # "ab".
        with open(os.path.join(directory, name), "ab") as file:
            reserve(file, size)
            file.truncate(size)
    for name, frames in itertools.groupby(layout.frames, key=lambda frame: frame.file):
        with open(os.path.join(directory, name), "rb+", buffering=0) as file:
            for frame in frames:
                os.pwrite(file.fileno(), frame.data, frame.offset)


def reserve(file: BinaryIO, size: int) -> bool:
    """Reserves the first `size` bytes of `file`, contents included, which is open in mode "ab".

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


def place_of(out: str, directory: str, layout: Layout) -> Place:
    """The folder of the files of a conversion to `out`, whose job stands in `directory`."""
    return Uploads(out, directory, layout) if is_remote(out) else Place(directory)


def begin(place: Place, layout: Layout) -> None:
    """Makes the files that are to be there before any part is written."""
    if isinstance(place, Uploads):
        for left in glob.glob(
            os.path.join(glob.escape(os.path.dirname(place.folder)), FILES + "*")
        ):
            if left != place.folder:
                # Left by a killed run: an orphan of it finds its folder gone, and uploads nothing.
                shutil.rmtree(left)
        with_values = {region.file for region in layout.regions}
        empty = {name: size for name, size in layout.files.items() if name not in with_values}
        # A file without values belongs to no part, so that no part would make it.
        frames = [frame for frame in layout.frames if frame.file in empty]
        layout = layout._replace(files=empty, frames=frames, regions=[])
    _prepare(place.folder, layout)


class Uploads(Place):
    """The files that go below the URL `out`, from a folder in the conversion's `directory`."""

    def __init__(self, out: str, directory: str, layout: Layout) -> None:
        super().__init__(tempfile.mkdtemp(prefix=FILES, dir=directory))
        self.out = out
        self._layout = layout
        by_file = itertools.groupby(layout.frames, key=lambda frame: frame.file)
        self._frames = {name: list(frames) for name, frames in by_file}
        self._sizes: Optional[Dict[str, int]] = None

    def has(self, part: Part) -> bool:
        """See Place."""
        if self._sizes is None:
            # One listing for all parts, not a request for each.
            self._sizes = sizes_below(self.out)
        name = part[0].file
        return self._sizes.get(name) == self._layout.files[name]

    def begin(self, part: Part) -> None:
        """Makes the file."""
        name = part[0].file
        sizes, frames = {name: self._layout.files[name]}, self._frames.get(name, [])
        _prepare(self.folder, self._layout._replace(files=sizes, frames=frames))

    def end(self, part: Part) -> Set[str]:
        """Uploads and removes the file."""
        path = os.path.join(self.folder, part[0].file)
        upload(path, joined(self.out, part[0].file))
        os.remove(path)
        return set()

    def finish(self, last: str) -> None:
        """Uploads the files beside the values, and checks that the store has everything."""
        upload_folder(self.folder, self.out, without=last)
        there = sizes_below(self.out)
        for name, size in self._layout.files.items():
            found = there.get(name, "no")
            if found != size:
                raise Unfinished(
                    f"{joined(self.out, name)} has {found} bytes, and had {size} when it was "
                    "uploaded; go on with --resume, which writes it again"
                )

    def publish(self, last: str) -> None:
        """Uploads `last`."""
        upload(os.path.join(self.folder, last), joined(self.out, last))


def upload_folder(folder: str, url: str, without: str) -> None:
    """Uploads every file in `folder` but one."""
    for root, _, names in os.walk(folder):
        for name in names:
            inside = os.path.relpath(os.path.join(root, name), folder)
            if inside != without:
                upload(os.path.join(root, name), joined(url, inside))
