"""One reader per format: which columns a file has, how many rows, and its tables.

Parquet and ORC files are known by their magic, CSV, TSV, lines of JSON and TFRecord by their suffix
(also with .gz, .bz2 or .zst). Only the named columns are decoded. A reader yields at least one
table, which may be empty.

In a text file an empty field is a missing value, in columns of names as well, and blanks around a
column's name are no part of it. From a field on that is not a number, the columns of numbers are
text, so that whoever checks them can name the row.
"""

import contextlib
import os
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet

from migrate.storage.sources import opened, packing_of, streamed
from parity.io import tfrecord
from parity.io.data_files import magic_kind, name_kind, refuse_packed
from semisync.common.errors import BadInput

_SEPARATORS = {"csv": ",", "tsv": "\t"}
_BLOCK = 1 << 24  # bytes of a text file
_HEADER = 1 << 16  # bytes that hold a header, or many lines
_TELLING = 4  # lines, so that one is shorter than all others


class Columns(NamedTuple):
    """Which columns to read, and how where the format does not say."""

    names: Sequence[str]
    optional: Collection[str] = ()  # those that may be absent
    types: Mapping[str, pa.DataType] = {}  # in a text file; without one, what 16 MB suggest
    several: bool = False  # whether a feature of a TFRecord may have any number of values
    lists: Collection[str] = ()  # those of separated values whose fields hold several
    separator: str = "|"  # between these


class Parquet:
    """A Parquet file."""

    def __init__(self, path: str) -> None:
        # Read ahead, what was read would be kept until the end of the file.
        self._file = pyarrow.parquet.ParquetFile(
            opened(path), pre_buffer=False, page_checksum_verification=True
        )
        self.columns: Optional[List[str]] = self._file.schema_arrow.names
        self.rows: Optional[int] = self._file.metadata.num_rows

    def holds_rows(self) -> bool:
        """Whether there is a row."""
        return bool(self.rows)

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of `size`."""
        if not self.rows:
            yield self._file.read(columns=list(columns.names))
        for part in self._file.iter_batches(size, columns=list(columns.names)):
            yield pa.Table.from_batches([part])


class Orc:
    """An ORC file."""

    def __init__(self, path: str) -> None:
        self._file: Any = pyarrow.orc.ORCFile(opened(path))
        self.columns: Optional[List[str]] = self._file.schema.names
        self.rows: Optional[int] = int(self._file.nrows)

    def holds_rows(self) -> bool:
        """Whether there is a row."""
        return bool(self.rows)

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of a stripe each."""
        if not self._file.nstripes:
            yield self._file.read(columns=list(columns.names))
        for i in range(self._file.nstripes):
            stripe = self._file.read_stripe(i, columns=list(columns.names))
            yield pa.Table.from_batches([stripe])


