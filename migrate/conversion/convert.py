"""Carrying out a plan: stream a checkpoint's tensors into a torch checkpoint.

Memory is bounded, a few MiB per thread (32 where rows are dealt out from very many partitions),
whatever the size of a table, for nothing is kept that has been written:

1. The plan is checked against the checkpoint before anything is written
   (`migrate.planning.checking`); hash tables are brought into the order of the target
   (`migrate.ids.sorted_tables`).
2. The target lays itself out: it gives every chunk of every tensor its place in a file, and writes
   the bytes between them (`migrate.stream.regions`, `migrate.targets`).
3. The chunks are grouped into parts of 64 MiB. Threads read, check, transform, hash and write
   them, in any order; rows come in the order of the ids, however they lie in the partitions of the
   source (`migrate.stream.writing`).
4. Each finished part is synced to the disk and entered in a journal (`migrate.conversion.job`).
   A conversion ended by kill -9 can be resumed: the parts in the journal are not written again.
5. When all parts are there, the crc32c of every stored piece is put together from those of its
   ranges and compared with the index; the target's own index and the manifest are written; both
   sides are read once more and compared (`migrate.verification`), unless the caller says no.
6. The model's source and its files are written beside the data, where the caller gives one, and the
   manifest gets its names (`migrate.conversion.model_names`).
7. The directory gets its name when it is whole (`migrate.targets.work_directory`). Files for an
   object store are uploaded one by one, the manifest last (`migrate.conversion.layout`).
"""

from __future__ import annotations

import os
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion import job as jobs
from migrate.conversion import ranks
from migrate.conversion.items import Hashed, check_names, items
from migrate.conversion.job import Job
from migrate.conversion.layout import begin, finish, lay_out, needed_on_disk, parts_of, place_of
from migrate.conversion.manifest import manifest_of, write_manifest
from migrate.hash_tables.hash_table import HashTable
from migrate.ids import sorted_tables
from migrate.launcher import ALONE, Rank
from migrate.manifest.manifest import FILE, Manifest, read_manifest
from migrate.open import open_checkpoint, open_hash_tables
from migrate.planning.checking import check_plan
from migrate.planning.plan import Plan
from migrate.stream.item import Item
from migrate.stream.writing import Place, Record, Run, check_source, write_parts
from migrate.targets import TARGETS
from migrate.targets.work_directory import refuse_existing, work_directory
from semisync.common.errors import SemisyncError, UsageError
from semisync.storage.remote import is_remote
from semisync.storage.threads import default_count

if TYPE_CHECKING:
    from migrate.model.load import Written

Progress = Callable[[int, int], None]


def convert(
    plan: Plan,
    out: str,
    target: str = "dcp",
    progress: Optional[Progress] = None,
    workers: Optional[int] = None,
    resume: bool = False,
    verify: bool = True,
    rank: Rank = ALONE,
    scratch: Optional[str] = None,
    model: Optional[Written] = None,
) -> Manifest:
    """Writes the torch checkpoint that `plan` describes into the directory `out`.

    Args:
        plan: from `migrate.plan`.
        out: absent or an empty directory, which appears when it is complete; or a URL that fsspec
            serves, where the manifest appears last.
        target: "dcp" or "safetensors".
        progress: called with (bytes done, bytes in all) as the work goes on.
        workers: threads that read, write and compare; by default one per CPU, at most four, and
            eight for a URL.
        resume: go on with a conversion of the same plan that was interrupted, where there is one.
        verify: read both sides again and compare them.
        rank: rank 0 of several processes that share the work; the others call
            `migrate.conversion.ranks.assist`.
        scratch: where `out` is a URL: a folder on disk for the files that are not uploaded yet, by
            default the current directory.
        model: the model around the tables, from `migrate.model.load.write_source`: model.py and
            its files are written too.

    Returns:
        The `Manifest` of the result.

    Raises:
        UsageError: a target that is not known, an `out` that holds something, or an interrupted
            conversion that is not to be resumed.
        BadInput: plan and checkpoint do not fit, or the checkpoint is damaged.
        SemisyncError: the result does not verify.
        Unfinished: a server no longer answers or the disk is full; resume it later.

    Examples:
        >>> checkpoint = migrate.open_checkpoint("model.ckpt-40000")
        >>> manifest = migrate.convert(migrate.plan(checkpoint), "new")
        >>> sorted(table.name for table in manifest.tables)
        ['cities', 'products']
    """
    if target not in TARGETS:
        raise UsageError(f"target {target!r} is not supported, expected one of {list(TARGETS)}")
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}, expected at least 1")
    out = os.fspath(out)
    refuse_existing(out, scratch)
    with open_checkpoint(plan.source, newer=plan.newer) as checkpoint:
        sources = open_hash_tables(checkpoint, plan.meta) if plan.hash_tables else {}
        check_plan(plan, checkpoint, sources)
        threads = workers or default_count(checkpoint.prefix, out)
        needed = needed_on_disk(items(plan, checkpoint, {}), target, out, threads * rank.size)
        needed += sorted_tables.room(plan.hash_tables, sources)
        with work_directory(out, needed, resume, scratch) as directory:
            work = _Work(checkpoint, directory, out, threads, rank, verify, progress)
            files = jobs.source_files(checkpoint, _other_files(plan, sources))
            with ranks.led(directory):
                hashed = _sort(plan, sources, files, directory, threads)
                manifest, place = _write(work, plan, target, files, hashed, model)
                place.finish(FILE)
                if verify:
                    _verify(work, place, manifest)
                if model is not None:
                    manifest = _add_model(model, place)
            place.publish(FILE)
            # Within the block: the directory gets its name without them.
            sorted_tables.remove(directory)
            jobs.remove(directory)
            return manifest


