"""Files as pyarrow reads them, on disk or behind a URL; compressed ones are known by their name."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional

from semisync.storage import remote
from semisync.storage.unfolding import refuse_unfolding

_PIECE = 16 << 20  # bytes


class Packing(NamedTuple):
    """How a file is compressed: pyarrow's name for it, and such a file's first bytes."""

    codec: str
    magic: bytes


PACKED = {
    ".gz": Packing("gzip", b"\x1f\x8b"),
    ".bz2": Packing("bz2", b"BZh"),
    ".zst": Packing("zstd", b"\x28\xb5\x2f\xfd"),
}


def packing_of(path: str) -> Optional[Packing]:
    """How a file is compressed, by its name."""
    return PACKED.get(os.path.splitext(path)[1].lower())


def suffix_of(path: str) -> str:
    """The suffix of a file's name, before that of its compression, in lower case."""
    root, suffix = os.path.splitext(path)
    return (os.path.splitext(root)[1] if suffix.lower() in PACKED else suffix).lower()


def opened(path: str) -> Any:
    """A pyarrow.NativeFile of a file's bytes as they are stored, which reads at any place."""
    import pyarrow as pa  # when a file is opened: the command line comes here for --help too
    import pyarrow.fs

    if not remote.is_remote(path):
        return pa.OSFile(path)
    fs, inner = remote.file_system(path)
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs)).open_input_file(inner)


def streamed(path: str) -> Any:
    """A pyarrow.NativeFile of a file's bytes, decompressed, from the first to the last."""
    import pyarrow as pa

    packing, source = packing_of(path), opened(path)
    return source if packing is None else pa.CompressedInputStream(source, packing.codec)


def unpacked(path: str) -> bytes:
    """All bytes of a file, decompressed; raises BadInput if they are out of proportion to it."""
    with opened(path) as source:
        stored = source.size()
    whole = bytearray()
    with streamed(path) as source:
        for piece in iter(lambda: source.read(_PIECE), b""):
            whole += piece
            refuse_unfolding(len(whole), stored, path)
    return bytes(whole)
