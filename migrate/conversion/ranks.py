"""One conversion by several processes, on one host or on several with a shared file system: that of
the output or, where the output is an object store, of the scratch folder.

Rank 0
  1. enters in the journal the leftovers of an interrupted run's ranks, and writes `ranks.json`: the
     name of this run, how many ranks it has, and the numbers of the parts that are left. The rank r
     of n has every n-th of them from the r-th on;
  2. writes its own share, then enters the records of the others in the journal as they come;
  3. finishes the files and the manifest alone, and has both sides compared in the same way: a run
     of another name, whose parts are the shares of the tensors, and whose records the findings in
     them; hash tables it compares alone, id by id;
  4. says in `ranks.json` that all is done; or, wherever it was, that it has given up.

Every other rank
  1. waits for `ranks.json`, and joins: it begins `journal-RUN-RANK`, or `compared-RUN-RANK`;
  2. does its share, a line per part when the part is on disk, or compared, or one that says why it
     cannot;
  3. waits until rank 0 says that all is done. Where it reads of another run meanwhile, that is the
     comparison, or it had met the remains of an interrupted one: it joins the new one.

Both give up when no rank has written anything for `deadline` seconds, a line or what rank 0 sorts
of a hash table, and name the missing rank; what is there can be resumed, by any number of ranks.
No process group is needed.
"""

from __future__ import annotations

import glob
import os
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Callable, Iterator, List, Optional, Protocol, TypeVar

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion import job as jobs
from migrate.conversion import said
from migrate.conversion.job import Job
from migrate.conversion.layout import lay_out, parts_of, place_of
from migrate.conversion.said import Announcement
from migrate.launcher import Rank
from migrate.manifest.manifest import read_manifest
from migrate.open import open_checkpoint
from migrate.stream.writing import Place, Record, write_parts
from migrate.targets.work_directory import (
    Unfinished,
    appeared,
    cannot_write,
    is_passing,
    partial_path,
    refuse_existing,
)
from semisync.common.errors import SemisyncError, UsageError
from semisync.storage.remote import is_remote
from semisync.storage.threads import default_count

if TYPE_CHECKING:  # it imports torch
    from migrate.verification.shares import Found

_GIVEN_UP = "rank 0 has given up; what it says on stderr is the reason"


class _Numbered(Protocol):
    @property
    def part(self) -> int: ...


T = TypeVar("T", bound=_Numbered)


def take_in(directory: str) -> None:
    """Rank 0: enters in the journal the leftovers of an interrupted run's ranks."""
    # Before the journals are read: a rank of the interrupted run must find no more work.
    if os.path.exists(os.path.join(directory, said.FILE)):
        os.remove(os.path.join(directory, said.FILE))
    written, compared = (
        sorted(glob.glob(os.path.join(glob.escape(directory), name))) for name in said.JOURNALS
    )
    for path in written:
        for _ in jobs.append(directory, said.Reader(path, jobs.record_from).records()):
            pass
    for path in written + compared:
        os.remove(path)


@contextmanager
def led(directory: str) -> Iterator[None]:
    """Rank 0: if the block raises, announces to the other ranks that it has given up."""
    try:
        yield
    except Exception:
        with suppress(OSError):  # the first error is the one to report
            announced = said.read(directory)
            if announced is not None and not announced.over:
                said.write(directory, announced._replace(todo=[], over="given up"))
        raise


def written(
    directory: str,
    rank: Rank,
    last: bool,
    todo: List[int],
    write: Callable[[List[int]], Iterator[Record]],
) -> Iterator[Record]:
    """Rank 0: writes its share of the parts `todo`, and yields the records of all ranks.

    Args:
        last: whether this is the last work that the ranks share.
        write: writes some of the parts.

    Raises:
        SemisyncError: another rank met an error; Unfinished for a passing one, or a missing rank.
    """
    announced = Announcement(uuid.uuid4().hex, rank.size, todo)
    return _shared(directory, rank, announced, last, write, jobs.record_from)


def compared(
    directory: str,
    rank: Rank,
    folder: str,
    todo: List[int],
    compare: Callable[[List[int]], Iterator[Found]],
) -> Iterator[Found]:
    """Rank 0: compares its part of the shares `todo`, and yields the findings of all ranks.

    This is the last work that the ranks share.

    Args:
        folder: the manifest's.
        compare: compares some of the shares.

    Raises:
        SemisyncError: as `written`.
    """
    from migrate.verification.shares import found_from

    within = os.path.relpath(folder, directory)
    announced = Announcement(uuid.uuid4().hex, rank.size, todo, within)
    return _shared(directory, rank, announced, True, compare, found_from)


