"""The formats of files of rows, and their readers.

Parquet and ORC files are known by their first bytes, CSV, TSV, lines of JSON and TFRecord by their
suffix (also with .gz, .bz2 or .zst): parity.io.data_files. Only the named columns are decoded.

    columns      a file's columns, None where only its records tell
    rows         how many there are, None where only reading tells
    holds_rows   whether there is one
    tables       the rows one after the other: at least one table, which may be empty
    block_rows   of Parquet and ORC: the rows of each block, a row group or a stripe
    block        the columns of one
"""

from typing import Any, Callable, Dict, Optional

from parity.io.data_files import format_of
from parity.io.formats.file import Columns as Columns
from parity.io.formats.file import chosen as chosen
from parity.io.formats.json_lines import JsonLines
from parity.io.formats.orc import Orc
from parity.io.formats.parquet import Parquet
from parity.io.formats.text import Text
from parity.io.formats.tfrecord import TFRecords
from parity.io.text_format import SEPARATORS, TextFormat, of_kind

FORMATS: Dict[str, Callable[[str], Any]] = {
    "parquet": Parquet,
    "orc": Orc,
    "json": JsonLines,
    "tfrecord": TFRecords,
}


def open_file(path: str, text: Optional[TextFormat] = None) -> Any:
    """The reader of a file; use within `explained`.

    Args:
        text: how text files are written, whatever their names.

    Raises:
        BadInput: a file that does not exist, is empty, or has no known format.
    """
    kind = format_of(path, text is not None)
    return Text(path, of_kind(kind, text)) if kind in SEPARATORS else FORMATS[kind](path)
