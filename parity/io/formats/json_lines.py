"""Lines of JSON.

Deeply nested lines are refused, since pyarrow's parser overflows the stack on them. Most lines have
too few brackets to be deep. Only where one has more, as with lists of lists, are its strings left
out and its depth counted.
"""

import re
from typing import Any, Iterator, List, Optional

import numpy as np
import pyarrow as pa
import pyarrow.json

from parity.io.damage import Broken
from parity.io.formats.file import Columns
from parity.io.formats.text import BLOCK
from semisync.storage.sources import streamed

_DEEPEST = 100
_STRING = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?')
_STEP = np.zeros(256, np.int8)
_STEP[np.frombuffer(b"[{", np.uint8)] = 1
_STEP[np.frombuffer(b"]}", np.uint8)] = -1


class JsonLines:
    """A file of JSON objects, one a line, such as {"label": 1, "score": 0.25}."""

    rows: Optional[int] = None

    def __init__(self, path: str) -> None:
        self._path = path
        options = pyarrow.json.ReadOptions(block_size=BLOCK)
        with pyarrow.json.open_json(_source(path), options) as reader:
            self._schema = reader.schema  # of the first block
        self.columns: Optional[List[str]] = self._schema.names

    def holds_rows(self) -> bool:
        """Whether there is a row, as in every file that can be opened."""
        return True

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of 16 MB."""
        names = list(columns.names)
        kinds = [self._kind(name, columns.types.get(name)) for name in names]
        options = pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(zip(names, kinds))), unexpected_field_behavior="ignore"
        )
        read = pyarrow.json.ReadOptions(block_size=BLOCK)
        with pyarrow.json.open_json(_source(self._path), read, options) as reader:
            for part in reader:
                yield pa.Table.from_batches([part]).select(names)

    def _kind(self, name: str, wanted: Optional[pa.DataType]) -> pa.DataType:
        """The first block's type, or the wanted one of integers, and of text like a moment."""
        found = self._schema.field(name).type
        if wanted is None:
            return found
        widened = pa.types.is_integer(found) and pa.types.is_floating(wanted)
        moment = pa.types.is_timestamp(found) and pa.types.is_string(wanted)
        return wanted if widened or moment else found


def _source(path: str) -> "_Shallow":
    return _Shallow(streamed(path), path, BLOCK)


def refuse_deep(data: bytes, path: str) -> None:
    """Raises Broken where a line of `data` opens more than _DEEPEST brackets within each other."""
    if _many_brackets(data) and _depth(_STRING.sub(b"", data)) > _DEEPEST:
        raise Broken(f"{path} has a line of JSON that is nested more than {_DEEPEST} deep")


class _Shallow:
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
    if len(opened) <= _DEEPEST:
        return False
    # A line has more than _DEEPEST brackets where two that are _DEEPEST apart are in the same line.
    lines = np.searchsorted(np.flatnonzero(found == ord("\n")), opened)
    return bool((lines[_DEEPEST:] == lines[:-_DEEPEST]).any())


def _depth(data: bytes) -> int:
    """The largest depth in a line, counted from the line's start."""
    found = np.frombuffer(data + b"\n", np.uint8)
    # int8 steps: their sum over many lines needs more.
    depth = np.cumsum(_STEP[found], dtype=np.int32)
    ends = np.flatnonzero(found == ord("\n"))
    before = np.concatenate([[0], depth[ends[:-1]]])
    lengths = np.diff(ends, prepend=-1)
    return int((depth - np.repeat(before, lengths)).max())
