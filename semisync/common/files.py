"""Atomic files: another process finds the old file or the new one, never a part.

A long command calls `check_writable` on its output first.
"""

import contextlib
import json
import os
import pathlib
import tempfile
import threading

from semisync.common.errors import BadInput, UsageError

LARGEST_TEXT = 64 << 20  # bytes of a file that is read as a whole


def check_writable(path):
    """Raises UsageError if no file or folder can be written at `path` on disk.

    Neither `path` nor the folders above it need to exist; they are not made.
    """
    if "://" in str(path):
        raise UsageError("{} is a URL; name a place on disk, and copy it when whole".format(path))
    place = pathlib.Path(os.path.realpath(str(path)))
    if not place.is_dir():
        place = next(above for above in place.parents if above.exists())
    try:
        with tempfile.TemporaryFile(dir=str(place)):
            pass
    except OSError as error:
        raise UsageError(
            "{} cannot be written, since {} takes no file ({}); name another place".format(
                path, place, error.strerror
            )
        ) from error


@contextlib.contextmanager
def replacing(path):
    """Yields a path beside `path` to write to, and moves it there; a failure leaves nothing."""
    path = pathlib.Path(path)
    # In the same folder: os.replace is atomic within one file system only.
    own = "{}.{}".format(os.getpid(), threading.get_ident())
    beside = path.with_name(".{}.{}".format(path.name, own))
    try:
        yield beside
        os.replace(str(beside), str(path))
    finally:
        if beside.exists():
            beside.unlink()


def flush(path):
    """Waits until the file or directory at `path` is on the disk."""
    descriptor = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path):
    """The text in UTF-8 of the file at `path`; raises BadInput if it cannot be read."""
    try:
        if os.path.getsize(str(path)) > LARGEST_TEXT:
            raise BadInput("{} has more than {:,} bytes of text".format(path, LARGEST_TEXT))
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("{} cannot be read: {}".format(path, error)) from error


def write_bytes(path, data):
    """Writes `data` beside its place and moves it there; a failure leaves nothing."""
    with replacing(path) as beside:
        beside.write_bytes(data)


def write_text(path, text):
    """Writes `text` in UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path, value):
    """Writes `value` as JSON, as `write_bytes` does."""
    write_text(path, json.dumps(value))
