"""One conversion by several processes, on one host or on several with a shared file system: that of
the output or, where the output is an object store, of the scratch folder.

Rank 0
  1. takes into the journal what ranks of an interrupted run have left, and writes `ranks.json`: the
     name of this run, how many ranks it has, and the numbers of the parts that are left. The rank r
     of n has every n-th of them from the r-th on;
  2. writes its own share, then enters the records of the others in the journal as they come;
  3. says in `ranks.json` that all is done, and finishes the conversion alone; or that it has given
     up.

Every other rank
  1. waits for `ranks.json`, and joins: it begins `journal-RUN-RANK`;
  2. writes its share, a line per part when the part is on disk, or one that says why it cannot;
  3. waits until rank 0 says that all is done. Where it reads of another run meanwhile, it had met
     the remains of an interrupted one, and joins the new one.

Both give up when no rank has written anything for `deadline` seconds, a line or what rank 0 sorts
of a hash table, and name the missing rank; what is there can be resumed, by any number of ranks.
No process group is needed.
"""

from __future__ import annotations

import glob
import json
import os
import time
import uuid
from contextlib import suppress
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion import job as jobs
from migrate.conversion.job import Job
from migrate.conversion.layout import lay_out, parts_of
from migrate.conversion.uploads import place_of
from migrate.launcher.environment import Rank
from migrate.open import open_checkpoint
from migrate.storage.remote import is_remote
from migrate.storage.threads import default_count
from migrate.stream.columns import FOLDER
from migrate.stream.writing import Place, Record, write_parts
from migrate.targets.work_directory import (
    Unfinished,
    appeared,
    cannot_write,
    is_passing,
    partial_path,
    refuse_existing,
    write_whole,
)
from semisync.common.errors import SemisyncError, UsageError

_FILE = "ranks.json"
_PAUSE = 0.05  # seconds between two polls
_GIVEN_UP = "rank 0 has given up; what it says on stderr is the reason"


def take_in(directory: str) -> None:
    """Rank 0: enters in the journal what the ranks of an interrupted run have left."""
    if os.path.exists(os.path.join(directory, _FILE)):
        os.remove(os.path.join(directory, _FILE))
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "journal-*"))):
        for _ in jobs.append(directory, _Reader(path).records()):
            pass
        os.remove(path)


def shared(
    directory: str,
    rank: Rank,
    todo: List[int],
    write: Callable[[List[int]], Iterator[Record]],
) -> Iterator[Record]:
    """Rank 0: the records of the parts `todo`, those of all ranks.

    Args:
        write: writes some of them.

    Raises:
        SemisyncError: another rank met an error; Unfinished for a passing one, or a missing rank.
    """
    announced = _Announcement(uuid.uuid4().hex, rank.size, todo)
    _write(directory, announced)
    try:
        yield from write(todo[:: rank.size])
        yield from _others(directory, rank, announced)
    except Exception:
        with suppress(OSError):  # the first error is the one to tell
            _write(directory, announced._replace(todo=[], over="given up"))
        raise
    _write(directory, announced._replace(todo=[], over="done"))


def _others(directory: str, rank: Rank, announced: _Announcement) -> Iterator[Record]:
    """The records of all ranks but 0, as they come."""
    run, todo = announced.run, announced.todo
    readers = {
        number: _Reader(os.path.join(directory, f"journal-{run}-{number}"))
        for number in range(1, rank.size)
    }
    left = {number: set(todo[number :: rank.size]) for number in readers}
    watch = _Watch(directory, rank.deadline)
    while any(left[number] or not reader.begun for number, reader in readers.items()):
        for number, reader in readers.items():
            for record in reader.records():
                left[number].discard(record.part)
                yield record
            if reader.failed is not None:
                sentence = f"rank {number} of {rank.size}: {reader.failed}"
                if reader.passing:
                    raise Unfinished(f"{sentence}; what was done is kept, go on with --resume")
                raise SemisyncError(sentence)
        if watch.timed_out():
            missing = [n for n, reader in readers.items() if left[n] or not reader.begun]
            raise Unfinished(
                f"nothing was heard for {rank.deadline:g} s of {_named(missing, rank.size)}, "
                f"which had {sum(len(left[n]) for n in missing)} parts to write; start all ranks "
                "again with --resume, or unset RANK and WORLD_SIZE to convert with one process"
            )


