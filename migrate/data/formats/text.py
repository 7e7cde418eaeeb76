"""Text: a block is the lines that begin within 8 MB of a file; a compressed file is one block.

The first line of each file is a header, unless the format has names. Empty lines are not rows,
empty fields are missing values. A line belongs to the block that has its first byte, so the bytes
of a block are known without reading the ones before it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy
import pyarrow as pa

from migrate.data.compiled import lines, records
from migrate.data.formats.fields import Fields, id_lists
from migrate.data.schema import Column
from parity.inputs.checks import Column as Place
from parity.io.columns import At
from parity.io.formats.text import MARK, names_in, open_quote, wrong_number
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput
from semisync.storage.sources import opened, packing_of, unpacked

BLOCK = 1 << 23  # bytes

_LF = b"\n"
_AHEAD = 1 << 16  # bytes to read at a time for the end of a block's last line
_AT_ONCE = 1 << 30  # bytes that may be reserved for the ids of a block; few of them are used


def survey(path: str, size: int, written: TextFormat) -> Tuple[List[str], List[int]]:
    """The names of the columns, and the rows of each block."""
    start, rows = surveyed(path, size)
    if written.names is not None:
        return list(written.names), rows
    if not any(rows):  # a writer without rows leaves an empty file, without a header
        return [], rows
    names, _ = _header(start, path, written)
    return names, [rows[0] - 1, *rows[1:]]


def surveyed(path: str, size: int) -> Tuple[numpy.ndarray, List[int]]:
    """The bytes of the first block, and how many lines begin in each; a header is one of them."""
    with opened(path) as source:
        if packing_of(path):
            start = _bytes(unpacked(path))
            return start, [lines.count(start, 0, len(start))]
        start = _bytes(source.read_buffer(BLOCK + 1))
        rows = [lines.count(start, 0, min(BLOCK, len(start)))]
        for at in range(BLOCK, size, BLOCK):
            source.seek(at - 1)
            # The byte before a block tells whether a line starts with it, the one after whether the
            # last line is empty.
            data = _bytes(source.read_buffer(BLOCK + 2))
            rows.append(lines.count(data, 1, min(BLOCK + 1, len(data))))
    return start, rows


def block_bytes(path: str, size: int, block: int) -> numpy.ndarray:
    """The lines that begin in a block, uint8."""
    if packing_of(path):
        return _padded(unpacked(path))
    with opened(path) as source:
        return _block(source, size, block)


class Lines:
    """The lines of a block, whose columns can be read.

    Args:
        rows, names: as `survey` found them.
        wanted: the columns to read, where only these are.

    Raises:
        BadInput: a line with another number of fields.
    """

    def __init__(
        self,
        path: str,
        size: int,
        block: int,
        rows: int,
        names: Sequence[str],
        written: TextFormat,
        first: int,
        wanted: Sequence[Column] = (),
    ) -> None:
        data = block_bytes(path, size, block)
        if not block:
            data = data[_start(data, path, written) :]
        self._data, self._rows, self._names = data, rows, names
        self._written, self._path, self._first = written, path, first
        self._ids: Dict[str, Tuple[numpy.ndarray, numpy.ndarray]] = {}  # offsets and values
        self._spans: Dict[str, Tuple[numpy.ndarray, numpy.ndarray]] = {}  # starts and ends
        self._quote = -1 if written.quote is None else ord(written.quote)
        if self._quote >= 0 and not lines.occurrences(data, self._quote):
            self._quote = -1
        if self._quote >= 0 or not self._read_at_once(wanted):
            self._split()

    def column(self, column: Column) -> Any:
        """The column as an Arrow array that `checked_values` takes, null for empty fields.

        Raises:
            BadInput: a field that is not of the column's kind.
        """
        if column.name in self._ids:
            return id_lists(*self._ids[column.name], column)
        starts, ends = self._spans[column.name]
        at = At(Place(column.name, self._path, skipped=self._first))
        return Fields(self._data, starts, ends, self._quote, column, at, self._written).arrow()

    def _read_at_once(self, wanted: Sequence[Column]) -> bool:
        """Splits lines and reads ids in one pass, which is faster; False where it cannot."""
        separator, between = self._written.separator, self._written.values
        ids = [column.name for column in wanted if column.of_integers]
        # A digit or a minus as a separator would be taken for a part of an id.
        if not ids or {separator, between} & set("-0123456789"):
            return False
        others = [column.name for column in wanted if column.name not in ids]
        slots = [
            ids.index(name)
            if name in ids
            else -1 - (others.index(name) if name in others else len(others))
            for name in self._names
        ]
        # A field has at most one id more than separators.
        most = self._rows + lines.occurrences(self._data, ord(between))
        if 8 * len(ids) * (most + 1) > _AT_ONCE:
            return False
        values = _empty((len(ids), most + 1), numpy.int64)
        offsets = _empty((len(ids), self._rows + 1), numpy.int32)
        # the last one is for columns that are not read
        spans = _empty((len(others) + 1, 2, self._rows), numpy.int64)
        marks = ord(separator), ord(between)
        plain = records.columns(self._data, numpy.array(slots), *marks, values, offsets, spans)
        if plain:
            self._ids = {
                name: (offsets[k], values[k, : offsets[k, -1]]) for k, name in enumerate(ids)
            }
            self._spans = {name: (spans[k, 0], spans[k, 1]) for k, name in enumerate(others)}
        return bool(plain)

    def _split(self) -> None:
        data, path = self._data, self._path
        starts = _empty((len(self._names) + 1, self._rows), numpy.int64)
        separator = ord(self._written.separator)
        found, wrong, count = (
            records.plain_fields(data, starts, separator)
            if self._quote < 0
            else records.fields(data, starts, separator, self._quote)
        )
        if wrong >= 0:
            line = bytes(data[wrong : wrong + 60]).split(_LF)[0].decode(errors="replace")
            row = self._first + found + 1
            if count >= 0:
                raise wrong_number(path, row, count, len(self._names), self._written, line)
            raise open_quote(path, row, line)
        if found != self._rows:
            raise BadInput(f"{path} has {found} rows where {self._rows} were listed; it changed")
        self._spans = {name: (starts[k], starts[k + 1] - 1) for k, name in enumerate(self._names)}


def _block(source: Any, size: int, block: int) -> numpy.ndarray:
    """The lines that start in a block, then at least 8 readable bytes, zeros at the file's end."""
    start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
    before = min(start, 1)
    source.seek(start - before)
    own = before + stop - start
    buffer = _empty((own + _AHEAD + 8,), numpy.uint8)
    data = buffer[: source.readinto(buffer.data[: own + _AHEAD])]
    buffer[len(data) : len(data) + 8] = 0
    begin = lines.end_of_line(data, 0) if before else 0
    if (before and not begin) or begin >= own:
        return buffer[:0]
    # From the block's last byte on: if that ends a line, the next line is not this block's.
    end = lines.end_of_line(data, own - 1)
    while not end:
        more = source.read(_AHEAD)
        if not more:
            return data[begin:]
        known = len(data)
        data = _padded(data.tobytes() + more)
        end = lines.end_of_line(data, known)
    return data[begin:end]


