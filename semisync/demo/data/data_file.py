"""One data file of a click log: a pyarrow.Table, and how an error names a row of it.

    Parquet      the magic bytes PAR1
    Criteo       tab-separated, without a header: label, 13 counts, 26 hexadecimal categories
                 (https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/)
    delimited    a header, then rows separated by tabs, commas or semicolons (whichever the header
                 has, tried in that order)

Columns of text files are dictionary-encoded text, "" where missing. A row is one line: a value may
not contain a line break, since a missing quote would otherwise swallow rows silently.
"""

import csv
import io
import itertools
import pathlib
import re
from typing import Any, Callable, Iterator, NamedTuple, NoReturn, Tuple

from semisync.common.errors import BadInput

CRITEO_COUNTS = tuple(f"I{i}" for i in range(1, 14))
CRITEO_CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
_CRITEO_NAMES = ("label", *CRITEO_COUNTS, *CRITEO_CATEGORIES)
_CRITEO_LINE = re.compile(r"([01]\t)?-?\d*(\t-?\d*){12}(\t[0-9a-f]{0,8}){26}")
_BINARY = re.compile("[\0-\x08\x0e-\x1a]")
_HEAD = 1 << 16  # bytes that tell the format
_BLOCK = 1 << 23  # bytes that pyarrow parses at a time; a row must fit into one
_MAGIC = b"PAR1"


class Where(NamedTuple):
    """How an error names its place: the file or folder of files, and the i-th row, from 0."""

    whole: str
    row: Callable[[int], str]


class DataFile(NamedTuple):
    """A file whose columns are known.

    Attributes:
        path: of the file.
        names: the columns, in order.
        layout: "parquet", "criteo" or "delimited".
        delimiter: between the values of a text file.
        header_lines: lines of a text file before its rows.
    """

    path: pathlib.Path
    names: Tuple[str, ...]
    layout: str
    delimiter: str = ""
    header_lines: int = 0

    def table(self) -> Any:
        """All rows, as a pyarrow.Table. Raises BadInput, naming the first malformed row."""
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise BadInput(f"{self.path}: two columns are named {repeated[0]!r}; names must differ")
        return _parquet_table(self.path) if self.layout == "parquet" else _text_table(self)

    def where(self, row: int) -> str:
        """How an error names a row, from 0: "FILE line 17"; of Parquet "FILE row 17"."""
        if self.layout == "parquet":
            return f"{self.path} row {row + 1}"
        number, _ = next(itertools.islice(_rows(self), row, None))
        return f"{self.path} line {number}"


def open_file(path: pathlib.Path) -> DataFile:
    """Tells the format by the content. Raises BadInput where the file is no table."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            is_whole = not file.read(1)
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error
    if head.startswith(_MAGIC) or path.suffix.lower() in {".parquet", ".pq"}:
        return _open_parquet(path)
    text = head.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise BadInput(f"{path} is empty; expected Parquet, Criteo's format or CSV with a header")
    if _BINARY.search(text):
        hint = " (gzip: unpack it first)" if head.startswith(b"\x1f\x8b") else ""
        raise BadInput(f"{path} is neither text nor Parquet{hint}; expected a log of clicks")
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
            str(file.path),
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
    with open(file.path, "rb") as lines:
        for number, line in enumerate(lines, 1):
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


def _open_parquet(path: pathlib.Path) -> DataFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = tuple(pq.read_schema(str(path)).names)
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise _not_whole(path, error) from error
    return DataFile(path, names, "parquet")


def _parquet_table(path: pathlib.Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(str(path), page_checksum_verification=True, partitioning=None)
        table.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise _not_whole(path, error) from error
    return table


def _not_whole(path: pathlib.Path, error: BaseException) -> BadInput:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return BadInput(f"{path} is not a whole Parquet file: {reason}; copy or write it anew")
