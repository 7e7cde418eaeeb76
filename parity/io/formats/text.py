"""Separated values: fields of text, one line a row.

The names of the columns stand in the first line, unless `parity.io.text_format` has them.
An empty field is a missing value, in columns of names as well, and blanks around a column's name
are no part of it. From a field on that is not a number, the columns of numbers are text, so that
whoever checks them can name the row.
"""

import collections
import csv
import json
import os
import re
from typing import Any, Collection, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from parity.io.columns import opened as list_parts
from parity.io.damage import Broken
from parity.io.formats.file import Columns
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput
from semisync.storage.sources import opened, packing_of, streamed

BLOCK = 1 << 24  # bytes that are parsed at a time
MARK = b"\xef\xbb\xbf"  # the byte order mark that some programs put before UTF-8
LONGEST_HEADER = 1 << 23  # bytes

_PART = 1 << 20  # bytes
_HEADER = 1 << 16  # bytes that hold a header, or many lines
_OTHER_NUMBER = re.compile(r"Row #(\d+): Expected \d+ columns, got (\d+): (.*)", re.DOTALL)
_OTHERS = {";": "semicolons", "\t": "tabs"}
_DECIMAL_COMMA = re.compile(rb"(^|[;\t])[ \"]*[+-]?\d*,\d+[ \"]*([;\t\r]|$)", re.MULTILINE)
_TELLING = 4  # lines, so that one is shorter than all others


class Text:
    """A file of separated values, `written` as `parity.io.text_format.of_kind` says."""

    rows: Optional[int] = None  # only reading it tells

    def __init__(self, path: str, written: TextFormat) -> None:
        self._path, self._written = path, written
        self.columns, self._start = _header(path, written)

    def holds_rows(self) -> bool:
        """Whether there is a row: anything but line breaks after the header, if any."""
        with streamed(self._path) as file:
            file.read(self._start)
            return any(part.strip(b"\r\n") for part in iter(lambda: file.read(_HEADER), b""))

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of 16 MB."""
        if self.columns[-1] in columns.names:  # only a row's last value can be cut short unseen
            refuse_cut(self._path, self._written)
        if not self.holds_rows():
            kinds = [(name, columns.types.get(name, pa.null())) for name in columns.names]
            yield pa.schema(kinds).empty_table()
            return
        done = 0
        try:
            for table in self._parsed(columns.names, columns.types, threads=True):
                yield self._split(table, columns.lists)
                done += table.num_rows
        except pa.ArrowInvalid:
            # Either a field is not a number, or the file is damaged, and only without threads does
            # the parser name the row.
            texts = {
                name: pa.string() if pa.types.is_floating(kind) else kind
                for name, kind in columns.types.items()
            }
            seen = 0
            numbers = [name for name, kind in columns.types.items() if texts[name] != kind]
            for table in self._parsed(columns.names, texts, threads=False):
                table = _with_points(table, numbers, self._written.decimal)
                if seen + table.num_rows > done:
                    yield self._split(table.slice(max(0, done - seen)), columns.lists)
                seen += table.num_rows

    def _parsed(
        self, names: Sequence[str], types: Mapping[str, pa.DataType], threads: bool
    ) -> Iterator[pa.Table]:
        written, null, rows = self._written, self._written.null, 0
        source = _Watched(streamed(self._path), written.quote)
        source.read(self._start)
        source.quoted = False  # quotes in the header do not count
        places = [str(place) for place in range(len(self.columns))]
        place_of = dict(zip(self.columns, places))
        try:
            with pyarrow.csv.open_csv(
                source,
                pyarrow.csv.ReadOptions(column_names=places, block_size=BLOCK, use_threads=threads),
                pyarrow.csv.ParseOptions(
                    delimiter=written.separator, quote_char=written.quote or False
                ),
                pyarrow.csv.ConvertOptions(
                    include_columns=[place_of[name] for name in names],
                    column_types={place_of[name]: kind for name, kind in types.items()},
                    null_values=[""] if null is None else ["", null],
                    strings_can_be_null=True,
                    decimal_point=written.decimal,
                ),
            ) as reader:
                for part in reader:
                    yield pa.Table.from_batches([part]).rename_columns(list(names))
                    rows += part.num_rows
        except pa.ArrowInvalid as error:
            found = _OTHER_NUMBER.search(str(error))
            if "UTF8" in str(error):
                raise self._not_utf8() from error
            if not found:
                raise
            row, count, line = found.groups()
            raise wrong_number(
                self._path, int(row), int(count), len(places), written, line
            ) from error
        # An open quote swallows all later lines without an error: only a recount shows it.
        if source.quoted:
            [(count, last)] = collections.deque(enumerate(self._lines(), 1), 1)
            if rows < count or self._is_open(last):
                raise self._open_quote()

    def _not_utf8(self) -> BadInput:
        rows = enumerate(self._lines(), 1)
        row = next(row for row, line in rows if line.decode(errors="ignore").encode() != line)
        return BadInput(f"{self._path}: row {row} is not UTF-8; convert the file to UTF-8")

    def _open_quote(self) -> BadInput:
        """The error for the first line with an open quote, whose field swallows what follows."""
        row, line = 0, b""
        for line in self._lines():
            row += 1
            if self._is_open(line):
                break
        return open_quote(self._path, row, line.decode(errors="replace"))

    def _is_open(self, line: bytes) -> bool:
        """Whether a quote of the line is not closed in it."""
        # The csv module goes on into the next line while a quote is open: two lines become one row.
        lines, written = [line.decode(errors="replace"), ""], self._written
        return (
            len(list(csv.reader(lines, delimiter=written.separator, quotechar=written.quote))) < 2
        )

    def _lines(self) -> Iterator[bytes]:
        """The lines of the rows, without empty ones, which are no rows."""
        rest = b""
        with streamed(self._path) as file:
            file.read(self._start)
            for part in iter(lambda: file.read(_PART), b""):
                *lines, rest = (rest + part).split(b"\n")
                yield from filter(None, (line.rstrip(b"\r") for line in lines))
        if rest:
            yield rest

    def _split(self, table: pa.Table, lists: Collection[str]) -> pa.Table:
        """The table with the values of these columns' fields as lists."""
        for name in filter(table.column_names.__contains__, lists):
            values = pc.split_pattern(table[name], self._written.values)
            if self._written.null is not None:
                values = pa.chunked_array(
                    [_with_nulls(chunk, self._written.null) for chunk in values.chunks], values.type
                )
            table = table.set_column(table.column_names.index(name), name, values)
        return table


