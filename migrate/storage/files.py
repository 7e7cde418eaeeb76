"""Opening the files of a checkpoint, and saying clearly what stands there instead of one.

Only regular files are opened: a pipe or a device would make a reader wait for ever. `StoredFile`
is the one seam between the readers and where the bytes are, a disk or what fsspec serves.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from typing import BinaryIO, List, Optional, Tuple

import numpy

from migrate.storage import remote
from semisync.common.errors import BadInput

TABLE_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")

_SUFFIX = re.compile(r"(\.index|\.meta|\.data-\d{5}-of-\d{5})$")
_V1_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def size_of(path: str) -> Optional[int]:
    """Bytes of the file at a path or URL; None where there is no file."""
    if remote.is_remote(path):
        return remote.size_of(path)
    return os.path.getsize(path) if os.path.isfile(path) else None


def version_of(path: str) -> Optional[Tuple[int, str]]:
    """(bytes, what changes with the contents) of the file at a path or URL: the time of its last
    change, in ns, or what the server gives; None where there is no file."""
    if remote.is_remote(path):
        return remote.version_of(path)
    if not os.path.isfile(path):
        return None
    stat = os.stat(path)
    return stat.st_size, str(stat.st_mtime_ns)


def starting_with(prefix: str) -> List[str]:
    """Files whose paths begin with `prefix`."""
    if remote.is_remote(prefix):
        return remote.starting_with(prefix)
    return glob.glob(glob.escape(prefix) + "*")


def open_file(path: str) -> StoredFile:
    """The file at a path or URL; BadInput where it is missing or not a regular file."""
    return RemoteFile(path) if remote.is_remote(path) else StoredFile(path)


class StoredFile:
    """Positional reads from one regular file; `size` in bytes.

    step: bytes to ask for at a time while streaming, small enough that a checksum finds them in
    the processor's cache.
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

        Raises BadInput, which begins with `where`, when the file ends before or cannot be read.
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
        """BadInput where the file is too short: asked before memory is taken."""
        if offset + size > self.size:
            raise BadInput(
                f"{where} needs {size} bytes at byte {offset} of {self.path}, "
                f"which has {self.size}; the file is truncated"
            )


class RemoteFile(StoredFile):
    """The same through fsspec."""

    step = 16 << 20

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
    """Opens `path` unbuffered for reading; BadInput where it is missing or not a regular file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadInput(f"{path} is not a regular file; give the path of a checkpoint's file")
        return open(path, "rb", buffering=0)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path} cannot be opened: {reason}") from error


def index_path(prefix: str) -> str:
    """Path of the index of the checkpoint `prefix`; BadInput names what was found instead."""
    index = prefix + ".index"
    if size_of(index) is not None or os.path.exists(index):
        return index
    if os.path.isdir(prefix):
        raise BadInput(f"{prefix} is a directory without a checkpoint; give a checkpoint's prefix")
    bare = _SUFFIX.sub("", prefix)
    if bare != prefix:
        raise BadInput(f"{prefix} is one file of a checkpoint; give its prefix, {bare}")
    raise BadInput(f"there is no checkpoint {prefix}: {index} does not exist")


def of_saved_model(directory: str) -> Optional[str]:
    """Prefix of the variables of the SavedModel in `directory`; None where there is none."""
    prefix = os.path.join(directory, "variables", "variables")
    return prefix if size_of(prefix + ".index") is not None else None


def saved_model_path(prefix: str) -> Optional[str]:
    """Path of the `saved_model.pb` whose variables have `prefix`; None where there is none."""
    folder, slash, name = prefix.rpartition("/variables/")
    path = f"{folder}/saved_model.pb"
    return path if slash and name == "variables" and size_of(path) is not None else None


def v1_tables(prefix: str) -> List[str]:
    """Paths of the tables of a V1 checkpoint: `prefix` itself or all PREFIX-00000-of-0000N.

    Empty where there are none, and for a URL; BadInput where one of several is missing.
    """
    if remote.is_remote(prefix) or _SUFFIX.search(prefix):
        return []
    if os.path.isfile(prefix):
        shard = _V1_SHARD.search(prefix)
        if shard and _ends_with_magic(prefix):
            return v1_tables(prefix[: shard.start()])
        return [prefix] if _ends_with_magic(prefix) else []
    folder, base = os.path.split(prefix)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []  # the caller's own message says that nothing is there
    shards = [name for name in names if _is_shard(name, base)]
    shards = sorted(name for name in shards if _ends_with_magic(os.path.join(folder, name)))
    count = int(shards[0][-5:]) if shards else 0
    for number, name in enumerate(shards + [""]):
        expected = f"{base}-{number:05d}-of-{count:05d}"
        if number < count and name != expected:
            raise BadInput(f"{prefix} lacks its part {expected}; the V1 checkpoint is incomplete")
    return [os.path.join(folder, name) for name in shards]


def _is_shard(name: str, base: str) -> bool:
    return name.startswith(base) and bool(_V1_SHARD.fullmatch(name[len(base) :]))


def _ends_with_magic(path: str) -> bool:
    with StoredFile(path) as file:
        return file.size >= 8 and file.read(file.size - 8, 8, path) == TABLE_MAGIC
