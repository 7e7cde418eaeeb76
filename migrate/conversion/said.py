"""The ranks' messages to each other: files in the folder of the journal.

ranks.json            rank 0: the work shared now, and whether it is over
journal-RUN-RANK      another rank: a line per part that it has written
compared-RUN-RANK     another rank: a line per share that it has compared
"""

from __future__ import annotations

import glob
import json
import os
import time
from typing import Callable, Generic, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

from migrate.stream.columns import FOLDER
from migrate.targets.work_directory import write_whole
from semisync.common import json_text

FILE = "ranks.json"
JOURNALS = ("journal-*", "compared-*")
_PAUSE = 0.05  # seconds between two polls

T = TypeVar("T")


class Announcement(NamedTuple):
    """`ranks.json`.

    Attributes:
        run: the name of this round of work.
        size: how many ranks there are.
        todo: numbers of the parts that all share; the rank r has every size-th from the r-th on.
        compares: the folder of the manifest, below that of the journal, where they compare; else
            they write.
        over: "" while they are at work, then "done" or "given up".
    """

    run: str
    size: int
    todo: List[int]
    compares: Optional[str] = None
    over: str = ""

    def of(self, rank: int) -> List[int]:
        """The numbers of the parts of a rank."""
        return self.todo[rank :: self.size]

    def journal(self, rank: int) -> str:
        """The name of a rank's file."""
        return f"{'journal' if self.compares is None else 'compared'}-{self.run}-{rank}"


class Reader(Generic[T]):
    """The records in a journal that another process writes.

    Args:
        of_line: parses a record's line.

    Attributes:
        begun: whether the journal is there.
        failed: the reason why its writer stopped, None if it did not.
        passing: whether that reason may pass.
    """

    def __init__(self, path: str, of_line: Callable[[str], T]) -> None:
        self._path = path
        self._of_line = of_line
        self._position = 0
        self.begun = False
        self.failed: Optional[str] = None
        self.passing = False

    def records(self) -> Iterator[T]:
        """Yields the records that were added since the last call."""
        if not os.path.exists(self._path):
            return
        self.begun = True
        with open(self._path, "rb") as file:
            file.seek(self._position)
            for line in file:
                # Still being written: the next call reads it from its beginning.
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                data = json_text.loads(line)
                if "failed" in data:
                    self.failed, self.passing = data["failed"], data["passing"]
                else:
                    yield self._of_line(line.decode())


class Watch:
    """Notices when no rank writes any more."""

    def __init__(self, directory: str, deadline: float) -> None:
        self._directory = directory
        self._deadline = deadline
        self._seen: Optional[Tuple[int, ...]] = None
        self._since = time.monotonic()

    def timed_out(self) -> bool:
        """Waits a moment; returns whether no journal and no table in sorting grew for too long."""
        time.sleep(_PAUSE)
        of = glob.escape(self._directory)
        # Rank 0 sorts hash tables before there is a journal: their files grow meanwhile.
        patterns = ("journal", *JOURNALS, os.path.join(FOLDER, "*"))
        paths = {path for one in patterns for path in glob.glob(os.path.join(of, one))}
        sizes = tuple(_size(path) for path in sorted(paths))
        if sizes != self._seen:
            self._seen, self._since = sizes, time.monotonic()
        return time.monotonic() - self._since > self._deadline


def _size(path: str) -> int:
    """The size in bytes; -1 if the file has just been removed."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return -1


def read(directory: str) -> Optional[Announcement]:
    """Rank 0's message, if any."""
    try:
        return Announcement(**json_text.read(os.path.join(directory, FILE)))
    except FileNotFoundError:
        return None


def write(directory: str, announced: Announcement) -> None:
    """Writes rank 0's message, which replaces an earlier one in one step."""
    write_whole(os.path.join(directory, FILE), json.dumps(announced._asdict()))