class _Work(NamedTuple):
    """The settings that the steps of a conversion share.

    Attributes:
        directory: the job's folder.
        out: where the result goes.
        verify: whether both sides are read again and compared.
    """

    checkpoint: Checkpoint
    directory: str
    out: str
    threads: int
    rank: Rank
    verify: bool
    progress: Optional[Progress]


def _write(
    work: _Work,
    plan: Plan,
    target: str,
    files: List[List[Any]],
    hashed: Mapping[str, Hashed],
    model: Optional[Written],
) -> Tuple[Manifest, Place]:
    """Writes all that the plan names, and the manifest; returns it and the place of the files."""
    todo = _todo(plan, work.checkpoint, hashed)
    layout = lay_out(target, todo, work.checkpoint, work.out)
    job = Job(
        source=work.checkpoint.prefix,
        newer=plan.newer,
        files=files,
        target=target,
        items=todo,
        parts=parts_of(layout, todo, work.out),
        model=None if model is None else model.digest,
    )
    # First of all: a resumed run of another job is refused before it touches anything.
    jobs.begin(work.directory, job)
    ranks.take_in(work.directory)
    place = place_of(work.out, work.directory, layout)
    begin(place, layout)
    runs = _carry_out(work, job, place)
    check_source(work.checkpoint, todo, runs)
    finish(target, place.folder, todo, layout)
    manifest = manifest_of(plan, target, work.checkpoint, hashed, todo, runs)
    write_manifest(manifest, place.folder)
    return manifest, place


def _add_model(model: Written, place: Place) -> Manifest:
    """Writes the model beside the data; returns the manifest, which has its names now."""
    from migrate.conversion.model_names import add_model_names  # torch, for this alone
    from migrate.model.load import write_model

    write_model(model, place.folder)
    add_model_names(place.out, model.parameters, place.folder)
    place.finish(FILE)
    return read_manifest(place.folder)


def _sort(
    plan: Plan,
    sources: Mapping[str, HashTable],
    files: List[List[Any]],
    directory: str,
    threads: int,
) -> Dict[str, Hashed]:
    """The plan's hash tables, sorted in `directory`, by the table's name."""
    tables = plan.hash_tables
    every = sorted_tables.sort_tables(directory, tables, sources, files, threads)
    return {table.name: Hashed(sources[table.variable], rows) for table, rows in zip(tables, every)}


def _other_files(plan: Plan, sources: Mapping[str, HashTable]) -> List[str]:
    """The files of the plan's hash tables that are not a checkpoint's."""
    return sorted(
        {
            file
            for table in plan.hash_tables
            for owner in (sources[table.variable], *sources[table.variable].slots.values())
            for part in owner.parts
            for file in part.files
        }
    )


def _todo(plan: Plan, checkpoint: Checkpoint, hashed: Mapping[str, Hashed]) -> List[Item]:
    """The items to write; files of their own come behind the format's tensors."""
    todo = items(plan, checkpoint, hashed)
    check_names(todo)
    # A stable sort: otherwise the order is the plan's. `lay_out` counts on it.
    return sorted(todo, key=lambda item: item.is_file)


def _verify(work: _Work, place: Place, manifest: Manifest) -> None:
    from migrate.verification import compare

    alone = work.rank.size == 1
    result = compare(
        work.checkpoint,
        manifest,
        place.out,
        workers=work.threads,
        beside=place.folder,
        spread=None if alone else partial(ranks.compared, work.directory, work.rank, place.folder),
    )
    if result.differences:
        kept = "" if is_remote(work.out) else "nothing was kept; "
        raise SemisyncError(
            f"what was written is not what {work.checkpoint.prefix} holds: "
            f"{result.differences[0]}; {kept}check the disk and the memory, and convert "
            "again"
        )


def _carry_out(work: _Work, job: Job, place: Place) -> List[Run]:
    """Writes the parts that journal or place lack; returns the runs of all, by item and row."""
    directory, rank = work.directory, work.rank
    done = jobs.finished(directory)
    # A store may have lost an uploaded file since; files on disk stay (`Place.has`).
    done = {part: record for part, record in done.items() if place.has(job.parts[part])}
    todo = [number for number in range(len(job.parts)) if number not in done]

    to_write = (work.checkpoint, job.items, job.parts, directory, place, work.threads)
    write = partial(write_parts, *to_write)
    # The comparison is shared by the ranks as well.
    last = not work.verify
    records = write(todo) if rank.size == 1 else ranks.written(directory, rank, last, todo, write)
    total = sum(item.nbytes for item in job.items)
    written = sum(_bytes(record, job) for record in done.values())
    for record in jobs.append(directory, records):
        done[record.part] = record
        written += _bytes(record, job)
        if work.progress is not None:
            work.progress(written, total)
    runs = [run for number in sorted(done) for run in done[number].runs]
    return sorted(runs, key=lambda run: (run.item, run.piece.first))


def _bytes(record: Record, job: Job) -> int:
    return sum(run.piece.rows * job.items[run.item].row_bytes for run in record.runs)
