"""A directory that appears whole or not at all.

1. The work goes into a hidden directory beside the final place, on the same file system.
2. Every file and the directory are synced to the disk.
3. One rename puts it into place; after it, the parent directory is synced.

An exception removes the hidden directory. A killed process leaves `.NAME.XXXXXXXX.partial`, which
nobody reads and which may be deleted.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from typing import Iterator

from semisync.errors import SemisyncError, UsageError


@contextmanager
def staged(out: str, needed: int) -> Iterator[str]:
    """Yields a directory to fill; moves it to `out` when the block ends without an exception.

    needed: bytes that will be written. Raises UsageError where `out` holds something, and
    SemisyncError where the disk has no room or refuses.
    """
    out = os.path.realpath(out)
    parent, name = os.path.split(out)
    refuse_existing(out)
    work = os.path.join(parent, f".{name}.{secrets.token_hex(4)}.partial")
    try:
        os.makedirs(parent, exist_ok=True)
        free = shutil.disk_usage(parent).free
        if free < needed:
            raise SemisyncError(
                f"{parent} has {free} bytes free, but the conversion needs {needed}; "
                "choose another disk or make room"
            )
        os.mkdir(work)
        yield work
        _sync_tree(work)
        refuse_existing(out)
        os.replace(work, out)
        _sync(parent)
    except OSError as error:
        shutil.rmtree(work, ignore_errors=True)
        raise SemisyncError(f"cannot write {out}: {error.strerror or error}") from error
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def refuse_existing(out: str) -> None:
    """UsageError where `out` is anything but absent or an empty directory."""
    if os.path.isdir(out):
        if os.listdir(out):
            raise UsageError(f"{out} already exists and is not empty; give a new directory")
    elif os.path.lexists(out):
        raise UsageError(f"{out} already exists and is no directory; give a new one")


def _sync_tree(directory: str) -> None:
    for folder, _, names in os.walk(directory):
        for name in names:
            _sync(os.path.join(folder, name))
        _sync(folder)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
