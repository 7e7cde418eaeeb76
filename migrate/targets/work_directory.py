"""A directory that appears whole or not at all.

1. The work goes into a hidden directory beside the final place, on the same file system:
   `.NAME.partial`. One process at a time holds its lock. Of a URL it is in a scratch folder on
   disk, and only files not uploaded yet stand there: step 3 is the manifest's upload
   (`migrate.conversion.layout`).
2. Every file and the directory are synced to the disk.
3. One rename puts it into place; after it, the parent directory is synced. Where the place was
   taken meanwhile, the work is whole and stays where it is, to be moved: nothing is left to resume.
4. The lock is let go last, in place or in a directory that is otherwise empty: while work is there,
   nobody begins anew in it.

An error removes the hidden directory, except `Unfinished`, which says how to go on. An interruption
(Ctrl-C, kill -9, a power cut, a server that does not answer, a full disk) leaves it: the next
conversion resumes it, or gets a message that it is there.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import socket
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Optional

from migrate.manifest.manifest import FILE
from semisync.common.errors import SemisyncError, UsageError
from semisync.common.files import flush
from semisync.storage.remote import Unreachable, check_takes_files, is_remote, sizes_below

FILES = "files-"  # prefix of the folders of files not uploaded yet
LOCK = "lock"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a disk, a quota, ulimit -f


class Unfinished(SemisyncError):
    """An error after which the work that was done is kept; it says how to go on."""


def is_passing(error: BaseException) -> bool:
    """Whether the work can be resumed after an error: a server does not answer, a disk is full."""
    full = isinstance(error, OSError) and error.errno in _NO_ROOM
    return full or isinstance(error, (Unfinished, Unreachable))


def cannot_write(out: str, error: OSError) -> str:
    """The sentence for an error of the system in writing `out`."""
    return f"cannot write {out}: {error.strerror or error}"


def partial_path(out: str, scratch: Optional[str] = None) -> str:
    """The hidden directory that becomes `out`; of a URL, in `scratch` or the current directory."""
    if is_remote(out):
        out = out.rstrip("/")
        # Two URLs may end alike; their work must not meet in one scratch folder.
        name, number = os.path.basename(out), hashlib.sha256(out.encode()).hexdigest()[:12]
        return os.path.join(os.path.realpath(scratch or os.curdir), f".{name}-{number}.partial")
    parent, name = os.path.split(os.path.realpath(out))
    return os.path.join(parent, f".{name}.partial")


@contextmanager
def work_directory(
    out: str, needed: int, resume: bool = False, scratch: Optional[str] = None
) -> Iterator[str]:
    """Yields a directory to fill; moves it to `out` when the block ends without an exception, or,
    where `out` is a URL, removes it from `scratch`.

    A UsageError of the block leaves a resumed directory alone.

    Args:
        needed: bytes on disk.
        resume: continue an interrupted conversion, if any.

    Raises:
        UsageError: `out` holds something, an interrupted conversion is there and `resume` is
            false, another process is at work in it, or the disk has less room than is needed.
        Unfinished: the disk fills up, a server goes away, or `out` was taken meanwhile.
        SemisyncError: the disk refuses.
    """
    remote = is_remote(out)
    out = out if remote else os.path.realpath(out)
    refuse_existing(out, scratch)
    work = partial_path(out, scratch)
    parent = os.path.dirname(work)
    resumed = os.path.isdir(work)
    if resumed and not resume:
        raise UsageError(
            f"{work} holds a conversion that was interrupted or is under way; go on with it with "
            "--resume, or delete it"
        )
    with locked(work, work if remote else out):
        try:
            check_room(parent, needed - _written(work))
            if remote:
                check_takes_files(out)
            yield work
            if remote:
                discard(work)
            else:
                _move(work, out)
        except Unfinished:
            raise
        except Unreachable as error:
            raise Unfinished(f"{error}; what was done is kept, go on with --resume") from error
        except OSError as error:
            sentence = cannot_write(work if remote else out, error)
            if is_passing(error):
                raise Unfinished(
                    f"{sentence}; what was done is kept in {work}: make room and go on with "
                    "--resume, or delete it"
                ) from error
            discard(work)
            raise SemisyncError(sentence) from error
        except Exception as error:
            # Wrong options of a resumed run are no fault of the finished parts: these are kept.
            if not (resumed and isinstance(error, UsageError)):
                # Only `Uploads` makes such a folder: something may be in the store already.
                begun = any(name.startswith(FILES) for name in os.listdir(work))
                if begun and isinstance(error, SemisyncError):
                    error.args = (f"{error}; delete what was uploaded to {out}",)
                discard(work)
            raise


def _move(work: str, out: str) -> None:
    _sync_tree(work)
    try:
        refuse_existing(out)
        os.replace(work, out)
    except (OSError, UsageError) as error:
        why = cannot_write(out, error) if isinstance(error, OSError) else error
        raise Unfinished(f"{why}; the work is whole in {work}: move that to a new place") from error
    try:
        os.remove(os.path.join(out, LOCK))
        flush(out)
        flush(os.path.dirname(out))
    except OSError as error:
        raise Unfinished(
            f"{out} is whole, but a power cut may lose it: {error.strerror or error}; check the "
            "disk and run sync"
        ) from error


def discard(work: str) -> None:
    """Removes a locked directory, its lock last, as far as the system lets it."""
    with suppress(OSError):
        # The manifest first: without a job beside it, it says that the work is whole.
        for name in sorted(os.listdir(work), key=lambda name: name != FILE):
            path = os.path.join(work, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif name != LOCK:
                os.remove(path)
    shutil.rmtree(work, ignore_errors=True)


@contextmanager
def locked(work: str, written: str, patience: float = 0) -> Iterator[None]:
    """Makes the directory `work` and locks it, by LOCK in it, until the block ends.

    LOCK names the holder.

    Args:
        patience: seconds to wait for another process, which may be about to end.

    Raises:
        UsageError: another process has it; the message says which.
        SemisyncError: it cannot be made; the message names `written`.
    """
    try:
        os.makedirs(work, exist_ok=True)
        lock = os.open(os.path.join(work, LOCK), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise SemisyncError(cannot_write(written, error)) from error
    try:
        try:
            _take(lock, patience)
        except OSError as error:
            raise UsageError(
                f"another process is at work in {work}{_holder(lock)}; wait for it to end"
            ) from error
        if not os.fstat(lock).st_nlink:  # its holder removed it
            raise UsageError(
                f"another process has just ended its work in {work}; see what it has left"
            )
        _sign(lock)
        yield
    finally:
        os.close(lock)


def _take(lock: int, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.1)


def _sign(lock: int) -> None:
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    text = f"process {os.getpid()} on {socket.gethostname()}, since {since}"
    with suppress(OSError):  # of a full disk, which the work itself will tell
        os.ftruncate(lock, 0)
        os.pwrite(lock, text.encode(), 0)


def _holder(lock: int) -> str:
    """The holder of a lock, in brackets; "" where that has not been written yet."""
    text = os.pread(lock, 200, 0).decode(errors="replace")
    return f" ({text})" if text else ""


def check_room(parent: str, needed: int, what: str = "conversion") -> None:
    """Raises UsageError if the folder's disk does not have so many bytes free."""
    free = shutil.disk_usage(parent).free
    if free < needed:
        raise UsageError(
            f"{parent} has {free} bytes free, but the {what} needs {needed}; choose another disk "
            "or make room"
        )


