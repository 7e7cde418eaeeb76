"""The files that the paths of a data set match, by the rules of `parity.io.data_files`."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence, Union

from parity.io.data_files import sizes_of
from semisync.common.errors import BadInput
from semisync.common.ordering import by_numbers
from semisync.storage import folders

Paths = Union[str, "os.PathLike[str]", Sequence[Any]]


def files_of(paths: Paths, written: bool = False) -> Dict[str, int]:
    """Each file's absolute path and its size in bytes, sorted by path, part-2 before part-10.

    Args:
        written: whether the format of text files is known.

    Raises:
        BadInput: a path matches no file, or a file that may not be data.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    found: Dict[str, int] = {}
    for path in paths:
        files = sizes_of(os.fspath(path), written)
        found.update((folders.absolute(name), size) for name, size in files.items())
    if not found:
        raise BadInput("no path is given; name the files, folders or patterns to read")
    return {name: found[name] for name in sorted(found, key=by_numbers)}


def other_order(paths: Paths, written: bool = False) -> Optional[str]:
    """A warning if files are named in another order than that of `files_of`, in which they are
    read; else None.

    Args:
        written: as of `files_of`.
    """
    if isinstance(paths, (str, os.PathLike)) or len(paths) < 2:
        return None
    named = list(dict.fromkeys(name for path in paths for name in files_of(path, written)))
    for first, read in zip(named, sorted(named, key=by_numbers)):
        if first != read:
            return f"the files are read in the order of their paths: {read} before {first}"
    return None
