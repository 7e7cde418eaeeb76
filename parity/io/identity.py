"""The files that a report rests on: their paths, sizes and hashes; and those that are copies.

Files of the same bytes are found by their hash. Files of the same rows, sorted or packed in another
way, are found by the sum of their rows' hashes, of scores in single precision, in which text and
float32 of one score are the same. Few distinct rows can be the same in two files by chance, so it
takes at least DISTINCT.
"""

import hashlib
from typing import Any, Dict, Iterable, NamedTuple, Optional, Set, Tuple

import numpy as np

from parity.io.text_format import TextFormat
from parity.stats.repeats import hashes
from semisync.common.errors import BadInput
from semisync.storage.sources import opened

DISTINCT = 30


class FileIdentity(NamedTuple):
    """A report's record of a file that it used."""

    path: str
    sha256: str
    bytes: int
    rows: Optional[int] = None  # None for a file that was counted with others

    def to_json(self) -> Dict[str, Any]:
        """The known facts of the file."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def identify(path: str, rows: Optional[int] = None) -> FileIdentity:
    """Hashes the file; reads it once, in blocks of a mebibyte."""
    digest = hashlib.sha256()
    with opened(path) as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        return FileIdentity(path, digest.hexdigest(), file.tell(), rows)


def identify_all(
    files: Iterable[Tuple[str, Optional[int]]], text: Optional[TextFormat] = None
) -> Tuple[FileIdentity, ...]:
    """`identify` of a data set's files, each with its rows if they are known.

    Raises:
        BadInput: two files of the same bytes, whose rows would be counted twice; parts without rows
            are not copies of each other.
    """
    known: Dict[str, str] = {}
    identities = []
    for file, rows in files:
        identity = identify(file, rows)
        identities.append(identity)
        earlier = known.setdefault(identity.sha256, file)
        if earlier != file and holds_rows(file, text):
            refuse_copy(file, earlier)
    return tuple(identities)


def refuse_copy(file: str, earlier: str) -> None:
    """Raises: BadInput, always: `file` has the rows of an earlier one."""
    raise BadInput(
        f"{file} is a copy of {earlier}; rows that are counted twice make the interval too narrow, "
        "so leave one out"
    )


def holds_rows(path: str, text: Optional[TextFormat] = None) -> bool:
    """Whether a data file has a row; text: how text files are written.

    Raises:
        BadInput: a file that cannot be read.
    """
    from parity.io.damage import explained
    from parity.io.formats import open_file

    with explained(path):
        return bool(open_file(path, text).holds_rows())


class Copies:
    """Sums of the hashes of each file's rows, by which files of the same rows are found."""

    def __init__(self) -> None:
        self._sums: Dict[str, int] = {}
        self._rows: Dict[str, int] = {}
        self._some: Dict[str, Set[int]] = {}  # DISTINCT of the hashes

    def add(
        self, file: str, positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray
    ) -> None:
        """Adds some rows of a file: bool and floating (n,) each."""
        with np.errstate(over="ignore"):  # scores beyond single precision become infinite
            scores = baseline.astype(np.float32), candidate.astype(np.float32)
        of_rows = hashes(positive, *scores)
        self._sums[file] = (self._sums.get(file, 0) + int(of_rows.sum())) % 2**64
        self._rows[file] = self._rows.get(file, 0) + len(of_rows)
        some = self._some.setdefault(file, set())
        if len(some) < DISTINCT:
            some.update(np.unique(of_rows)[:DISTINCT].tolist())

    def refuse(self) -> None:
        """Raises BadInput for a file with the rows of an earlier one."""
        known: Dict[Tuple[int, int], str] = {}
        for file, rows in self._rows.items():
            if len(self._some[file]) < DISTINCT:
                continue
            earlier = known.setdefault((self._sums[file], rows), file)
            if earlier != file:
                refuse_copy(file, earlier)