def _written(work: str) -> int:
    """Bytes that the directory's files take on the disk."""
    paths = (os.path.join(at, name) for at, _, names in os.walk(work) for name in names)
    # Blocks, not sizes: a file has its full size from the start, and may be sparse. stat(2) counts
    # in 512 bytes on every file system.
    return sum(os.stat(path).st_blocks * 512 for path in paths)


def write_whole(path: str, text: str) -> None:
    """Writes a file in one step: even after a power cut it is whole, or as it was before."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def begin(path: str, description: str, work: str) -> None:
    """Records the job of `work`, or checks that it is the one begun there.

    Raises:
        UsageError: `path` has another description.
    """
    if not os.path.exists(path):
        write_whole(path, description)
        return
    with open(path, encoding="utf-8") as file:
        if file.read() != description:
            raise UsageError(
                f"{work} was begun with another plan, target, model or source; go on with those, "
                "or delete it and convert without --resume"
            )


def refuse_existing(out: str, scratch: Optional[str] = None) -> None:
    """Raises UsageError unless `out` is absent, empty, or a URL with a job to resume."""
    if is_remote(out):
        there, work = sizes_below(out), partial_path(out, scratch)
        if FILE in there:
            raise UsageError(f"{out} holds a conversion; give a new place")
        if there and not os.path.isdir(work):
            raise UsageError(
                f"{out} is not empty, and {work} is not there, which an interrupted conversion "
                "would have left; give a new place, or the --scratch folder of that conversion"
            )
        return
    if scratch is not None:
        raise UsageError(f"scratch is for a URL, which {out} is not; the work is done beside it")
    if os.path.isdir(out):
        if os.listdir(out):
            raise UsageError(f"{out} already exists and is not empty; give a new directory")
    elif os.path.lexists(out):
        raise UsageError(f"{out} already exists and is not a directory; give a new one")


def appeared(out: str) -> bool:
    """Whether the conversion into `out` is whole."""
    # An empty `out` may have been there before.
    return FILE in sizes_below(out) if is_remote(out) else os.path.exists(os.path.join(out, FILE))


def _sync_tree(directory: str) -> None:
    for folder, _, names in os.walk(directory):
        for name in names:
            flush(os.path.join(folder, name))
        flush(folder)
