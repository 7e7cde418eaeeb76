"""One data file of a click log: a pyarrow.Table, and how an error names a row of it.

    Parquet, ORC, lines of JSON, TFRecord
    Criteo       tab-separated, without a header: label, 13 counts, 26 hexadecimal categories
                 (https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/)
    delimited    a header, then rows separated by tabs, commas or semicolons (whichever the header
                 has, tried in that order)

All are read by parity.io.formats; columns of separated text are dictionary-encoded.
"""

import pathlib
import re
from typing import Any, Callable, NamedTuple, Optional, Tuple

from parity.io.damage import explained
from parity.io.data_files import format_of, named
from parity.io.text_format import SEPARATORS, TextFormat
from semisync.common.errors import BadInput
from semisync.storage.sources import streamed

CRITEO_COUNTS = tuple(f"I{i}" for i in range(1, 14))
CRITEO_CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
_CRITEO_NAMES = ("label", *CRITEO_COUNTS, *CRITEO_CATEGORIES)
_CRITEO_LINE = re.compile(r"([01]\t)?-?\d*(\t-?\d*){12}(\t[0-9a-f]{0,8}){26}")
_BINARY = re.compile("[\0-\x08\x0e-\x1a]")
_HEAD = 1 << 16  # bytes in which the separator of text is looked for
_ROWS = 1 << 16  # of Parquet, decoded at a time


class Where(NamedTuple):
    """The names of places in errors: the file or folder of files, and the i-th row, from 0."""

    whole: str
    row: Callable[[int], str]


class DataFile(NamedTuple):
    """A file whose columns are known.

    Attributes:
        path: of the file.
        names: the columns, in order.
        layout: "criteo", "delimited", or a format of parity.io.formats.
        written: how, separated text.
    """

    path: pathlib.Path
    names: Tuple[str, ...]
    layout: str
    written: Optional[TextFormat] = None

    @property
    def is_typed(self) -> bool:
        """Whether the file's format has types for its columns."""
        return self.written is None

    def table(self) -> Any:
        """All rows, as a pyarrow.Table; raises BadInput, with the row, for a malformed one."""
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise BadInput(f"{self.path}: two columns are named {repeated[0]!r}; names must differ")
        import pyarrow as pa

        from parity.io.formats import FORMATS, Columns
        from parity.io.formats.text import Text

        path, columns = str(self.path), Columns(self.names)
        with explained(path):
            if self.written is None:
                file = FORMATS[self.layout](path)
            else:
                file = Text(path, self.written)
                file.columns = list(self.names)
                text = pa.dictionary(pa.int32(), pa.string())
                columns = columns._replace(types=dict.fromkeys(self.names, text))
            table = pa.concat_tables(file.tables(columns, _ROWS), promote_options="permissive")
            table.validate(full=True)
        return table

    def where(self, row: int) -> str:
        """The name of a row, counted from 0, in an error."""
        return f"{self.path} row {row + 1}"


def open_file(path: pathlib.Path) -> DataFile:
    """Tells the format by the content, else by the name; raises BadInput for an unknown one."""
    from migrate.data.listing import file_of  # which needs pyarrow

    name = str(path)
    with explained(name):
        kind = format_of(name, written=named(name) is None)
        if kind not in SEPARATORS:
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
        names = _CRITEO_NAMES[criteo[1] is None :]
        return DataFile(path, names, "criteo", TextFormat("\t", names, quote=None))
    return _with_header(path, text)


def _with_header(path: pathlib.Path, text: str) -> DataFile:
    from parity.io.formats.text import Text

    first = next(line for line in text.splitlines() if line)
    written = TextFormat(next((mark for mark in "\t,;" if mark in first), ","))
    # pandas writes its index as a column without a name, and reads that as "Unnamed: 0".
    columns = enumerate(Text(str(path), written).columns)
    names = tuple(name or f"Unnamed: {number}" for number, name in columns)
    return DataFile(path, names, "delimited", written)


def shown(text: str, most: int = 40) -> str:
    """A value as an error quotes it: escaped, and cut where it is long."""
    return repr(text if len(text) <= most else text[:most] + "...")
