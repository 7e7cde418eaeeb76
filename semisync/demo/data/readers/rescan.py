"""Finds the line of a malformed row, once the fast reader has failed or a value is wrong.

Only the way into an error is this slow, so the file is simply read again with the csv module.
Blank lines are no rows, here as in pyarrow.
"""

import csv
import itertools
import pathlib
from typing import Iterator, List, NamedTuple, Tuple

from semisync.common.errors import BadInput


class Dialect(NamedTuple):
    """How a file is to be cut: `header_lines` physical lines first, quotes respected or not."""

    path: pathlib.Path
    delimiter: str
    header_lines: int
    quoted: bool


def rows_of(dialect: Dialect) -> Iterator[Tuple[int, List[str]]]:
    """The line at which a row starts, from 1, and its values.

    Raises: BadInput at a row that is not UTF-8 or whose quotes are not paired.
    """
    with open(dialect.path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        for _ in itertools.islice(file, dialect.header_lines):
            pass
        reader = csv.reader(
            file,
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            line = dialect.header_lines + reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise BadInput(
                    f"{dialect.path} line {line}: {error}; expected quotes in pairs, around "
                    "whole values"
                ) from error
            _check_text(dialect, line, row)
            if row:
                yield line, row


def report(dialect: Dialect, columns: int) -> None:
    """Raises BadInput at the first row that has another number of columns, or a line break.

    Returns where it finds none.
    """
    for line, row in rows_of(dialect):
        if len(row) != columns:
            raise BadInput(
                f"{dialect.path} line {line}: {len(row)} columns, expected {columns}; "
                f"the row starts with {shown(dialect.delimiter.join(row))}"
            )
        broken = next((value for value in row if "\n" in value or "\r" in value), None)
        if broken is not None:
            raise BadInput(
                f"{dialect.path} line {line}: the quoted value {shown(broken)} runs over the end "
                "of the line; expected one row a line, is a quote missing?"
            )


def line_of(dialect: Dialect, row: int) -> int:
    """The line, from 1, at which the `row`-th row starts, from 0."""
    return next(itertools.islice(rows_of(dialect), row, None))[0]


def has_rows(dialect: Dialect) -> bool:
    """Whether anything follows the header."""
    return next(rows_of(dialect), None) is not None


def shown(text: str, most: int = 40) -> str:
    """A value as an error quotes it: escaped, and cut where it is long."""
    return repr(text if len(text) <= most else text[:most] + "...")


def _check_text(dialect: Dialect, line: int, row: List[str]) -> None:
    for value in row:
        if not value.isascii() and any("\udc80" <= char <= "\udcff" for char in value):
            raise BadInput(
                f"{dialect.path} line {line}: the value {ascii(value[:40])} is not UTF-8; "
                "convert the file to UTF-8"
            )
