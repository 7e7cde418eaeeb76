"""A conversion's job on disk: the work, and its progress.

    job.json   source and its files' sizes and times, items, parts, target: written first
    journal    one line of JSON per finished part, appended by one process only; other ranks have
               journals of their own (migrate.conversion.ranks)

1. A conversion that resumes makes its job again and resumes only where the text of `job.json` is
   the same: same plan, same source, same layout, same model.
2. A part's line is written after its data has been synced, so that a part that the journal has is
   whole. A last line that was cut short is left out, and the part is written again.
3. Both files go when the output is whole.
"""

from __future__ import annotations

import glob
import json
import os
from dataclasses import asdict
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, TypeVar

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion import said
from migrate.manifest.manifest import Piece
from migrate.manifest.transforms import Loss, named
from migrate.stream.columns import Origin
from migrate.stream.item import Item
from migrate.stream.regions import Part, Region
from migrate.stream.writing import Record, Run
from migrate.targets import work_directory
from semisync.common import json_text
from semisync.common.errors import UsageError
from semisync.storage.files import version_of

_SCHEMA = "semisync.job/3"
_JOB = "job.json"
_JOURNAL = "journal"

T = TypeVar("T")


class Job(NamedTuple):
    """A conversion's parameters.

    Attributes:
        source: prefix of the checkpoint.
        newer: prefix of the increment laid over it, or None.
        files: path, size and version of each of their files.
        model: digest of the model that is written with it, or None.
    """

    source: str
    newer: Optional[str]
    files: List[List[Any]]
    target: str
    items: List[Item]
    parts: List[Part]
    model: Optional[str] = None

    def to_json(self) -> str:
        """The text of `job.json`."""
        items = [{**item._asdict(), "transform": item.transform.name} for item in self.items]
        data = {"schema": _SCHEMA, **self._asdict(), "items": items}
        return json.dumps(data, ensure_ascii=False)


def source_files(checkpoint: Checkpoint, others: Sequence[str] = ()) -> List[List[Any]]:
    """Path, size and version of the source's files: the evidence that a resumed job reads the same.

    Args:
        others: paths of files besides the checkpoint's.
    """
    files = []
    for path in [checkpoint.prefix + ".index", *checkpoint.shard_paths(), *others]:
        version = version_of(path)
        if version is not None:  # a missing shard is named when it is read
            files.append([path, *version])
    return files


def begin(directory: str, job: Job) -> None:
    """Writes the job; where one is there already, UsageError unless it is the same."""
    work_directory.begin(os.path.join(directory, _JOB), job.to_json(), directory)


def begun(directory: str) -> bool:
    """Whether a job is in `directory`: not once its work is whole, or removed."""
    return os.path.exists(os.path.join(directory, _JOB))


def read(directory: str) -> Job:
    """The job in `directory`, for a worker."""
    data: Dict[str, Any] = json_text.read(os.path.join(directory, _JOB))
    del data["schema"]
    data["items"] = [_item(entry) for entry in data["items"]]
    data["parts"] = [[Region(*region) for region in part] for part in data["parts"]]
    return Job(**data)


def _item(data: Dict[str, Any]) -> Item:
    lists = {"path": tuple(data["path"]), "shape": tuple(data["shape"])}
    origins = tuple(Origin(*origin) for origin in data["origins"])
    return Item(**{**data, **lists, "transform": named(data["transform"]), "origins": origins})


def finished(directory: str) -> Dict[int, Record]:
    """The parts that the journal has, by their numbers."""
    path = os.path.join(directory, _JOURNAL)
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    try:
        records = [record_from(line.decode()) for line in lines[:-1]]  # without one cut short
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is damaged; delete {directory} and convert without --resume"
        ) from error
    return {record.part: record for record in records}


def record_line(record: Record) -> str:
    """One line of the journal, with its newline."""
    runs = [asdict(run) for run in record.runs]
    return json.dumps({"part": record.part, "runs": runs}) + "\n"


def record_from(line: str) -> Record:
    """The record in a line of the journal."""
    data = json_text.loads(line)
    return Record(data["part"], [_run(run) for run in data["runs"]])


def append(
    directory: str,
    records: Iterator[T],
    journal: str = _JOURNAL,
    line: Callable[[Any], str] = record_line,
) -> Iterator[T]:
    """Enters each of `records` in the journal, syncs it to the disk and yields the record.

    Args:
        line: formats a record as a line with its newline.
    """
    path = os.path.join(directory, journal)
    _end_last_line(path)
    with open(path, "a", encoding="utf-8") as file:
        for record in records:
            file.write(line(record))
            file.flush()
            os.fsync(file.fileno())
            yield record


def fail(directory: str, journal: str, reason: str, passing: bool) -> None:
    """Enters in a rank's `journal` why it stopped, and whether the reason may pass."""
    path = os.path.join(directory, journal)
    _end_last_line(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"failed": reason, "passing": passing}) + "\n")


def remove(directory: str) -> None:
    """Removes the job, the journals and the ranks' messages."""
    for pattern in (_JOB, _JOURNAL, said.FILE, *said.JOURNALS):
        for path in glob.glob(os.path.join(glob.escape(directory), pattern)):
            os.remove(path)


def _run(data: Dict[str, Any]) -> Run:
    spans: Sequence[Sequence[int]] = data["spans"]
    piece, loss = Piece(**data["piece"]), Loss(**data["loss"])
    return Run(data["item"], piece, [(a, b, c, d) for a, b, c, d in spans], loss)


def _end_last_line(path: str) -> None:
    """Cuts off a killed process's unfinished line."""
    if os.path.exists(path):
        with open(path, "rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