def _start(data: numpy.ndarray, path: str, written: TextFormat) -> int:
    """The offset of the first block's rows."""
    if written.names is None:
        return _header(data, path, written)[1]
    return len(MARK) if bytes(data[: len(MARK)]) == MARK else 0


def _first_line(data: numpy.ndarray) -> int:
    """The offset of the first line that is not empty."""
    at = 0
    while at < len(data) and data[at] in b"\r\n":
        at += 1
    return at


def _header(data: numpy.ndarray, path: str, written: TextFormat) -> Tuple[List[str], int]:
    """The names in the first line that is not empty, and where the next one begins."""
    at = _first_line(data)
    end = lines.end_of_line(data, at) or len(data)
    return names_in(data[at:end].tobytes(), path, written, data[end:][:_AHEAD].tobytes()), end


def _empty(shape: Tuple[int, ...], kind: Any) -> numpy.ndarray:
    """An array in Arrow's memory pool, which reuses one block's memory for the next: the C library
    would return it to the system, and a fifth of the CPU time would go to getting it again."""
    size = int(numpy.prod(shape)) * numpy.dtype(kind).itemsize
    return numpy.frombuffer(pa.allocate_buffer(size), kind).reshape(shape)


def _bytes(data: Any) -> numpy.ndarray:
    return numpy.frombuffer(data, numpy.uint8)


def _padded(data: bytes) -> numpy.ndarray:
    """The bytes, after which 8 more can be read."""
    return _bytes(data + bytes(8))[: len(data)]
