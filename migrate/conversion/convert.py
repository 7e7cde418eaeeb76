"""Carrying out a plan: stream a checkpoint's tensors into a torch checkpoint.

Memory is bounded, a few MiB a thread (32 where rows are dealt out from very many partitions),
whatever the size of a table, for nothing is kept that has been written:

1. The plan is checked against the checkpoint before anything is written
   (`migrate.planning.agreement`); hash tables are brought into the order of the target
   (`migrate.ids.staging`).
2. The target lays itself out: it gives every chunk of every tensor its place in a file, and writes
   what stands between them (`migrate.stream.regions`, `migrate.targets`).
3. The chunks are grouped into parts of 64 MiB. Threads read, check, transform, hash and write
   them, in any order; rows come in the order of the ids, however they lie in the partitions of the
   source (`migrate.conversion.parts`).
4. Each finished part is synced to the disk and entered in a journal (`migrate.conversion.job`).
   What kill -9 leaves can be resumed: the parts in the journal are not written again.
5. When all parts are there, the crc32c of every stored piece is put together from those of its
   ranges and compared with the index; the target's own index and the manifest are written; both
   sides are read once more and compared (`migrate.verification`), unless the caller says no.
6. The directory gets its name when it is whole (`migrate.targets.staging`).
"""

from __future__ import annotations

import importlib
import itertools
import os
from types import ModuleType
from typing import Callable, Dict, Iterator, List, Optional

from migrate.checkpoint.bundle import Checkpoint, open_checkpoint
from migrate.conversion import job as jobs
from migrate.conversion import models, ranks
from migrate.conversion.job import Job
from migrate.conversion.parts import Record, Run, check_source, write_parts
from migrate.conversion.ranks import ALONE, Rank
from migrate.conversion.summary import manifest_of
from migrate.hash_tables.model import HashTable
from migrate.ids import staging as ids
from migrate.ids.items import id_items
from migrate.ids.staging import StagedTable
from migrate.ids.summary import files_of
from migrate.manifest.model import FILE, Manifest
from migrate.open import hash_tables
from migrate.planning.agreement import check_plan
from migrate.planning.model import Plan
from migrate.storage.threads import default_count
from migrate.stream.items import Item, check_names, items
from migrate.stream.regions import Layout, cuts, only_tensors, parts, with_files
from migrate.targets import TARGETS
from migrate.targets.reserving import reserve
from migrate.targets.staging import refuse_existing, staged
from semisync.common.errors import SemisyncError, UsageError

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
) -> Manifest:
    """Writes the torch checkpoint that `plan` describes into the directory `out`.

    out       absent or an empty directory; it appears when it is complete
    target    "dcp" or "safetensors"
    progress  called with (bytes done, bytes in all) as the work goes on
    workers   threads that read, write and compare; without it one a processor, at most four, and
              eight for a URL
    resume    go on with a conversion of the same plan that was interrupted, where there is one
    verify    read both sides again and compare them
    rank      rank 0 of several processes that share the work; the others call
              `migrate.conversion.ranks.assist`

    Raises UsageError for a target that is not known, an `out` that holds something or an
    interrupted conversion that is not to be resumed, BadInput where plan and checkpoint do not fit
    or the checkpoint is damaged, SemisyncError where what was written does not verify, Unfinished,
    to be resumed, where a server does not answer any more or the disk fills up.
    """
    if target not in TARGETS:
        raise UsageError(f"target {target!r} is not supported, expected one of {list(TARGETS)}")
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}, expected at least 1")
    out = os.fspath(out)
    refuse_existing(out)
    with open_checkpoint(plan.source, newer=plan.newer) as checkpoint:
        sources = hash_tables(checkpoint, plan.meta) if plan.hash_tables else {}
        check_plan(plan, checkpoint, sources)
        by_rows = items(plan, checkpoint)
        needed = sum(item.nbytes for item in by_rows) + ids.room(plan.hash_tables, sources)
        format_ = importlib.import_module(f"migrate.targets.{target}")
        with staged(out, needed, resume) as directory:
            files = jobs.source_files(checkpoint, files_of(plan, sources))
            threads = workers or default_count(checkpoint.prefix)
            tables = ids.stage(directory, plan.hash_tables, sources, files, threads)
            todo = [*by_rows, *_items_by_ids(plan, sources, tables, checkpoint)]
            check_names(todo)
            todo.sort(key=lambda item: item.is_file)  # files come behind the format's tensors
            layout = _lay_out(format_, todo, checkpoint)
            all_parts = parts(layout.regions, todo)
            job = Job(checkpoint.prefix, plan.newer, files, target, todo, all_parts)
            jobs.begin(directory, job)
            ranks.take_in(directory)
            _prepare(directory, layout)
            runs = _carry_out(checkpoint, job, directory, threads, rank, progress)
            check_source(checkpoint, todo, runs)
            tensors = [item for item in todo if not item.is_file]
            format_.finish(directory, tensors, only_tensors(layout, len(tensors)))
            manifest = manifest_of(plan, target, checkpoint, sources, tables, todo, runs)
            _write_text(directory, FILE, manifest.to_json())
            _write_text(directory, models.FILE, models.to_json(manifest))
            if verify:
                _verify(checkpoint, manifest, directory, threads)
            ids.remove(directory)
            jobs.remove(directory)
            return manifest


