"""The files of folders, on disk or behind a URL (s3://, hdfs://, ...) through fsspec.

Names are returned as they can be opened: URLs for URLs, and paths on disk as relative as the given
one. `skips` decides by a name, without its folder, whether to leave out a file, or a folder with
all that is in it.
"""

from __future__ import annotations

import glob
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from semisync.common.errors import BadInput
from semisync.storage import remote

Skips = Callable[[str], bool]

_LINKS = 40  # followed on one path behind a URL, as many as Linux follows on its own


def is_file(path: str) -> bool:
    """Whether something exists at `path` that is not a folder."""
    if remote.is_remote(path):
        fs, inner = remote.file_system(path)
        return bool(fs.isfile(inner))
    return os.path.exists(path) and not os.path.isdir(path)


def is_folder(path: str) -> bool:
    """Whether `path` is a folder."""
    if remote.is_remote(path):
        fs, inner = remote.file_system(path)
        return bool(fs.isdir(inner))
    return os.path.isdir(path)


def size_of(path: str) -> int:
    """Bytes of a file that exists."""
    if remote.is_remote(path):
        fs, inner = remote.file_system(path)
        return int(fs.size(inner))
    return os.path.getsize(path)


def above(path: str) -> Optional[str]:
    """The folder that something lies in, by its absolute name; None for the topmost."""
    scheme, mark, inner = path.rpartition("://")
    folder = os.path.dirname(inner)
    return None if folder in ("", inner) else scheme + mark + folder


def absolute(path: str) -> str:
    """A name that is the same from every folder."""
    if remote.is_remote(path):
        fs, inner = remote.file_system(path)
        return str(fs.unstrip_protocol(inner))
    return os.path.abspath(path)


def joined(folder: str, name: str) -> str:
    """A name in a folder."""
    return f"{folder.rstrip('/')}/{name}" if remote.is_remote(folder) else f"{folder}/{name}"


def names_in(folder: str) -> List[str]:
    """The names in a folder itself, sorted."""
    if remote.is_remote(folder):
        fs, inner = remote.file_system(folder)
        return sorted(name.rstrip("/").rpartition("/")[2] for name in fs.ls(inner, detail=False))
    return sorted(os.listdir(folder))


def below(folder: str, skips: Skips) -> Dict[str, int]:
    """Every file in a folder, at any depth and through links, and its bytes.

    Raises:
        BadInput: a link leads to a folder in which it lies.
    """
    if not remote.is_remote(folder):
        walk = _walk(folder, skips, _raised)
        paths = [os.path.join(root, name) for root, names in walk for name in names]
        return {path: os.path.getsize(path) for path in paths}
    fs, inner = remote.file_system(folder)
    found = below(inner, skips) if remote.is_disk(fs) else _listed(fs, inner, skips, 0)
    return {str(fs.unstrip_protocol(name)): size for name, size in found.items()}


def matching(pattern: str, skips: Skips) -> Dict[str, Optional[int]]:
    """The files that a pattern matches, and their sizes in bytes; None for a folder.

    Args:
        skips: takes names from the first wildcard on.

    Raises:
        BadInput: `**` stands for folders with a link to one in which it lies.
    """
    if remote.is_remote(pattern):
        fs, inner = remote.file_system(pattern)
        matched = fs.glob(inner, detail=True).items()
        return {
            str(fs.unstrip_protocol(name)): None if info["type"] == "directory" else info["size"]
            for name, info in matched
            if not _skipped(name[len(literal(inner)) :], skips)
        }
    start = literal(pattern) or "."
    for folder in _searched(pattern):
        for _ in _walk(folder, lambda name: name.startswith("."), None):
            pass  # glob would follow circles; like it, passes over what cannot be listed
    return {
        name: None if os.path.isdir(name) else os.path.getsize(name)
        for name in glob.glob(pattern, recursive=True)
        if not _skipped(os.path.relpath(name, start), skips)
    }


def literal(pattern: str) -> str:
    """The folder that a pattern names before its first wildcard."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _searched(pattern: str) -> List[str]:
    """The folders in which a pattern's first `**` looks at any depth; none without one."""
    names = pattern.split("/")
    if "**" not in names:
        return []
    head = "/".join(names[: names.index("**")])
    return glob.glob(head or ("/" if pattern.startswith("/") else "."))


def _listed(fs: Any, folder: str, skips: Skips, links: int) -> Dict[str, int]:
    """`below` behind a URL, where a listing may end at a link to a folder (sftp, smb)."""
    found: Dict[str, int] = {}
    for name, info in fs.find(folder, detail=True).items():
        if _skipped(name[len(folder) :], skips):
            continue
        if info["type"] != "file" and fs.isdir(name):
            if links == _LINKS:
                raise BadInput(f"{name} leads in circles: remove the link, or name the files")
            found.update(_listed(fs, name, skips, links + 1))
        else:
            found[name] = int(info["size"])
    return found


def _walk(
    top: str, skips: Skips, failed: Optional[Callable[[OSError], None]]
) -> Iterator[Tuple[str, List[str]]]:
    """Every folder in `top` with the names of its files, as os.walk has them, through links."""
    within: Dict[str, Tuple[str, ...]] = {top: (os.path.realpath(top),)}
    for root, folders, files in os.walk(top, onerror=failed, followlinks=True):
        folders[:] = [name for name in folders if not skips(name)]
        above = within.pop(root)
        for name in folders:
            path, real = os.path.join(root, name), os.path.join(above[-1], name)
            if os.path.islink(path):  # else there is nothing to resolve, at a look per part of it
                real = os.path.realpath(path)
            if real in above:
                raise BadInput(f"{path} leads back to {real}: remove the link, or name the files")
            within[path] = (*above, real)
        yield root, [name for name in files if not skips(name)]


def _skipped(inside: str, skips: Skips) -> bool:
    return any(skips(name) for name in inside.split("/") if name not in ("", ".", ".."))


def _raised(error: OSError) -> None:
    raise error
