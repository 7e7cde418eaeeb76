"""A conversion into an object store that is larger than any local disk.

1. A store can neither move a file nor write into one: each is made whole in a scratch folder, in
   which a few exist at a time, uploaded, and removed. Each process has a folder of its own there,
   so that an orphaned process uploads nothing unfinished. The journal stands beside them.
2. A part is a file. The journal has it when the store has it, so that a resumed run uploads those
   missing there, and those that the store lacks in that size.
3. The manifest comes last, after both sides were compared: without it there is no conversion.
"""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import tempfile
from typing import Dict, Optional, Set

from migrate.conversion.layout import prepare
from migrate.stream.regions import Layout, Part
from migrate.stream.writing import Place
from migrate.targets.work_directory import FILES, Unfinished
from semisync.storage.folders import joined
from semisync.storage.remote import is_remote, sizes_below, upload


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
                shutil.rmtree(left)
        with_values = {region.file for region in layout.regions}
        empty = {name: size for name, size in layout.files.items() if name not in with_values}
        frames = [frame for frame in layout.frames if frame.file in empty]
        layout = layout._replace(files=empty, frames=frames, regions=[])
    prepare(place.folder, layout)


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
            self._sizes = sizes_below(self.out)
        name = part[0].file
        return self._sizes.get(name) == self._layout.files[name]

    def begin(self, part: Part) -> None:
        """Makes the file."""
        name = part[0].file
        sizes, frames = {name: self._layout.files[name]}, self._frames.get(name, [])
        prepare(self.folder, self._layout._replace(files=sizes, frames=frames))

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
