"""Files behind a URL (s3://, gs://, hdfs://, memory://, ...), read and written through fsspec.

A protocol's file system may be a package of its own, such as s3fs; a message names it. A range is
one request. Requests that continue where the last one ended read ahead, so that many small ones do
not cost a round trip each. A file is uploaded whole: a store can neither move nor change one.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy

from semisync.common.errors import BadInput, MissingExtra, UsageError
from semisync.common.extras import extra, not_installed
from semisync.common.sentences import words_of

_AHEAD = 8 << 20  # bytes
_IN_EXTRA = "s3fs"
_VERSIONS = (
    "ETag",
    "etag",
    "mtime",
    "LastModified",
    "last_modified",
    "created",
)  # of fsspec's kinds


class Unreachable(BadInput):
    """A server that did not answer, or refused: the file may well exist."""


def is_remote(path: str) -> bool:
    """Whether `path` is a URL."""
    return "://" in path


def file_system(url: str) -> Tuple[Any, str]:
    """fsspec's file system for `url`, and the path within it."""
    with extra("files", f"to read {url}"):
        import fsspec.core
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None)
        if missing == _IN_EXTRA:
            raise MissingExtra(not_installed(missing, "stores", f"to reach {url}")) from error
        raise MissingExtra(f"{url} needs one more package: {error}") from error
    except Exception as error:  # every file system has exceptions of its own
        raise BadInput(f"{url} cannot be reached: {words_of(error)}") from error


def is_disk(fs: Any) -> bool:
    """Whether a file system of fsspec is this machine's own, as that of file:// is."""
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(fs, LocalFileSystem)


def size_of(url: str) -> Optional[int]:
    """Bytes of the file at `url`; None if there is no file."""
    info = _info(url)
    return None if info is None else int(info["size"])


def version_of(url: str) -> Optional[Tuple[int, str]]:
    """(bytes, the server's version of it, "" for none); None if there is no file."""
    info = _info(url)
    if info is None:
        return None
    said = (info.get(key) for key in _VERSIONS)
    return int(info["size"]), str(next(filter(None, said), ""))


def _info(url: str) -> Optional[Dict[str, Any]]:
    fs, path = file_system(url)
    try:
        info: Dict[str, Any] = fs.info(path)
    except FileNotFoundError as error:
        reason = error.__cause__  # fsspec's HTTP raises the same for an unreachable server
        absent = isinstance(reason, (type(None), FileNotFoundError))
        if reason is not None and not absent and getattr(reason, "status", None) not in (404, 410):
            raise Unreachable(f"{url} cannot be reached: {words_of(reason)}") from error
        return None
    except Exception as error:
        raise Unreachable(f"{url} cannot be reached: {words_of(error)}") from error
    if info["type"] != "file":
        return None
    if info["size"] is None:
        raise BadInput(f"{url} cannot be read in ranges: its server does not tell its size")
    return info


def starting_with(prefix: str) -> List[str]:
    """Paths of the files whose names begin like the last part of the URL `prefix`."""
    fs, path = file_system(prefix)
    folder, _, start = path.rpartition("/")
    try:
        names = fs.ls(folder, detail=False)
    except FileNotFoundError:
        return []
    except Exception as error:
        raise Unreachable(f"{prefix} cannot be listed: {words_of(error)}") from error
    return [name for name in names if name.rpartition("/")[2].startswith(start)]


def sizes_below(folder: str) -> Dict[str, int]:
    """{name: bytes} of every file below the URL `folder`, listed anew."""
    fs, path = file_system(folder)
    try:
        fs.invalidate_cache()
        found = fs.find(path, detail=True)
    except Exception as error:
        raise Unreachable(f"{folder} cannot be listed: {words_of(error)}") from error
    start = len(path.rstrip("/")) + 1
    return {name[start:]: int(info["size"]) for name, info in found.items()}


def check_takes_files(folder: str) -> None:
    """Raises UsageError if nothing can be written below the URL `folder`."""
    fs, path = file_system(folder)
    probe = path.rstrip("/") + "/.writable"
    try:
        fs.pipe_file(probe, b"")
        fs.rm_file(probe)
    except Exception as error:
        raise UsageError(
            f"{folder} cannot be written: {words_of(error)}; name another place"
        ) from error


def upload(path: str, url: str) -> None:
    """Writes the file at `path` on disk to `url`, in place of the file there."""
    fs, inner = file_system(url)
    try:
        fs.put_file(path, inner)
    except Exception as error:
        raise Unreachable(f"{url} cannot be written: {words_of(error)}") from error


class Ranges:
    """Ranges of the file at `url`."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._fs, self._path = file_system(url)
        self._start, self._window = 0, b""
        self._next = -1

    def read_into(self, offset: int, buffer: numpy.ndarray, where: str) -> None:
        """Fills `buffer` (uint8) from byte `offset` on, which must lie within the file."""
        end = offset + buffer.size
        if not self._start <= offset <= end <= self._start + len(self._window):
            ahead = _AHEAD if offset == self._next else 0
            self._fetch(offset, min(max(end, offset + ahead), self._size), where)
        start = offset - self._start
        buffer[:] = numpy.frombuffer(self._window, numpy.uint8, buffer.size, start)
        self._next = end

    def _fetch(self, start: int, end: int, where: str) -> None:
        try:
            window = self._fs.cat_file(self._path, start=start, end=end)
        except Exception as error:
            raise Unreachable(f"{where}: {self._url} cannot be read: {words_of(error)}") from error
        if len(window) != end - start:
            raise BadInput(f"{where}: {self._url} changed while it was read")
        self._start, self._window = start, window