def _with_points(table: pa.Table, numbers: Sequence[str], decimal: str) -> pa.Table:
    """The table with decimal points in columns of numbers that are text."""
    for name in filter(lambda name: decimal != ".", numbers):
        values = pc.replace_substring(table[name], decimal, ".")
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _with_nulls(lists: pa.Array, null: str) -> pa.Array:
    """Lists of text with missing values for this one."""
    lengths, values = list_parts(lists)
    values = pc.if_else(pc.equal(values, null), None, values)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, mask=lists.is_null())


class _Watched:
    """A stream for pyarrow that knows whether a quote came by."""

    closed = False

    def __init__(self, stream: Any, quote: Optional[str]) -> None:
        self._stream, self.quoted = stream, False
        self._quote = None if quote is None else quote.encode()

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data: bytes = self._stream.read(size)
        self.quoted = self.quoted or (self._quote is not None and self._quote in data)
        return data

    def close(self) -> None:
        """Closes the stream."""
        self._stream.close()


def open_quote(path: str, row: int, line: str) -> BadInput:
    """A row, from 1, has a quote that its line does not close."""
    return BadInput(
        f"{path}: row {row} has a quote that is not closed in its line: a field cannot hold line "
        "breaks; --text (text=) says where quotes are characters like others: "
        f"{line[:60]!r}"
    )


def wrong_number(
    path: str, row: int, count: int, expected: int, written: TextFormat, line: str
) -> BadInput:
    """A row, from 1, has another number of fields than there are columns."""
    return BadInput(
        f"{path}: row {row} has {count} fields, expected {expected} separated by "
        f"{written.separator!r}: {line[:60]!r}"
    )


def _header(path: str, written: TextFormat) -> Tuple[List[str], int]:
    """The names of the columns, and how many bytes, decompressed, come before the rows."""
    start, end = b"", 0
    if written.names is not None:
        with streamed(path) as file:
            return list(written.names), len(MARK) if file.read(len(MARK)) == MARK else 0
    with streamed(path) as file:
        more = b"\n"
        while more and not end and len(start) <= LONGEST_HEADER:
            more = file.read(max(_HEADER, len(start)))  # twice as much each time
            start += more
            first = len(start) - len(start.lstrip(b"\r\n"))
            end = start.find(b"\n", first) + 1
    end = end or len(start)
    return names_in(start[first:end], path, written, start[end:]), end


def names_in(line: bytes, path: str, written: TextFormat, rows: bytes) -> List[str]:
    """The names of the columns in a file's first line.

    Args:
        rows: the following rows, as far as read: they reveal decimal commas.

    Raises:
        Broken: it is not a header.
        BadInput: one that is separated otherwise.
    """
    if len(line) > LONGEST_HEADER:
        raise Broken(
            f"{path}: its first line has more than {LONGEST_HEADER} bytes, which is not a header"
        )
    try:
        header = line.removeprefix(MARK).decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise Broken(f"{path}: its header is not UTF-8 ({error.reason})") from error
    if "\r" in header:
        raise BadInput(f"{path}: lines that end with a carriage return alone are not supported")
    if written.separator not in header:
        _refuse_other_separator(header, path, rows)
    if written.quote is None:
        names = header.split(written.separator)
    else:
        lines = csv.reader([header], delimiter=written.separator, quotechar=written.quote)
        names = next(lines, [])
    return [name.strip() for name in names]


def _refuse_other_separator(header: str, path: str, rows: bytes) -> None:
    """Names the option that reads a file which another character separates."""
    for separator, name in _OTHERS.items():
        if separator in header:
            text = {"separator": separator}
            commas = _DECIMAL_COMMA.search(rows[: rows.rfind(b"\n") + 1]) is not None
            if commas:
                text["decimal"] = ","
            raise BadInput(
                f"{path} is separated by {name}{' and has decimal commas' * commas}; "
                f"--text '{json.dumps(text)}' (text= in Python) reads it"
            )


def refuse_cut(path: str, written: TextFormat) -> None:
    """Refuses a file that ends within a line, with a shorter number than all lines before it.

    A packed file's packing tells.
    """
    if packing_of(path) is not None:
        return
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _HEADER))
        tail = file.read(_HEADER)
    if tail.endswith((b"\n", b"\r")):
        return
    lines = tail.splitlines()[1:]  # the first is the header, or one that begins before the tail
    fields = [line.rpartition(written.separator.encode())[2].strip() for line in lines]
    if len(fields) < _TELLING or not fields[-1]:
        return
    if len(fields[-1]) < min(map(len, fields[:-1])) and fields[-1][:1] in b"+-.0123456789":
        last = fields[-1].decode(errors="replace")
        raise BadInput(
            f"{path} ends within a line, whose last value, {last!r}, is shorter than those before "
            "it: the file seems to be cut. Copy it again; if it is whole, end it with a newline"
        )
