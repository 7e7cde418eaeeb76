"""Puts the checkpoint's files in place: they are beside it until all are whole.

1. The work goes into `.NAME.writing` beside PREFIX, NAME being the last part of PREFIX. One process
   at a time holds its lock; a killed one's leftovers are removed by the next.
2. Every file is synced to the disk, then moved: the data files, the MetaGraph, and last the index,
   without which there is no checkpoint.
3. With `overwrite` the old index goes first, so that no moment has the old index beside new data.

An error removes unfinished files. The lock is let go last of all.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager
from typing import Iterator, List

from migrate.targets.work_directory import LOCK, cannot_write, check_room, discard, locked
from semisync.common.errors import SemisyncError, UsageError
from semisync.common.files import check_writable, flush

_OF_CHECKPOINT = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})")


def refuse_taken(prefix: str, overwrite: bool) -> None:
    """Raises UsageError if a checkpoint cannot be written at `prefix`, or one is there already."""
    if prefix.endswith(os.sep) or os.path.isdir(prefix):
        raise UsageError(f"{prefix} is a directory; give the prefix of a checkpoint in it")
    taken = _files_of(prefix)
    if taken and not overwrite:
        raise UsageError(
            f"{taken[0]} already exists; give another prefix, or --overwrite to replace the "
            "checkpoint"
        )
    check_writable(prefix)


@contextmanager
def placing(prefix: str, needed: int, overwrite: bool) -> Iterator[str]:
    """Yields a directory to put files NAME.* into; moves them beside each other when the block ends
    without an exception, in place of a checkpoint that is there.

    Args:
        prefix: an absolute path.
        needed: bytes that will be written.

    Raises:
        UsageError: another process is at work there, or was since `refuse_taken` was asked, or the
            disk has less room.
        SemisyncError: it cannot be written.
    """
    parent, name = os.path.split(prefix)
    work = os.path.join(parent, f".{name}.writing")
    with locked(work, prefix):
        try:
            _empty(work)
            # Another may have ended since the caller asked.
            refuse_taken(prefix, overwrite)
            check_room(parent, needed, "checkpoint")
            yield work
            _move(work, prefix)
        except OSError as error:
            raise SemisyncError(cannot_write(prefix, error)) from error
        finally:
            discard(work)


def _empty(work: str) -> None:
    for name in _in(work):
        os.remove(os.path.join(work, name))


def _in(work: str) -> List[str]:
    return [name for name in os.listdir(work) if name != LOCK]


def _move(work: str, prefix: str) -> None:
    """Syncs the files and moves them, the index last."""
    # The index last: until it is there, TensorFlow sees no checkpoint.
    names = sorted(_in(work), key=lambda name: (name.endswith(".index"), name))
    for name in names:
        flush(os.path.join(work, name))
    parent = os.path.dirname(work)
    kept = {os.path.join(parent, name) for name in names}
    old = _files_of(prefix)
    for path in sorted(old, key=lambda path: not path.endswith(".index")):
        # Data files of another number of shards would stay beside the new ones.
        if path.endswith(".index") or path not in kept:
            os.remove(path)
    for name in names:
        os.replace(os.path.join(work, name), os.path.join(parent, name))
    flush(parent)


def _files_of(prefix: str) -> List[str]:
    """The files of the checkpoint that is at `prefix`."""
    prefix = os.path.join(os.path.realpath(os.path.dirname(prefix)), os.path.basename(prefix))
    found = glob.glob(glob.escape(prefix) + ".*")
    return sorted(path for path in found if _OF_CHECKPOINT.fullmatch(path[len(prefix) :]))
