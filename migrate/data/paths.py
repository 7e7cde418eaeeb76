"""The files that paths stand for, on disk or behind a URL (s3://, hdfs://, ...), through fsspec.

A path is a file, a folder, or a pattern such as "log/day=*/*.parquet"; something that exists goes
before a pattern of the same text. In folders and patterns, names that begin with . or _ are a
writer's own (_SUCCESS, _temporary, .crc files) unless they are a partition, such as _day=1, and so
are files without a byte. A pattern inside a Delta table on disk stands for those of its files that
are in the table's last version. The folder of a Delta table and what is inside a Hudi table are
refused: only their logs know which files are part of them.
"""

from __future__ import annotations

import glob
import os
from typing import Any, Dict, Optional, Sequence, Tuple, Union
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs

from migrate.storage import remote
from parity.io.delta import in_last_version
from semisync.common.errors import BadInput

Paths = Union[str, "os.PathLike[str]", Sequence[Any]]

_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def files_of(paths: Paths) -> Dict[str, int]:
    """Each file's path and its bytes, sorted by path.

    Raises: BadInput where a path stands for no file, or for more than its files tell.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    found: Dict[str, int] = {}
    for path in paths:
        found.update(_files_of(os.fspath(path)))
    if not found:
        raise BadInput("no path is given; name the files, folders or patterns to read")
    return dict(sorted(found.items()))


def opened(path: str) -> Any:
    """A pyarrow.NativeFile that reads at any place."""
    if not remote.is_remote(path):
        return pa.OSFile(path)
    fs, inner = remote.file_system(path)
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs)).open_input_file(inner)


def partition_value(path: str, name: str) -> Tuple[bool, Optional[str]]:
    """Whether a folder of the path, such as day=2024-01-31, names a column, and its value."""
    for part in path.split("/")[:-1]:
        key, separator, value = part.partition("=")
        if separator and key == name:
            return True, None if value == _NULL_PARTITION else unquote(value)
    return False, None


def _files_of(path: str) -> Dict[str, int]:
    fs, inner = remote.file_system(path)
    try:
        if fs.isfile(inner):
            return _named(fs, path, {inner: int(fs.size(inner))})
        if fs.isdir(inner):
            found = _below(fs, inner)
        elif glob.has_magic(inner):
            found = _matching(fs, inner)
        else:
            raise BadInput(f"{path} does not exist")
        if _is_on_disk(fs):
            found = {name: found[name] for name in in_last_version(found)}
    except BadInput:
        raise
    except Exception as error:  # every file system has exceptions of its own
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadInput(f"{path} cannot be listed: {reason}") from error
    if not found:
        raise BadInput(f"{path} stands for no file that holds data")
    return _named(fs, path, found)


def _is_on_disk(fs: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(fs, LocalFileSystem)


def _named(fs: Any, path: str, found: Dict[str, int]) -> Dict[str, int]:
    """The files by names that can be opened again."""
    if remote.is_remote(path):
        return {str(fs.unstrip_protocol(name)): size for name, size in found.items()}
    return found


def _below(fs: Any, folder: str) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for name, info in fs.find(folder, detail=True).items():
        inside = name[len(folder) :]
        _refuse_table(folder, inside)
        if _is_hidden(inside):
            continue
        if info["type"] != "file" and fs.isdir(name):  # a link to a folder, on disk
            found.update(_below(fs, name))
        elif info["size"]:
            found[name] = int(info["size"])
    return found


def _matching(fs: Any, pattern: str) -> Dict[str, int]:
    found: Dict[str, int] = {}
    fixed = pattern
    while glob.has_magic(fixed):
        fixed = fixed.rpartition("/")[0]
    for name, info in fs.glob(pattern, detail=True).items():
        if _is_hidden(name[len(fixed) :]):
            continue
        if info["type"] == "directory":
            found.update(_below(fs, name))
        elif info["size"]:
            found[name] = int(info["size"])
    return found


def _is_hidden(path: str) -> bool:
    return any(
        name[0] == "." or (name[0] == "_" and "=" not in name)
        for name in path.split("/")
        if name not in ("", ".", "..")
    )


def _refuse_table(folder: str, inside: str) -> None:
    for part in inside.split("/"):
        if part in _LOGS:
            raise BadInput(
                f"{folder} has a {_LOGS[part]} table, whose folder may hold rows that are deleted "
                "or replaced; give the files of the version that you mean"
            )
