"""Opening the files of a checkpoint, and saying clearly what stands there instead of one.

Only regular files are opened: a pipe or a device would make a reader wait for ever.
"""

from __future__ import annotations

import os
import re
import stat
from typing import BinaryIO

from semisync.errors import BadInput

TABLE_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")

_SUFFIX = re.compile(r"(\.index|\.meta|\.data-\d{5}-of-\d{5})$")
_V1_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def open_regular(path: str) -> BinaryIO:
    """Opens `path` unbuffered for reading; BadInput where it is missing or not a regular file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadInput(f"{path} is not a regular file; give the path of a checkpoint's file")
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error


def index_path(prefix: str) -> str:
    """Path of the index of the checkpoint `prefix`; BadInput names what was found instead."""
    index = prefix + ".index"
    if os.path.exists(index):
        return index
    if os.path.isdir(prefix):
        raise BadInput(
            f"{prefix} is a directory; give the prefix of one checkpoint{_suggestion(prefix)}"
        )
    bare = _SUFFIX.sub("", prefix)
    if bare != prefix:
        raise BadInput(f"{prefix} is one file of a checkpoint; give its prefix, {bare}")
    if _is_v1(prefix):
        raise BadInput(
            f"{prefix} is a checkpoint of the format V1, which is not supported yet; restore it "
            "in TensorFlow and save it with tf.train.Saver(write_version=tf.train.SaverDef.V2)"
        )
    raise BadInput(f"there is no checkpoint {prefix}: {index} does not exist")


def _suggestion(directory: str) -> str:
    found = sorted(name[:-6] for name in os.listdir(directory) if name.endswith(".index"))
    return f", for example {os.path.join(directory, found[-1])}" if found else ""


def _is_v1(prefix: str) -> bool:
    """V1 keeps everything in LevelDB tables named PREFIX or PREFIX-00000-of-0000N."""
    if os.path.exists(prefix):
        return _ends_with_magic(prefix)
    folder, base = os.path.split(prefix)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False  # the caller's own message says that nothing is there
    return any(
        name.startswith(base)
        and _V1_SHARD.fullmatch(name[len(base) :])
        and _ends_with_magic(os.path.join(folder, name))
        for name in names
    )


def _ends_with_magic(path: str) -> bool:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return size >= 8 and os.pread(file.fileno(), 8, size - 8) == TABLE_MAGIC
