"""Delimited text: files with a header, and Criteo's without one.

Criteo's layout (https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/): label, I1-I13,
C1-C26, parted by tabs, never quoted, empty where missing. A file is taken for one when any of its
first lines fits, so that a broken line among them is still reported as a broken line.

pyarrow reads the rows, which is fast; when it stumbles, `rescan` finds the line. Since a missing
quote would swallow rows silently, no value may hold a line break.
"""

import csv
import io
import pathlib
import re
from typing import TYPE_CHECKING, List, Tuple

from semisync.common.errors import BadInput
from semisync.demo.data.readers import rescan
from semisync.demo.data.readers.source import CRITEO_NAMES, Source

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = 1 << 16  # bytes by which a format is told
_BLOCK = 1 << 23  # bytes that pyarrow parses at a time; a row must fit into one
_CRITEO_LINE = re.compile(r"[01](\t-?\d*){13}(\t[0-9a-f]{0,8}){26}")
_UNLABELLED_CRITEO_LINE = re.compile(r"-?\d*(\t-?\d*){12}(\t[0-9a-f]{0,8}){26}")
_BINARY = re.compile("[\0-\x08\x0e-\x1a]")


class DelimitedFile(Source):
    """A delimited file whose columns are known, from its header or from its layout."""

    def __init__(
        self,
        path: pathlib.Path,
        names: Tuple[str, ...],
        delimiter: str,
        header_lines: int,
        quoted: bool = True,
    ) -> None:
        super().__init__(path, names)
        self.dialect = rescan.Dialect(path, delimiter, header_lines, quoted)
        self.fixed = names == CRITEO_NAMES and not quoted

    def without_header(self, names: Tuple[str, ...]) -> "DelimitedFile":
        """The same file, its first line a row: a later part of a log that has one header."""
        return DelimitedFile(self.path, names, self.dialect.delimiter, 0)

    def table(self) -> "pa.Table":
        import pyarrow as pa
        import pyarrow.csv

        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise BadInput(f"{self.path}: two columns are named {twice[0]!r}; names must differ")
        text = pa.dictionary(pa.int32(), pa.string())
        try:
            table = pyarrow.csv.read_csv(
                str(self.path),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=self.names,
                    skip_rows=self.dialect.header_lines,
                    block_size=_BLOCK,
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    quote_char='"' if self.dialect.quoted else False,
                    newlines_in_values=self.dialect.quoted,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, text), strings_can_be_null=False
                ),
            )
        except (pa.ArrowException, OSError) as error:
            if not rescan.has_rows(self.dialect):
                return pa.table({name: pa.array([], text) for name in self.names})
            rescan.report(self.dialect, len(self.names))
            raise BadInput(f"{self.path} cannot be read as rows of text: {error}") from error
        table = table.unify_dictionaries()
        if _holds_line_break(table):
            rescan.report(self.dialect, len(self.names))
        return table

    def where(self, row: int) -> str:
        return f"{self.path} line {rescan.line_of(self.dialect, row)}"


def open_delimited(path: pathlib.Path) -> DelimitedFile:
    """Tells the layout from the first lines; whatever is text has a header, if of one column.

    Raises: BadInput for an empty file, a binary one and a header that no csv reader accepts.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD)
        ended = not file.read(1)
    text = head.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise BadInput(f"{path} is empty; expected Parquet, Criteo's format or CSV with a header")
    if _BINARY.search(text):
        hint = " (gzip: unpack it first)" if head.startswith(b"\x1f\x8b") else ""
        raise BadInput(f"{path} is neither text nor Parquet{hint}; expected a log of clicks")
    lines = text.splitlines() if ended else text.splitlines()[:-1]
    if any(map(_CRITEO_LINE.fullmatch, lines)):
        return DelimitedFile(path, CRITEO_NAMES, "\t", 0, quoted=False)
    if any(map(_UNLABELLED_CRITEO_LINE.fullmatch, lines)):
        return DelimitedFile(path, CRITEO_NAMES[1:], "\t", 0, quoted=False)
    return _with_header(path, text)


def _with_header(path: pathlib.Path, text: str) -> DelimitedFile:
    first: str = next(line for line in text.splitlines() if line)
    delimiter = next((d for d in "\t,;" if d in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header: List[str] = next(row for row in reader if row)
    except csv.Error as error:
        raise BadInput(f"{path}: the header cannot be read: {error}") from error
    names = tuple(_named(name, number) for number, name in enumerate(header, 1))
    return DelimitedFile(path, names, delimiter, reader.line_num)


def _named(name: str, number: int) -> str:
    """pandas writes its index as a column without a name, or reads it as "Unnamed: 0"."""
    return name.strip() or f"Unnamed: {number - 1}"


def _holds_line_break(table: "pa.Table") -> bool:
    import pyarrow.compute as pc

    return any(
        pc.any(pc.match_substring_regex(chunk.dictionary, "[\r\n]")).as_py()
        for column in table.columns
        for chunk in column.chunks
    )
