"""The files that a report rests on: their paths, sizes and hashes."""

import hashlib
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput
from semisync.storage.sources import opened


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