class Text:
    """A file of separated values, with a header."""

    rows: Optional[int] = None  # only reading it tells

    def __init__(self, path: str, separator: str) -> None:
        self._path, self._separator = path, separator
        _refuse_other_separator(path, separator)
        with self._opened(pyarrow.csv.ConvertOptions()) as reader:
            written = reader.schema.names
        self._written = {name.strip(): name for name in written}
        self.columns: Optional[List[str]] = [name.strip() for name in written]

    def holds_rows(self) -> bool:
        """Whether there is a row; reads up to the first."""
        with self._opened(pyarrow.csv.ConvertOptions()) as reader:
            return any(batch.num_rows for batch in reader)

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of 16 MB."""
        if self.columns and self.columns[-1] in columns.names:
            _refuse_cut(self._path, self._separator)
        done = 0
        try:
            for table in self._parsed(columns.names, columns.types, threads=True):
                yield _split(table, columns)
                done += table.num_rows
        except pa.ArrowInvalid:
            # Either a field is not a number, or the file is damaged, and only without threads does
            # the parser name the row.
            texts = {
                name: pa.string() if pa.types.is_floating(kind) else kind
                for name, kind in columns.types.items()
            }
            seen = 0
            for table in self._parsed(columns.names, texts, threads=False):
                if seen + table.num_rows > done:
                    yield _split(table.slice(max(0, done - seen)), columns)
                seen += table.num_rows

    def _parsed(
        self, names: Sequence[str], types: Mapping[str, pa.DataType], threads: bool
    ) -> Iterator[pa.Table]:
        options = pyarrow.csv.ConvertOptions(
            include_columns=[self._written[name] for name in names],
            column_types={self._written[name]: kind for name, kind in types.items()},
            null_values=[""],
            strings_can_be_null=True,
        )
        with self._opened(options, threads) as reader:
            empty = True
            for part in reader:
                yield pa.Table.from_batches([part]).rename_columns(list(names))
                empty = False
            if empty:
                yield reader.schema.empty_table().rename_columns(list(names))

    def _opened(self, options: pyarrow.csv.ConvertOptions, threads: bool = False) -> Any:
        return pyarrow.csv.open_csv(
            streamed(self._path),
            read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=threads),
            parse_options=pyarrow.csv.ParseOptions(delimiter=self._separator),
            convert_options=options,
        )


def _refuse_other_separator(path: str, separator: str) -> None:
    with streamed(path) as file:
        header = file.read(_HEADER).split(b"\n")[0].decode(errors="replace")
    if separator in header:
        return
    if ";" in header:
        raise BadInput(
            f"{path} is separated by semicolons, so that its numbers may have decimal commas; "
            "write it with commas and decimal points, such as by pandas.read_csv(FILE, sep=';', "
            "decimal=',').to_csv(FILE, index=False)"
        )
    if "\t" in header:
        raise BadInput(f"{path} is separated by tabs; name it .tsv")


def _refuse_cut(path: str, separator: str) -> None:
    """Refuses a file that ends within a line, with a shorter number than all lines before it.

    Of a packed file its packing tells.
    """
    if packing_of(path) is not None:
        return
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _HEADER))
        tail = file.read(_HEADER)
    if tail.endswith((b"\n", b"\r")):
        return
    lines = tail.splitlines()[1:]  # without the header, or a line that begins before
    fields = [line.rpartition(separator.encode())[2].strip() for line in lines]
    if len(fields) < _TELLING or not fields[-1]:
        return
    if len(fields[-1]) < min(map(len, fields[:-1])) and fields[-1][:1] in b"+-.0123456789":
        last = fields[-1].decode(errors="replace")
        raise BadInput(
            f"{path} ends within a line, whose last value, {last!r}, is shorter than those before "
            "it: the file seems to be cut. Copy it anew; if it is whole, end it with a newline"
        )


def _split(table: pa.Table, columns: Columns) -> pa.Table:
    for name in columns.lists:
        if name in table.column_names:
            values = pc.split_pattern(table[name], columns.separator)
            table = table.set_column(table.column_names.index(name), name, values)
    return table


class JsonLines:
    """A file of JSON objects, one a line, such as {"label": 1, "score": 0.25}."""

    rows: Optional[int] = None

    def __init__(self, path: str) -> None:
        self._path = path
        options = pyarrow.json.ReadOptions(block_size=_BLOCK)
        with pyarrow.json.open_json(streamed(path), options) as reader:
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
        read = pyarrow.json.ReadOptions(block_size=_BLOCK)
        with pyarrow.json.open_json(streamed(self._path), read, options) as reader:
            for part in reader:
                yield pa.Table.from_batches([part]).select(names)

    def _kind(self, name: str, wanted: Optional[pa.DataType]) -> pa.DataType:
        """The type of the first block; the wanted one of whole numbers, which 0.5 may follow, and
        of text that looks like a moment."""
        found = self._schema.field(name).type
        if wanted is None:
            return found
        widened = pa.types.is_integer(found) and pa.types.is_floating(wanted)
        moment = pa.types.is_timestamp(found) and pa.types.is_string(wanted)
        return wanted if widened or moment else found


class TFRecords:
    """A TFRecord file of tf.train.Example."""

    rows: Optional[int] = None
    columns: Optional[List[str]] = None  # each record says which features it has

    def __init__(self, path: str) -> None:
        self._path = path

    def holds_rows(self) -> bool:
        """Whether there is a record; reads the first."""
        return next(tfrecord.read_records(self._path, 1), None) is not None

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The records in tables of many."""
        if columns.several:
            return tfrecord.tables_of_lists(self._path, columns.names, size, columns.optional)
        return tfrecord.tables_of_values(self._path, columns.names, columns.optional)


def open_file(path: str) -> Any:
    """The reader of a file; use within `explained`.

    Raises: BadInput for a file that is not there, is empty, or of no known format.
    """
    try:
        kind = magic_kind(path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise BadInput(f"{path} cannot be opened: {reason}") from error
    if kind == "":
        raise BadInput(f"{path} is empty (0 bytes)")
    if kind == "parquet":
        return Parquet(path)
    if kind == "orc":
        return Orc(path)
    refuse_packed(path)
    kind = name_kind(path)
    if kind == "tfrecord":
        return TFRecords(path)
    if kind == "json":
        return JsonLines(path)
    if kind is None:
        raise BadInput(
            f"{path} is neither Parquet (it does not begin with PAR1) nor ORC nor, by its name, a "
            ".csv, .tsv, .jsonl or .tfrecord file"
        )
    return Text(path, _SEPARATORS[kind])


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what pyarrow and the file system raise into BadInput, on one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{path} cannot be read, it may be cut short or corrupt: {reason[:300]}"
        ) from error


def chosen(
    path: str, present: Sequence[str], wanted: Sequence[str], optional: Collection[str] = ()
) -> List[str]:
    """The wanted columns that the file has, once each; refuses a missing or ambiguous one."""
    counts: Dict[str, int] = {name: list(present).count(name) for name in dict.fromkeys(wanted)}
    for name, count in counts.items():
        if count > 1:
            raise BadInput(f"{path} has {count} columns named {name!r}; rename them")
        if not count and name not in optional:
            raise BadInput(f"{path} has no column {name!r}; it has: {', '.join(present)}")
    return [name for name, count in counts.items() if count]
