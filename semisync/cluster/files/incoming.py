"""A download into a folder: what has come so far lies on disk, whatever happens.

1. Files lie below FOLDER/.semisync-parts/DIGEST/ until they are whole: `N.part`, as large as the
   file.
2. A chunk is written only when its bytes have the SHA-256 of the manifest.
3. Once it has every chunk a file is flushed to disk and moved to its place, over an older one.
4. A download that is started again hashes what is there, and keeps the chunks that are right, and
   the files that are in their places already.

One process at a time downloads a manifest into a folder; files that are in no manifest stay.
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
import threading
from typing import Any, Dict, List, Set

from semisync.cluster.files.manifest import PARTS, Chunk, File, Manifest
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import flush


class Incoming:
    """A download, from what an earlier one left to the last chunk.

    Args:
        manifest: the `Manifest`.
        folder: str or path.

    Raises:
        UsageError: another process downloads the same into the folder.
        BadInput: the disk has too little room.
    """

    def __init__(self, manifest: Manifest, folder: Any) -> None:
        self.manifest = manifest
        self.folder = os.fspath(folder)
        self._parts = os.path.join(self.folder, PARTS, manifest.digest)
        self._number = {file.path: n for n, file in enumerate(manifest.files)}
        self._chunks = manifest.chunks()
        self._left: Dict[str, Set[int]] = {}  # chunks, of each file that is not in its place
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

    @property
    def missing(self) -> List[Chunk]:
        """The chunks that are not here, in the order of the files."""
        with self._lock:
            numbers = itertools.chain.from_iterable(self._left.values())
            return [self._chunks[number] for number in sorted(numbers)]

    def _resume(self) -> None:
        chunks: Dict[str, List[Chunk]] = {file.path: [] for file in self.manifest.files}
        for chunk in self._chunks:
            chunks[chunk.file.path].append(chunk)
        for file in self.manifest.files:
            place = os.path.join(self.folder, file.path)
            if _size(place) != file.size or _wrong(place, chunks[file.path]):
                self._left[file.path] = {chunk.number for chunk in chunks[file.path]}
                if _size(self._part(file)) == file.size:
                    self._left[file.path] = _wrong(self._part(file), chunks[file.path])
        missing = sum(chunk.size for chunk in self.missing)
        free = shutil.disk_usage(self._parts).free
        if missing > free:
            raise BadInput(
                "{}: {:,} bytes are missing and its disk has room for {:,}".format(
                    self.folder, missing, free
                )
            )
        for file in self.manifest.files:
            if self._left.get(file.path) == set():
                self._place(file)
        self._tidy()

    def _part(self, file: File) -> str:
        return os.path.join(self._parts, "{}.part".format(self._number[file.path]))

    def accept(self, chunk: Chunk, data: Any) -> bool:
        """Writes a chunk whose bytes are right, and places its file once it is whole.

        Args:
            data: bytes.

        Returns:
            False where they are not the chunk's, and nothing is written.
        """
        if len(data) != chunk.size or hashlib.sha256(data).hexdigest() != chunk.sha256:
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(self._part(chunk.file), flags, 0o644)
        try:
            if os.fstat(descriptor).st_size != chunk.file.size:
                os.ftruncate(descriptor, chunk.file.size)
            _write(descriptor, data, chunk.first)
        finally:
            os.close(descriptor)
        with self._lock:
            self._left[chunk.file.path].remove(chunk.number)
            last = not self._left[chunk.file.path]
        if last:
            self._place(chunk.file)
            self._tidy()
        return True

    def _place(self, file: File) -> None:
        """Flushes a whole file, which may take long, and moves it to its place."""
        place, part = os.path.join(self.folder, file.path), self._part(file)
        above = os.path.dirname(place)
        try:
            os.makedirs(above, exist_ok=True)
            with open(part, "ab") as stream:  # made here where the file is empty
                os.fsync(stream.fileno())
            os.replace(part, place)
        except OSError as error:
            raise BadInput("{} cannot be written: {}".format(place, error.strerror)) from error
        flush(above)
        with self._lock:
            del self._left[file.path]

    def _tidy(self) -> None:
        """Removes the folder of parts once every file is in its place."""
        with self._lock:
            if not self._left:
                shutil.rmtree(self._parts, ignore_errors=True)
                with contextlib.suppress(OSError):  # of another manifest there may be some
                    os.rmdir(os.path.dirname(self._parts))

    def close(self) -> None:
        """Lets another process go on with it."""
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


def _wrong(place: str, chunks: List[Chunk]) -> Set[int]:
    """The numbers of those of a file's chunks that are not there."""
    with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
        return {chunk.number for chunk in chunks if not _is_there(stream.fileno(), chunk)}


def _is_there(descriptor: int, chunk: Chunk) -> bool:
    data = os.pread(descriptor, chunk.size, chunk.first)
    return hashlib.sha256(data).hexdigest() == chunk.sha256


def _write(descriptor: int, data: Any, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