def _items_by_ids(
    plan: Plan, sources: Dict[str, HashTable], tables: List[StagedTable], checkpoint: Checkpoint
) -> Iterator[Item]:
    """What is written of the hash tables, which are staged as `tables`."""
    for table, one in zip(plan.hash_tables, tables):
        yield from id_items(plan, table, sources[table.table], one, checkpoint)


def _write_text(directory: str, name: str, text: str) -> None:
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)


def _verify(checkpoint: Checkpoint, manifest: Manifest, directory: str, threads: int) -> None:
    from migrate.verification import compare

    result = compare(checkpoint, manifest, directory, workers=threads)
    if not result.verified:
        raise SemisyncError(
            f"what was written is not what {checkpoint.prefix} holds: {result.differences[0]}; "
            "nothing was kept; check the disk and the memory, and convert again"
        )


def _lay_out(format_: ModuleType, todo: List[Item], checkpoint: Checkpoint) -> Layout:
    of_items = [list(cuts(item, _source_row_bytes(item, checkpoint))) for item in todo]
    count = sum(not item.is_file for item in todo)
    layout: Layout = format_.lay_out(todo[:count], of_items[:count])
    return with_files(layout, todo, of_items, count)


def _source_row_bytes(item: Item, checkpoint: Checkpoint) -> int:
    if item.origins or item.source not in checkpoint:
        return 0  # staged, a row as in the target
    info = checkpoint[item.source]
    rows = info.shape[0] if info.shape else 1
    return info.nbytes // rows if rows else 0


def _prepare(directory: str, layout: Layout) -> None:
    """Makes the files in their full sizes, with all that stands between the values."""
    for name, size in layout.files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
        with open(os.path.join(directory, name), "ab") as file:
            reserve(file, size)
            file.truncate(size)
    for name, frames in itertools.groupby(layout.frames, key=lambda frame: frame.file):
        with open(os.path.join(directory, name), "rb+", buffering=0) as file:
            for frame in frames:
                os.pwrite(file.fileno(), frame.data, frame.offset)


def _carry_out(
    checkpoint: Checkpoint,
    job: Job,
    directory: str,
    threads: int,
    rank: Rank,
    progress: Optional[Progress],
) -> List[Run]:
    """Writes what the journal lacks; the runs of all parts, by item and row."""
    done = jobs.finished(directory)
    todo = [number for number in range(len(job.parts)) if number not in done]

    def write(numbers: List[int]) -> Iterator[Record]:
        numbered = ((number, job.parts[number]) for number in numbers)
        return write_parts(checkpoint, job.items, numbered, directory, threads)

    records = write(todo) if rank.size == 1 else ranks.shared(directory, rank, todo, write)
    total = sum(item.nbytes for item in job.items)
    written = sum(_bytes(record, job) for record in done.values())
    for record in jobs.append(directory, records):
        done[record.part] = record
        written += _bytes(record, job)
        if progress is not None:
            progress(written, total)
    runs = [run for number in sorted(done) for run in done[number].runs]
    return sorted(runs, key=lambda run: (run.item, run.piece.first))


def _bytes(record: Record, job: Job) -> int:
    return sum(run.piece.rows * job.items[run.item].row_bytes for run in record.runs)
