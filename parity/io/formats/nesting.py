"""Lines of JSON that are nested deeply are refused: pyarrow's parser overflows the stack.

Of most lines the number of brackets tells that they are not. Only where a line has more, as with
lists of lists, are its strings left out and the depth counted.
"""

import re
from typing import Any

import numpy as np

from parity.io.damage import Broken

DEEPEST = 100

_STRING = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?')
_STEP = np.zeros(256, np.int8)
_STEP[np.frombuffer(b"[{", np.uint8)] = 1
_STEP[np.frombuffer(b"]}", np.uint8)] = -1


def refuse_deep(data: bytes, path: str) -> None:
    """Raises Broken where a line of `data` opens more than DEEPEST brackets within each other."""
    if _many_brackets(data) and _depth(_STRING.sub(b"", data)) > DEEPEST:
        raise Broken(f"{path} has a line of JSON that is nested more than {DEEPEST} deep")


class Shallow:
    """A file of JSON lines, checked as it is read.

    Args:
        source: a pyarrow.NativeFile.
        longest: bytes that a line may have.
    """

    def __init__(self, source: Any, path: str, longest: int) -> None:
        self._source, self._path, self._longest = source, path, longest
        self._begun = b""  # the start of a line

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data: bytes = self._source.read(size)
        lines = self._begun + data
        refuse_deep(lines, self._path)
        self._begun = lines[lines.rfind(b"\n") + 1 :]
        if len(self._begun) > self._longest:
            raise Broken(f"{self._path} has a line of JSON of more than {self._longest:,} bytes")
        return data

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return bool(self._source.closed)

    def close(self) -> None:
        """Closes the file."""
        self._source.close()


def _many_brackets(data: bytes) -> bool:
    found = np.frombuffer(data, np.uint8)
    opened = np.flatnonzero(_STEP[found] > 0)
    if len(opened) <= DEEPEST:
        return False
    lines = np.searchsorted(np.flatnonzero(found == ord("\n")), opened)
    return bool((lines[DEEPEST:] == lines[:-DEEPEST]).any())


def _depth(data: bytes) -> int:
    """The largest depth in a line, counted from the line's start."""
    found = np.frombuffer(data + b"\n", np.uint8)
    depth = np.cumsum(_STEP[found], dtype=np.int32)
    ends = np.flatnonzero(found == ord("\n"))
    before = np.concatenate([[0], depth[ends[:-1]]])
    lengths = np.diff(ends, prepend=-1)
    return int((depth - np.repeat(before, lengths)).max())
