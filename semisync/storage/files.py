"""Reading and writing bytes at a position, on disk or wherever fsspec serves them.

Only regular files are opened: a pipe or a device would make a reader wait without end. `StoredFile`
is the one seam between the readers and the place of the bytes.
"""

from __future__ import annotations

import glob
import os
import stat
from typing import BinaryIO, List, Optional, Tuple

import numpy

from semisync.common.errors import BadInput
from semisync.common.files import LARGEST_TEXT
from semisync.storage import remote


def size_of(path: str) -> Optional[int]:
    """Bytes of the file at a path or URL; None if there is no file."""
    if remote.is_remote(path):
        return remote.size_of(path)
    return os.path.getsize(path) if os.path.isfile(path) else None


def version_of(path: str) -> Optional[Tuple[int, str]]:
    """(bytes, a value that changes with the contents) of a file or URL: the time of its last
    change, in ns, or the server's version; None if there is no file."""
    if remote.is_remote(path):
        return remote.version_of(path)
    if not os.path.isfile(path):
        return None
    status = os.stat(path)
    return status.st_size, str(status.st_mtime_ns)


def starting_with(prefix: str) -> List[str]:
    """Files whose paths begin with `prefix`."""
    if remote.is_remote(prefix):
        return remote.starting_with(prefix)
    return glob.glob(glob.escape(prefix) + "*")


def open_file(path: str) -> StoredFile:
    """The file at a path or URL; raises BadInput if it is missing or not a regular file."""
    return RemoteFile(path) if remote.is_remote(path) else StoredFile(path)


def read_whole(path: str) -> bytes:
    """All bytes of a small file at a path or URL; BadInput as of `open_file`, or if it is large."""
    with open_file(path) as file:
        if file.size > LARGEST_TEXT:
            raise BadInput(f"{path} has {file.size:,} bytes, expected at most {LARGEST_TEXT:,}")
        return file.read(0, file.size, path)


class StoredFile:
    """Positional reads from one regular file; `size` in bytes.

    Attributes:
        step: bytes to ask for at a time while streaming, few enough that a checksum finds them
            in the CPU's cache.
    """

    step = 1 << 20

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = open_regular(path)
        self.size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def read_into(self, offset: int, buffer: numpy.ndarray, where: str) -> None:
        """Fills `buffer` (uint8, one-dimensional, contiguous) from byte `offset` on.

        Raises:
            BadInput: the file ends too early or cannot be read; the message begins with `where`.
        """
        filled = 0
        while filled < buffer.size:
            try:
                got = os.preadv(self._file.fileno(), [buffer[filled:].data], offset + filled)
            except OSError as error:
                raise BadInput(f"{where}: {self.path}: {error.strerror}") from error
            if not got:
                raise BadInput(
                    f"{where} needs {buffer.size} bytes at byte {offset} of {self.path}, "
                    "which ends before them; the file is truncated"
                )
            filled += got

    def read(self, offset: int, size: int, where: str) -> bytes:
        """`size` bytes at `offset`; as `read_into`, but checked against `size` first."""
        self.check_extent(offset, size, where)
        buffer = numpy.empty(size, numpy.uint8)
        self.read_into(offset, buffer, where)
        return buffer.tobytes()

    def check_extent(self, offset: int, size: int, where: str) -> None:
        """Raises BadInput if the file is too short, before memory is allocated."""
        if offset + size > self.size:
            raise BadInput(
                f"{where} needs {size} bytes at byte {offset} of {self.path}, "
                f"which has {self.size}; the file is truncated"
            )


class RemoteFile(StoredFile):
    """Positional reads from a file behind a URL, through fsspec."""

    step = 16 << 20  # each step is a request

    def __init__(self, path: str) -> None:
        self.path = path
        size = remote.size_of(path)
        if size is None:
            raise BadInput(f"{path} cannot be opened: there is no such file")
        self.size = size
        self._ranges = remote.Ranges(path, size)

    def close(self) -> None:
        """Nothing stays open."""

    def read_into(self, offset: int, buffer: numpy.ndarray, where: str) -> None:
        """See StoredFile."""
        self.check_extent(offset, buffer.size, where)
        self._ranges.read_into(offset, buffer, where)


def open_regular(path: str) -> BinaryIO:
    """Opens `path` unbuffered for reading; raises BadInput unless it is a regular file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadInput(f"{path} is not a regular file; give the path of a checkpoint's file")
        return open(path, "rb", buffering=0)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path} cannot be opened: {reason}") from error


def write_at(file: int, offset: int, data: memoryview) -> None:
    """Writes all of `data`, bytes, to the open `file` from byte `offset` on."""
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done:], offset + done)
