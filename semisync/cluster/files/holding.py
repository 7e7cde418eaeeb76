"""What of a manifest's files lies on this disk: all of it, or what has come so far.

A download into a folder, by step:

1. Files lie below FOLDER/.semisync-parts/DIGEST/ until they are whole: `N.part`, as large as the
   file, and `N.done`, with a line for each chunk that was written.
2. A chunk is written only when its bytes have the SHA-256 of the manifest.
3. Once it has every chunk a file is flushed to disk and moved to its place, over an older one.
4. A download that is started again hashes the chunks that `N.done` names, and the files that are in
   their places already, and keeps those that are right.

One process at a time downloads a manifest into a folder; files that are in no manifest stay.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import threading
from typing import Any, Dict, List, Set

from semisync.cluster.files.manifest import PARTS, Chunk, File, Manifest
from semisync.common.errors import BadInput, UsageError


class Holding:
    """The chunks of a manifest that lie in a folder.

    Args:
      manifest: the `Manifest`.
      folder: str or path.

    Attributes:
      have: the chunks that are here and right, as bits: bit n is chunk n.
      chunks: `manifest.chunks()`.
    """

    def __init__(self, manifest: Manifest, folder: Any) -> None:
        self.manifest = manifest
        self.folder = os.fspath(folder)
        self.chunks = manifest.chunks()
        self.have = 0
        self._of: Dict[str, List[Chunk]] = {file.path: [] for file in manifest.files}
        for chunk in self.chunks:
            self._of[chunk.file.path].append(chunk)

    @property
    def all(self) -> int:
        """Every chunk, as bits."""
        return (1 << len(self.chunks)) - 1

    def covering(self, file: File, first: int, last: int) -> List[Chunk]:
        """The chunks of a file that hold its bytes from `first` to `last`."""
        size = self.manifest.chunk_size
        return self._of[file.path][first // size : last // size + 1]

    def has(self, chunks: List[Chunk]) -> bool:
        """Whether all of them are here."""
        return all(self.have >> chunk.number & 1 for chunk in chunks)

    def open(self, file: File) -> int:
        """A descriptor to read the file from, at its place."""
        return os.open(os.path.join(self.folder, file.path), os.O_RDONLY | os.O_NOFOLLOW)

    def close(self) -> None:
        """Gives up what is open."""


class Whole(Holding):
    """All files of a manifest, in the folder that it was made from."""

    def __init__(self, manifest: Manifest, folder: Any) -> None:
        super().__init__(manifest, folder)
        self.have = self.all


class Incoming(Holding):
    """A download, from what an earlier one left to the last chunk.

    Raises:
      UsageError: another process downloads the same into the folder.
      BadInput: the disk has too little room.
    """

    def __init__(self, manifest: Manifest, folder: Any) -> None:
        super().__init__(manifest, folder)
        self._parts = os.path.join(self.folder, PARTS, manifest.digest)
        self._number = {file.path: n for n, file in enumerate(manifest.files)}
        self._placed: Set[str] = set()
        self._lock = threading.Lock()
        os.makedirs(self._parts, exist_ok=True)
        self._claim = os.open(os.path.join(self._parts, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._claim)
            raise UsageError(
                "{}: another process downloads the same files into it".format(self.folder)
            ) from error
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def _resume(self) -> None:
        for file in self.manifest.files:
            place = os.path.join(self.folder, file.path)
            done = [chunk.number for chunk in self._of[file.path]]
            if self._keep(place, file, done) == len(done) and _size(place) == file.size:
                self._placed.add(file.path)
                continue
            for chunk in self._of[file.path]:  # an older file is there: what it shares is fetched
                self.have &= ~(1 << chunk.number)
            part = self._part(file, "part")
            if _size(part) == file.size:
                self._keep(part, file, self._noted(file))
        missing = sum(c.size for c in self.chunks if not self.have >> c.number & 1)
        free = shutil.disk_usage(self._parts).free
        if missing > free:
            raise BadInput(
                "{}: {:,} bytes are missing and its disk has room for {:,}".format(
                    self.folder, missing, free
                )
            )
        for file in self.manifest.files:
            if file.path not in self._placed and self.has(self._of[file.path]):
                self._place(file)
        self._tidy()

    def _keep(self, place: str, file: File, numbers: List[int]) -> int:
        """Counts in the chunks of a file at `place` that are right; returns how many."""
        if _size(place) != file.size:
            return 0
        kept = 0
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
            for number in numbers:
                chunk = self.chunks[number]
                data = os.pread(stream.fileno(), chunk.size, chunk.first)
                if hashlib.sha256(data).hexdigest() == chunk.sha256:
                    self.have |= 1 << number
                    kept += 1
        return kept

    def _noted(self, file: File) -> List[int]:
        """The chunks that `N.done` names; a last line may be torn."""
        numbers = {chunk.number for chunk in self._of[file.path]}
        try:
            with open(self._part(file, "done"), "rb") as notes:
                lines = notes.read(16 * len(numbers)).split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return sorted(numbers.intersection(int(line) for line in lines if line.isdigit()))

    def _part(self, file: File, suffix: str) -> str:
        return os.path.join(self._parts, "{}.{}".format(self._number[file.path], suffix))

    def open(self, file: File) -> int:
        with self._lock:  # or it could be placed in between
            if file.path in self._placed:
                return super().open(file)
            return os.open(self._part(file, "part"), os.O_RDONLY | os.O_NOFOLLOW)

    def accept(self, chunk: Chunk, data: Any) -> bool:
        """Writes a chunk whose bytes are right, and places its file once it is whole.

        Args:
          data: bytes.

        Returns: False where they are not the chunk's, and nothing is written.
        """
        if len(data) != chunk.size or hashlib.sha256(data).hexdigest() != chunk.sha256:
            return False
        part = self._part(chunk.file, "part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            if os.fstat(descriptor).st_size != chunk.file.size:
                os.ftruncate(descriptor, chunk.file.size)
            _write(descriptor, data, chunk.first)
        finally:
            os.close(descriptor)
        with self._lock:
            with open(self._part(chunk.file, "done"), "ab") as notes:
                notes.write(b"%d\n" % chunk.number)
            before, self.have = self.have, self.have | 1 << chunk.number
            last = before != self.have and self.has(self._of[chunk.file.path])
        if last:
            self._place(chunk.file)
        self._tidy()
        return True

    def _place(self, file: File) -> None:
        """Flushes a whole file, which may take long, and moves it to its place."""
        place, part = os.path.join(self.folder, file.path), self._part(file, "part")
        above = os.path.dirname(place)
        try:
            os.makedirs(above, exist_ok=True)
            with open(part, "ab") as stream:  # made here where the file is empty
                os.fsync(stream.fileno())
            with self._lock:
                os.replace(part, place)
                self._placed.add(file.path)
        except OSError as error:
            raise BadInput("{} cannot be written: {}".format(place, error.strerror)) from error
        _flush_folder(above)

    def _tidy(self) -> None:
        """Removes the folder of parts once every file is in its place."""
        with self._lock:
            if len(self._placed) == len(self.manifest.files):
                shutil.rmtree(self._parts, ignore_errors=True)
                with contextlib.suppress(OSError):  # of another manifest there may be some
                    os.rmdir(os.path.dirname(self._parts))

    def close(self) -> None:
        if self._claim >= 0:
            os.close(self._claim)
            self._claim = -1


def _size(place: str) -> int:
    """Bytes of a plain file; -1 where there is none."""
    try:
        found = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return -1
    return found.st_size if os.path.isfile(place) and not os.path.islink(place) else -1


def _write(descriptor: int, data: Any, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
