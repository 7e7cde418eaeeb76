"""One data file of a click log: a pyarrow.Table, and how an error names a row of it.

    Parquet, ORC, lines of JSON, TFRecord    as every command reads them (parity.io.formats)
    Criteo       tab-separated, without a header: label, 13 counts, 26 hexadecimal categories
                 (https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/)
    delimited    a header, then rows separated by tabs, commas or semicolons (whichever the header
                 has, tried in that order)

Columns of separated text are dictionary-encoded, "" where missing. A row of it is one line: a value
may not contain a line break, since a missing quote would otherwise swallow rows silently.
"""

import csv
import io
import itertools
import pathlib
import re
from typing import Any, Callable, Iterator, NamedTuple, NoReturn, Tuple

from migrate.storage.sources import streamed
from parity.io.damage import explained
from parity.io.data_files import format_of, named
from semisync.common.errors import BadInput

CRITEO_COUNTS = tuple(f"I{i}" for i in range(1, 14))
CRITEO_CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
_CRITEO_NAMES = ("label", *CRITEO_COUNTS, *CRITEO_CATEGORIES)
_CRITEO_LINE = re.compile(r"([01]\t)?-?\d*(\t-?\d*){12}(\t[0-9a-f]{0,8}){26}")
_BINARY = re.compile("[\0-\x08\x0e-\x1a]")
_HEAD = 1 << 16  # bytes that tell how text is separated
_ROWS = 1 << 16  # of Parquet, decoded at a time
_BLOCK = 1 << 23  # bytes that pyarrow parses at a time; a row must fit into one
_TEXTS = ("criteo", "delimited")
_SEPARATED = ("text", "csv", "tsv")


class Where(NamedTuple):
    """How an error names its place: the file or folder of files, and the i-th row, from 0."""

    whole: str
    row: Callable[[int], str]


class DataFile(NamedTuple):
    """A file whose columns are known.

    Attributes:
        path: of the file.
        names: the columns, in order.
        layout: "criteo", "delimited", or a format of parity.io.formats.
        delimiter: between the values of separated text.
        header_lines: lines of separated text before its rows.
    """

    path: pathlib.Path
    names: Tuple[str, ...]
    layout: str
    delimiter: str = ""
    header_lines: int = 0

    @property
    def is_typed(self) -> bool:
        """Whether the file tells its columns' types."""
        return self.layout not in _TEXTS

    def table(self) -> Any:
        """All rows, as a pyarrow.Table. Raises BadInput, naming the first malformed row."""
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise BadInput(f"{self.path}: two columns are named {repeated[0]!r}; names must differ")
        return _typed_table(self) if self.is_typed else _text_table(self)

    def where(self, row: int) -> str:
        """How an error names a row, from 0: "FILE line 17" of text, "FILE row 17" of others."""
        if self.is_typed:
            return f"{self.path} row {row + 1}"
        number, _ = next(itertools.islice(_rows(self), row, None))
        return f"{self.path} line {number}"


def open_file(path: pathlib.Path) -> DataFile:
    """Tells the format by the content, else by the name. Raises BadInput where there is none."""
    from migrate.data.listing import file_of  # which needs pyarrow

    name = str(path)
    with explained(name):
        kind = format_of(name, written=named(name) is None)
        if kind not in _SEPARATED:
            return DataFile(path, file_of(name, path.stat().st_size, None).names, kind)
        with streamed(name) as file:
            head = file.read(_HEAD)
            is_whole = not file.read(1)
    text = head.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise BadInput(f"{path} is empty; expected Criteo's format or a header and rows")
    if _BINARY.search(text):
        raise BadInput(f"{path} is not text, and of no format that is read; expected a click log")
    # Any line that fits, so that a malformed one among them is reported as such.
    lines = text.splitlines() if is_whole else text.splitlines()[:-1]
    criteo = next(filter(None, map(_CRITEO_LINE.fullmatch, lines)), None)
    if criteo is not None:
        return DataFile(path, _CRITEO_NAMES[criteo[1] is None :], "criteo", "\t")
    return _with_header(path, text)


def _with_header(path: pathlib.Path, text: str) -> DataFile:
    first = next(line for line in text.splitlines() if line)
    delimiter = next((d for d in "\t,;" if d in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(row for row in reader if row)
    except csv.Error as error:
        raise BadInput(f"{path}: the header cannot be read: {error}") from error
    # pandas writes its index as a column without a name, and reads that as "Unnamed: 0".
    names = tuple(name.strip() or f"Unnamed: {number}" for number, name in enumerate(header))
    return DataFile(path, names, "delimited", delimiter, reader.line_num)


def _text_table(file: DataFile) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow

    text = pa.dictionary(pa.int32(), pa.string())
    try:
        table = arrow.read_csv(
            streamed(str(file.path)),
            arrow.ReadOptions(
                column_names=file.names, skip_rows=file.header_lines, block_size=_BLOCK
            ),
            arrow.ParseOptions(
                delimiter=file.delimiter, quote_char=file.layout == "delimited" and '"'
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(file.names, text), strings_can_be_null=False
            ),
        ).unify_dictionaries()
    except (pa.ArrowException, OSError) as error:
        if not any(_rows(file)):
            return pa.table({name: pa.array([], text) for name in file.names})
        _refuse(file, error)
    for column in table.columns:
        for chunk in column.chunks:
            if pc.any(pc.match_substring_regex(chunk.dictionary, "[\r\n]")).as_py():
                _refuse(file, "a value holds a line break; is a quote missing?")
    return table


def _rows(file: DataFile) -> Iterator[Tuple[int, bytes]]:
    """The rows of a text file as they stand there, each with its line, from 1."""
    with streamed(str(file.path)) as stream:
        for number, line in enumerate(io.BufferedReader(stream), 1):
            content = line.rstrip(b"\r\n")
            if number > file.header_lines and content:
                yield number, content


def _refuse(file: DataFile, reason: object) -> NoReturn:
    """Names the first malformed line: pyarrow, which reads fast, cannot."""
    for number, line in _rows(file):
        where = f"{file.path} line {number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if file.layout == "criteo":
                values = text.split(file.delimiter)
            else:
                values = next(csv.reader([text], delimiter=file.delimiter, strict=True))
        except UnicodeDecodeError as error:
            raise BadInput(f"{where} is not UTF-8; convert the file to UTF-8") from error
        except csv.Error as error:
            raise BadInput(
                f"{where}: {error}; expected quotes in pairs around whole values, and one row per "
                "line"
            ) from error
        if len(values) != len(file.names):
            raise BadInput(
                f"{where}: {len(values)} columns, expected {len(file.names)}; "
                f"the row starts with {shown(text)}"
            )
    raise BadInput(f"{file.path} cannot be read as rows of text: {reason}")


def shown(text: str, most: int = 40) -> str:
    """A value as an error quotes it: escaped, and cut where it is long."""
    return repr(text if len(text) <= most else text[:most] + "...")


def _typed_table(file: DataFile) -> Any:
    import pyarrow as pa

    from parity.io.formats import FORMATS, Columns

    name = str(file.path)
    with explained(name):
        parts = FORMATS[file.layout](name).tables(Columns(file.names), _ROWS)
        table = pa.concat_tables(parts, promote_options="permissive")
        table.validate(full=True)
    return table
