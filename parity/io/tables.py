"""Reading the named columns of files into Arrow.

A Parquet or ORC file is known by its magic, CSV and TSV by their suffix (also with .gz, .bz2 or
.zst), TFRecord too (.tfrecord, also with .gz). Several files of one data set (parity.io.data_files)
are read in the order of their names; columns that stand in the names of their folders
(parity.io.partitions) are columns like others. Only the named columns are decoded. In text files
numbers are float64 and names stay text, so that the id 0012 is not the id 12; an empty field is a
missing value.

Whatever pyarrow says of a file that it cannot read becomes one sentence in BadInput.
"""

import contextlib
import json
import pathlib
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.io.data_files import COMPRESSED, files_of, magic_kind
from parity.io.partitions import completed, partitions_of
from parity.io.tfrecord import SUFFIXES, read_tfrecord
from semisync.common.errors import BadInput

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARTS = b"files"


def parts_of(table: pa.Table) -> Tuple[Tuple[str, int], ...]:
    """The files, and the rows of each, that `read_columns` put together."""
    return tuple((file, rows) for file, rows in json.loads(table.schema.metadata[_PARTS]))


def read_columns(
    path: str, numbers: Sequence[str], names: Sequence[str], optional: Sequence[str] = ()
) -> pa.Table:
    """Reads some columns of a file, or of several, one after the other.

    Args:
        path: a Parquet, ORC, CSV, TSV or TFRecord file, a folder or a pattern of them.
        numbers: columns that hold numbers; a text file that has anything else in one of them
            yields all of them as strings, for the caller to name the row at fault.
        names: columns that identify: keys and groups; strings from a text file.
        optional: those of `numbers` that may be absent.

    Raises: BadInput for a file or a column that is not there, and for a file that is empty, cut
    short, corrupt or of another format.
    """
    files = files_of(path)
    partitions = partitions_of(files)
    tables = [_read_file(file, numbers, names, optional, partitions[file]) for file in files]
    for file, table in zip(files, tables):
        if table.column_names != tables[0].column_names:
            raise BadInput(
                f"{file} has the columns {', '.join(table.column_names)} of those asked for, "
                f"{files[0]} has {', '.join(tables[0].column_names)}; they must be the same"
            )
    try:
        held = [table for table in tables if table.num_rows]  # an empty one's types say nothing
        whole = pa.concat_tables(held or tables[:1], promote_options="permissive")
    except pa.ArrowException as error:
        raise BadInput(f"the files of {path} do not have the same types: {error}") from error
    if not whole.num_rows:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    parts = [(file, table.num_rows) for file, table in zip(files, tables)]
    return whole.replace_schema_metadata({_PARTS: json.dumps(parts)})


def _read_file(
    path: str,
    numbers: Sequence[str],
    names: Sequence[str],
    optional: Sequence[str],
    partitions: Mapping[str, pa.Scalar],
) -> pa.Table:
    kind = kind_of(path)
    with explained(path):
        if kind == "tfrecord":
            wanted = list(dict.fromkeys([*numbers, *names]))
            inside = [name for name in wanted if name not in partitions]
            table = read_tfrecord(path, inside, optional)
            present = [*table.column_names, *partitions]
            return completed(table, chosen(path, present, wanted, optional), partitions)
        file: Any
        if kind == "parquet":
            file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            present = file.schema_arrow.names
        elif kind == "orc":
            file = pyarrow.orc.ORCFile(path)
            present = file.schema.names
        else:
            present = header(path, kind)
        wanted, inside = divided(path, present, [*numbers, *names], optional, partitions)
        if kind in ("parquet", "orc"):
            return completed(file.read(columns=inside), wanted, partitions)
        return completed(_read_text(path, kind, inside, names), wanted, partitions)


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


def kind_of(path: str) -> str:
    """ "parquet", "orc", "tfrecord", or the separator of a text file."""
    try:
        by_magic = magic_kind(path)
    except IsADirectoryError as error:
        raise BadInput(f"{path} is a folder; a file is expected") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error
    if by_magic == "":
        raise BadInput(f"{path} is empty (0 bytes)")
    if by_magic is not None:
        return by_magic
    suffixes = [suffix.lower() for suffix in pathlib.Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return "tfrecord"
    separator = _SEPARATORS.get(suffixes[-1]) if suffixes else None
    if separator is None:
        raise BadInput(
            f"{path} is neither Parquet (it does not begin with PAR1) nor ORC nor, by its name, a "
            ".csv, .tsv or .tfrecord file"
        )
    return separator


def chosen(
    path: str, present: List[str], wanted: Sequence[str], optional: Sequence[str]
) -> List[str]:
    """The wanted columns that the file has, once each; refuses a missing or ambiguous one."""
    chosen = []
    for name in dict.fromkeys(wanted):
        if present.count(name) > 1:
            raise BadInput(f"{path} has {present.count(name)} columns named {name!r}; rename them")
        if name in present:
            chosen.append(name)
        elif name not in optional:
            raise BadInput(f"{path} has no column {name!r}; it has: {', '.join(present)}")
    return chosen


def divided(
    path: str,
    present: List[str],
    wanted: Sequence[str],
    optional: Sequence[str],
    partitions: Mapping[str, pa.Scalar],
) -> Tuple[List[str], List[str]]:
    """As `chosen`, with the columns of the path; and those of them that the file has itself."""
    outside = [name for name in partitions if name not in present]
    columns = chosen(path, [*present, *outside], wanted, optional)
    return columns, [name for name in columns if name not in outside]


def header(path: str, separator: str) -> List[str]:
    """The names of a text file's columns."""
    parse = pyarrow.csv.ParseOptions(delimiter=separator)
    read = pyarrow.csv.ReadOptions(use_threads=False)
    with pyarrow.csv.open_csv(path, read_options=read, parse_options=parse) as reader:
        return reader.schema.names


def _read_text(path: str, separator: str, wanted: List[str], names: Sequence[str]) -> pa.Table:
    number_types = {name: pa.string() if name in names else pa.float64() for name in wanted}
    try:
        return _parse(path, separator, wanted, number_types, threads=True)
    except pa.ArrowInvalid:
        # Either a field is not a number, and the caller will find it among the strings, or the
        # file is damaged, and only without threads does the parser name the row.
        return _parse(path, separator, wanted, dict.fromkeys(wanted, pa.string()), threads=False)


def _parse(
    path: str, separator: str, wanted: List[str], types: Dict[str, Any], threads: bool
) -> pa.Table:
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(use_threads=threads),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
        convert_options=text_options(wanted, types),
    )


def text_options(wanted: Sequence[str], types: Dict[str, Any]) -> pyarrow.csv.ConvertOptions:
    """Columns and their types; an empty field alone is missing, in columns of names as well."""
    return pyarrow.csv.ConvertOptions(
        include_columns=wanted, column_types=types, null_values=[""], strings_can_be_null=True
    )