def _shared(
    directory: str,
    rank: Rank,
    announced: Announcement,
    last: bool,
    work: Callable[[List[int]], Iterator[T]],
    of_line: Callable[[str], T],
) -> Iterator[T]:
    # Announced before rank 0's own share, so that all ranks work at once.
    said.write(directory, announced)
    yield from work(announced.of(0))
    yield from _others(directory, rank, announced, of_line)
    if last:
        said.write(directory, announced._replace(todo=[], over="done"))


def _others(
    directory: str, rank: Rank, announced: Announcement, of_line: Callable[[str], T]
) -> Iterator[T]:
    """The records of all ranks but 0, as they come."""
    readers = {
        number: said.Reader(os.path.join(directory, announced.journal(number)), of_line)
        for number in range(1, rank.size)
    }
    left = {number: set(announced.of(number)) for number in readers}
    watch = said.Watch(directory, rank.deadline)
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
            work = "write" if announced.compares is None else "compare"
            raise Unfinished(
                f"nothing was heard for {rank.deadline:g} s of {_named(missing, rank.size)}, "
                f"which had {sum(len(left[n]) for n in missing)} parts to {work}; start all ranks "
                "again with --resume, or unset RANK and WORLD_SIZE to convert with one process"
            )


def assist(
    out: str, rank: Rank, workers: Optional[int] = None, scratch: Optional[str] = None
) -> int:
    """Writes and compares the share of a rank other than 0 in the conversion into `out`.

    Args:
        scratch: the same folder as rank 0's.

    Returns:
        How many parts it wrote.

    Raises:
        UsageError: the ranks disagree on how many they are.
        SemisyncError: rank 0 does not start or gives up.
        BadInput: the checkpoint is damaged.
    """
    refuse_existing(out, scratch)
    directory, parts = partial_path(out, scratch), 0
    watch = said.Watch(directory, rank.deadline)
    joined = None
    while True:
        announced = said.read(directory)
        # The job is gone: its work is whole, here or moved to its place, or a failure removes it.
        if announced is None and joined and not jobs.begun(directory):
            if appeared(directory) or appeared(out):
                return parts
            raise SemisyncError(_GIVEN_UP)
        if announced is not None and announced.size == rank.size:
            if announced.run == joined and announced.over == "done":
                return parts
            if announced.run == joined and announced.over:
                raise SemisyncError(_GIVEN_UP)
            # Each announcement has a run of its own: first the writing, then the comparing.
            if announced.run != joined and not announced.over:
                joined = announced.run
                done = _join(out, directory, announced, rank.number, workers)
                parts = done if announced.compares is None else parts
                watch = said.Watch(directory, rank.deadline)
        if watch.timed_out():
            if announced is not None and announced.size != rank.size:
                raise UsageError(f"WORLD_SIZE is {rank.size} here, and {announced.size} for rank 0")
            raise SemisyncError(
                f"nothing was heard for {rank.deadline:g} s of rank 0, which "
                + ("finishes the conversion" if joined else f"begins it in {directory}")
                + "; start all ranks again, with --resume where some had begun"
            )


def _join(
    out: str, directory: str, announced: Announcement, number: int, workers: Optional[int]
) -> int:
    """Does the share of the rank; returns how many parts it had."""
    opened, journal, mine = False, announced.journal(number), announced.of(number)
    try:
        job = jobs.read(directory)
        with open_checkpoint(job.source, newer=job.newer) as checkpoint:
            opened = True
            if announced.compares is not None:
                from migrate.verification.comparing import compare_some
                from migrate.verification.shares import found_line

                manifest = read_manifest(os.path.join(directory, announced.compares))
                where = out if is_remote(out) else directory
                found = compare_some(checkpoint, manifest, where, mine, workers)
                return sum(1 for _ in jobs.append(directory, found, journal, found_line))
            count = workers or default_count(job.source, out)
            place = _place(out, directory, job, checkpoint)
            records = write_parts(checkpoint, job.items, job.parts, directory, place, count, mine)
            return sum(1 for _ in jobs.append(directory, records, journal))
    except (OSError, SemisyncError) as error:
        sentence = cannot_write(out, error) if isinstance(error, OSError) else str(error)
        passing = is_passing(error) or not opened  # rank 0 could open it
        with suppress(OSError):  # on a full disk rank 0 times out, and names this rank
            jobs.fail(directory, journal, sentence, passing)
        raise SemisyncError(sentence) from error


def _place(out: str, directory: str, job: Job, checkpoint: Checkpoint) -> Place:
    if not is_remote(out):
        return Place(directory)
    layout = lay_out(job.target, job.items, checkpoint, out)
    if parts_of(layout, job.items, out) != job.parts:
        raise UsageError("rank 0 has laid out other files; run the same version as every rank")
    return place_of(out, directory, layout)


def _named(ranks: List[int], count: int) -> str:
    names = ", ".join(map(str, ranks))
    return f"rank{'s' if len(ranks) > 1 else ''} {names} of {count}"
