"""A manifest: the files of a folder, by path, size and SHA-256, chunk by chunk.

Its JSON, in UTF-8, with sorted keys and without spaces, so that equal folders have equal bytes:

    {"chunk_size": 8388608,
     "files": [{"chunks": [SHA-256, ...], "path": "words/user.txt", "sha256": ..., "size": 12}],
     "job": "ctr-7",
     "schema": 1}

Files are sorted by path. A path is relative, its parts separated by "/"; the last chunk of a file
may be shorter, and an empty file has none. The SHA-256 of those bytes is the manifest's *digest*:
whoever has the digest from a place that they trust can take the manifest, and with it every byte of
the files, from anyone.
"""

import hashlib
import json
import os
import re
from typing import Any, Iterator, List, NamedTuple, Tuple

from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError

SCHEMA = 1
CHUNK_SIZE = 8 << 20  # bytes
PARTS = ".semisync-parts"  # a folder for what is not complete; no manifest has a file there
LARGEST = 64 << 20  # bytes of a manifest: 8 TiB of files
_MOST_FILES = 100000
_LONGEST_PATH = 1024  # bytes
_DIGEST = re.compile("[0-9a-f]{64}")
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class File(NamedTuple):
    """A file: its path, its bytes, its SHA-256 and those of its chunks, in hexadecimal."""

    path: str
    size: int
    sha256: str
    chunks: Tuple[str, ...]


class Chunk(NamedTuple):
    """A chunk: its number among all of the manifest, the file, its first byte there, its bytes."""

    number: int
    file: File
    first: int
    size: int
    sha256: str


