"""A manifest: files by path, size and SHA-256, and the copy of them that is handed out.

Its JSON, in UTF-8, with sorted keys and without spaces, so that equal files have equal bytes:

    {"files": [{"executable": false, "path": "files/words/user.txt", "sha256": ..., "size": 12}],
     "schema": 2}

Files are sorted by path. A path is relative, its parts separated by "/". The SHA-256 of those bytes
is the manifest's *digest*: whoever has the digest from a place that they trust can take the
manifest, and with it every byte of the files, from anyone.
"""

import hashlib
import json
import os
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from semisync.common import json_text
from semisync.common.errors import BadInput

SCHEMA = 2
LARGEST = 64 << 20  # bytes of a manifest
BLOCK = 1 << 20  # bytes that are read at once
LEFT_OUT = ("__pycache__", ".git")  # folders that change while the files in use do not
_MOST_FILES = 100000
_LONGEST_PATH = 1024  # bytes
_LONGEST_NAME = 255  # bytes; file systems take no longer one


class File(NamedTuple):
    """A file: its path, its bytes, its SHA-256 in hexadecimal, and whether it is a program."""

    path: str
    size: int
    sha256: str
    executable: bool


class Manifest(NamedTuple):
    """Some files, sorted by path."""

    files: Tuple[File, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of `to_bytes()`, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The JSON of the module's description."""
        value = {"schema": SCHEMA, "files": [file._asdict() for file in self.files]}
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")


def copy(sources: List[Tuple[str, str]], into: str) -> Manifest:
    """Copies files and folders, so that later changes to the originals have no effect.

    Args:
        sources: (path on disk, path in the manifest) of each; "" puts a folder's contents there.
        into: a folder, in which each file has the path that it has in the manifest.

    Raises:
        BadInput: there is no file, or something else (a symbolic link or a device), a path that
            cannot be handed out, two files of one path, or a file that cannot be read.
    """
    found: Dict[str, str] = {}
    for place, name in sources:
        for inner, path in _files(place, name):
            if path in found:
                raise BadInput("{} and {} would both be {}".format(found[path], inner, path))
            found[path] = inner
    if not found:
        raise BadInput("{}: there is no file".format(", ".join(place for place, _ in sources)))
    files = tuple(_copied(found[path], path, into) for path in sorted(found))
    made = Manifest(files)
    _check(made, ", ".join(place for place, _ in sources))
    return made


def _files(place: str, path: str) -> Iterator[Tuple[str, str]]:
    """(place on disk, path) of each file at or below a place."""
    if os.path.islink(place) or not (os.path.isfile(place) or os.path.isdir(place)):
        raise BadInput(
            "{}: it is not there, or neither a file nor a folder (a symbolic link, perhaps)".format(
                place
            )
        )
    if os.path.isfile(place):
        yield place, checked_path(path, place)
        return
    for name in os.listdir(place):
        if name not in LEFT_OUT:
            yield from _files(os.path.join(place, name), path + "/" + name if path else name)


def _copied(place: str, path: str, into: str) -> File:
    target, digest, size = os.path.join(into, path), hashlib.sha256(), 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        # No link is followed: the file may have become one since `_files` looked.
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source:
            executable = bool(os.fstat(source.fileno()).st_mode & stat.S_IXUSR)
            with open(target, "xb") as copied:
                for block in iter(lambda: source.read(BLOCK), b""):
                    digest.update(block)
                    size += copied.write(block)
    except OSError as error:
        raise BadInput("{} cannot be copied: {}".format(place, error.strerror)) from error
    return File(path, size, digest.hexdigest(), executable)


def read_manifest(data: bytes, digest: str) -> Manifest:
    """The `Manifest` whose JSON is `data`.

    Raises:
        BadInput: the bytes have another digest, or are not a manifest.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadInput("the manifest has another SHA-256 than {}".format(digest))
    try:
        value = json_text.loads(data.decode("utf-8"))
        if value["schema"] != SCHEMA:
            raise BadInput(
                "the manifest has schema {!r}, and this semisync reads {}: have the same version "
                "on all machines".format(value["schema"], SCHEMA)
            )
        manifest = Manifest(tuple(File(**file) for file in value["files"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput("the manifest cannot be read: {!r}".format(error)) from error
    _check(manifest, "the manifest")
    return manifest


def _check(manifest: Manifest, where: str) -> None:
    if not 0 < len(manifest.files) <= _MOST_FILES:
        raise BadInput("{}: from 1 to {:,} files were expected".format(where, _MOST_FILES))
    paths = [checked_path(file.path, where) for file in manifest.files]
    if paths != sorted(set(paths)):
        raise BadInput("{}: its paths are not sorted, each once".format(where))
    folders = {path[:at] for path in paths for at, c in enumerate(path) if c == "/"}
    both = sorted(folders.intersection(paths))
    if both:
        raise BadInput("{}: {} is a file and a folder".format(where, both[0]))
    for file in manifest.files:
        if type(file.size) is not int or file.size < 0 or type(file.executable) is not bool:
            raise BadInput("{}: {} has no size".format(where, file.path))


def checked_path(path: Any, where: str) -> str:
    """Checks that a path names a file below a folder on every system, and returns it.

    Raises:
        BadInput: it is absolute, has "..", an empty part, a control character or a backslash, is
            not UTF-8, or is too long.
    """
    parts = path.split("/") if isinstance(path, str) else [""]
    right = not any(part in ("", ".", "..") for part in parts)
    right = right and path.isprintable() and "\\" not in path
    try:
        right = right and len(path.encode("utf-8")) <= _LONGEST_PATH
        right = right and all(len(part.encode("utf-8")) <= _LONGEST_NAME for part in parts)
    except UnicodeEncodeError:
        right = False
    if not right:
        raise BadInput(
            "{}: {!r} cannot be handed out: a path is relative, printable and at most {} bytes "
            "long".format(where, path, _LONGEST_PATH)
        )
    return path