def assist(
    out: str, rank: Rank, workers: Optional[int] = None, scratch: Optional[str] = None
) -> int:
    """Any rank but 0: writes its share of the conversion into `out`; returns its parts.

    Args:
        scratch: the same folder as that of rank 0.

    Raises:
        UsageError: the ranks disagree on how many they are.
        SemisyncError: rank 0 does not come or gives up.
        BadInput: the checkpoint is damaged.
    """
    refuse_existing(out, scratch)
    directory, written = partial_path(out, scratch), 0
    watch = _Watch(directory, rank.deadline)
    joined = None
    while True:
        announced = _read(directory)
        if announced is None and joined and not os.path.exists(directory):
            if appeared(out):
                return written
            raise SemisyncError(_GIVEN_UP)
        if announced is not None and announced.size == rank.size:
            if announced.run == joined and announced.over == "done":
                return written
            if announced.run == joined and announced.over:
                raise SemisyncError(_GIVEN_UP)
            if announced.run != joined and not announced.over:
                joined = announced.run
                mine = announced.todo[rank.number :: rank.size]
                journal = f"journal-{joined}-{rank.number}"
                written = _join(out, directory, journal, mine, workers)
                watch = _Watch(directory, rank.deadline)
        if watch.timed_out():
            if announced is not None and announced.size != rank.size:
                raise UsageError(f"WORLD_SIZE is {rank.size} here, and {announced.size} for rank 0")
            raise SemisyncError(
                f"nothing was heard for {rank.deadline:g} s of rank 0, which "
                + ("finishes the conversion" if joined else f"begins it in {directory}")
                + "; start all ranks again, with --resume where some had begun"
            )


def _join(out: str, directory: str, journal: str, mine: List[int], workers: Optional[int]) -> int:
    opened = False
    try:
        job = jobs.read(directory)
        parts = ((number, job.parts[number]) for number in mine)
        with open_checkpoint(job.source, newer=job.newer) as checkpoint:
            opened = True
            count = workers or default_count(job.source, out)
            place = _place(out, directory, job, checkpoint)
            records = write_parts(checkpoint, job.items, parts, directory, place, count)
            return sum(1 for _ in jobs.append(directory, records, journal))
    except (OSError, SemisyncError) as error:
        sentence = cannot_write(out, error) if isinstance(error, OSError) else str(error)
        passing = is_passing(error) or not opened  # rank 0 could open it
        with suppress(OSError):  # on a full disk rank 0 waits in vain, and names this rank
            jobs.fail(directory, journal, sentence, passing)
        raise SemisyncError(sentence) from error


def _place(out: str, directory: str, job: Job, checkpoint: Checkpoint) -> Place:
    if not is_remote(out):
        return Place(directory)
    layout = lay_out(job.target, job.items, checkpoint, out)
    if parts_of(layout, job.items, out) != job.parts:
        raise UsageError("rank 0 has laid out other files; run the same version as every rank")
    return place_of(out, directory, layout)


class _Announcement(NamedTuple):
    """`ranks.json`.

    Attributes:
        todo: numbers of the parts that all share.
        over: "" while they are at work, then "done" or "given up".
    """

    run: str
    size: int
    todo: List[int]
    over: str = ""


class _Reader:
    """The records in a journal that another process writes.

    Attributes:
        begun: whether it is there.
        failed: what its writer could not do.
        passing: whether it may be able to later.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._position = 0
        self.begun = False
        self.failed: Optional[str] = None
        self.passing = False

    def records(self) -> Iterator[Record]:
        """Those that are new."""
        if not os.path.exists(self._path):
            return
        self.begun = True
        with open(self._path, "rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                data = json.loads(line)
                if "failed" in data:
                    self.failed, self.passing = data["failed"], data["passing"]
                else:
                    yield jobs.record_from(line.decode())


class _Watch:
    """Whether any rank still writes."""

    def __init__(self, directory: str, deadline: float) -> None:
        self._directory = directory
        self._deadline = deadline
        self._seen: Optional[Tuple[int, ...]] = None
        self._since = time.monotonic()

    def timed_out(self) -> bool:
        """Waits a moment; whether no journal and no staged table has grown for too long."""
        time.sleep(_PAUSE)
        of = glob.escape(self._directory)
        paths = glob.glob(os.path.join(of, "journal*")) + glob.glob(os.path.join(of, FOLDER, "*"))
        sizes = tuple(_size(path) for path in sorted(paths))
        if sizes != self._seen:
            self._seen, self._since = sizes, time.monotonic()
        return time.monotonic() - self._since > self._deadline


def _size(path: str) -> int:
    """In bytes; -1 where the file has just gone."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return -1


def _named(ranks: List[int], count: int) -> str:
    names = ", ".join(map(str, ranks))
    return f"rank{'s' if len(ranks) > 1 else ''} {names} of {count}"


def _read(directory: str) -> Optional[_Announcement]:
    try:
        with open(os.path.join(directory, _FILE), encoding="utf-8") as file:
            return _Announcement(**json.load(file))
    except FileNotFoundError:
        return None


def _write(directory: str, announced: _Announcement) -> None:
    write_whole(os.path.join(directory, _FILE), json.dumps(announced._asdict()))