class Manifest(NamedTuple):
    """The files of a folder.

    Attributes:
        job: the id of the job to which they belong.
        chunk_size: bytes of every chunk but the last of a file.
        files: sorted by path.

    Examples:
        >>> manifest = files.make_manifest("vocabularies", job="ctr-7")
        >>> [file.path for file in manifest.files], len(manifest.digest)
        (['user.txt'], 64)
    """

    job: str
    chunk_size: int
    files: Tuple[File, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of `to_bytes()`, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The JSON of the module's description.

        Returns:
            The JSON that the module describes.
        """
        value = {
            "schema": SCHEMA,
            "job": self.job,
            "chunk_size": self.chunk_size,
            "files": [file._asdict() for file in self.files],
        }
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")

    def chunks(self) -> List[Chunk]:
        """Every chunk, in the order of the files; a chunk's number is its place in the list.

        Returns:
            A list; a chunk's number is its place in it.
        """
        return list(self._chunks())

    def _chunks(self) -> Iterator[Chunk]:
        number = 0
        for file in self.files:
            for place, sha256 in enumerate(file.chunks):
                first = place * self.chunk_size
                size = min(self.chunk_size, file.size - first)
                yield Chunk(number, file, first, size, sha256)
                number += 1


def is_digest(text: Any) -> bool:
    """Whether `text` is a SHA-256 in lower-case hexadecimal digits."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def make_manifest(folder: Any, job: str, chunk_size: int = CHUNK_SIZE) -> Manifest:
    """Reads every file below `folder` once.

    Args:
        folder: str or path.
        job: the job's id: letters, digits, ".", "_" and "-".
        chunk_size: bytes.

    Returns:
        A `Manifest`.

    Raises:
        UsageError: `job` is not an id, or `folder` no folder.
        BadInput: there is a symbolic link or a device, a path that cannot be published, no file at
            all, or a file that changed while it was read.

    Examples:
        >>> files.make_manifest("vocabularies", job="ctr-7").files[0].size
        8
    """
    if not _JOB.fullmatch(job):
        raise UsageError(
            "{!r} is not a job's id: up to 100 letters, digits, '.', '_' and '-', such as "
            "'ctr-7'".format(job)
        )
    top = os.fspath(folder)
    if not os.path.isdir(top):
        raise UsageError("{}: there is no such folder to publish".format(top))
    paths = sorted(_paths(top, ""))
    files = tuple(_read(os.path.join(top, path), path, chunk_size) for path in paths)
    if not files:
        raise BadInput("{}: there is no file to publish".format(top))
    return Manifest(job, chunk_size, files)


def _paths(top: str, below: str) -> Iterator[str]:
    with os.scandir(os.path.join(top, below)) as entries:
        for entry in entries:
            path = below + entry.name
            if path == PARTS:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(top, path + "/")
            elif entry.is_file(follow_symlinks=False):
                yield checked_path(path, top)
            else:
                raise BadInput(
                    "{}: {} is neither a file nor a folder (a symbolic link, perhaps); publish a "
                    "folder of plain files".format(top, path)
                )


def _read(place: str, path: str, chunk_size: int) -> File:
    whole, chunks = hashlib.sha256(), []
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
    with open(descriptor, "rb", buffering=0) as stream:
        before = os.fstat(descriptor)
        while True:
            data = _exactly(stream, chunk_size)
            if not data:
                break
            whole.update(data)
            chunks.append(hashlib.sha256(data).hexdigest())
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise BadInput("{} changed while it was read; publish it once it is whole".format(place))
    return File(path, after.st_size, whole.hexdigest(), tuple(chunks))


def _exactly(stream: Any, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the file."""
    parts, left = [], size
    while left:
        part = stream.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_manifest(data: bytes, digest: str, where: str) -> Manifest:
    """The `Manifest` whose JSON is `data`.

    Args:
        digest: that it must have.
        where: where the bytes come from, for the message.

    Raises:
        BadInput: the bytes have another digest, or are not a manifest.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadInput("{}: its manifest has another SHA-256 than {}".format(where, digest))
    try:
        value = json_text.loads(data.decode("utf-8"))
        if value["schema"] != SCHEMA:
            raise BadInput(
                "{}: its manifest has schema {!r}, and this semisync reads {}".format(
                    where, value["schema"], SCHEMA
                )
            )
        files = tuple(
            File(file["path"], file["size"], file["sha256"], tuple(file["chunks"]))
            for file in value["files"]
        )
        manifest = Manifest(value["job"], value["chunk_size"], files)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput("{}: its manifest cannot be read: {!r}".format(where, error)) from error
    _check(manifest, where)
    return manifest


def _check(manifest: Manifest, where: str) -> None:
    size = manifest.chunk_size
    named = isinstance(manifest.job, str) and _JOB.fullmatch(manifest.job)
    sized = type(size) is int and 0 < size <= 1 << 30
    if not (named and sized) or not 0 < len(manifest.files) <= _MOST_FILES:
        raise BadInput("{}: its manifest has no job, no chunk size or no files".format(where))
    paths = [checked_path(file.path, where) for file in manifest.files]
    if paths != sorted(set(paths)):
        raise BadInput("{}: the paths of its manifest are not sorted, each once".format(where))
    folders = {path[:at] for path in paths for at, c in enumerate(path) if c == "/"}
    both = sorted(folders.intersection(paths))
    if both:
        raise BadInput("{}: {} is a file and a folder in its manifest".format(where, both[0]))
    for file in manifest.files:
        whole = type(file.size) is int and file.size >= 0
        if not whole or len(file.chunks) != -(-file.size // size):
            raise BadInput("{}: {} has no size that fits its chunks".format(where, file.path))
        if not all(map(is_digest, (file.sha256,) + file.chunks)):
            raise BadInput("{}: {} has no SHA-256".format(where, file.path))


def checked_path(path: Any, where: str) -> str:
    """Checks that a path names a file below a folder on every system, and returns it.

    Raises:
        BadInput: it is absolute, has "..", an empty part, a control character or a backslash, is
            not UTF-8, or is too long.
    """
    parts = path.split("/") if isinstance(path, str) else [""]
    right = not any(part in ("", ".", "..") for part in parts) and parts[0] != PARTS
    right = right and path.isprintable() and "\\" not in path
    try:
        right = right and len(path.encode("utf-8")) <= _LONGEST_PATH
    except UnicodeEncodeError:
        right = False
    if not right or _has_long_part(parts):
        raise BadInput(
            "{}: {!r} cannot be published: a path is relative, printable and at most {} bytes "
            "long".format(where, path, _LONGEST_PATH)
        )
    return path


def _has_long_part(parts: List[str]) -> bool:
    """Whether a part is longer than file systems take: 255 bytes."""
    return any(len(part.encode("utf-8", "replace")) > 255 for part in parts)
