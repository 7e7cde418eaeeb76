"""Reading the named columns of files into Arrow, and knowing the files.

A Parquet or ORC file is known by its magic, CSV and TSV by their suffix (also with .gz, .bz2 or
.zst), TFRecord too (.tfrecord, also with .gz). Several files of one data set are a folder or a
pattern such as day=*/part-*.parquet, read in the order of their names. Only the named columns are
decoded. In text files numbers are float64 and names stay text, so that the id 0012 is not the id
12; an empty field is a missing value.

Whatever pyarrow says of a file that it cannot read becomes one sentence in BadInput.
"""

import contextlib
import glob
import hashlib
import json
import os
import pathlib
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.tfrecord import SUFFIXES, read_tfrecord
from semisync.errors import BadInput

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = {".gz", ".bz2", ".zst"}
_PARQUET = b"PAR1"
_ORC = b"ORC"
_KNOWN = re.compile(r"\.(parquet|orc|csv|tsv|tfrecords?)(\.(gz|bz2|zst))?$")
_PARTS = b"files"


class FileIdentity(NamedTuple):
    """What a report says of a file that it used."""

    path: str
    sha256: str
    bytes: int
    rows: Optional[int] = None  # None for a file that was counted with others

    def to_json(self) -> Dict[str, Any]:
        """What is known of it."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def files_of(path: str) -> List[str]:
    """The files that a path, a folder or a pattern stands for, sorted.

    Of a folder, the files with a known suffix, at any depth; names that begin with . or _ are
    leftovers of a writer and not data.

    Raises: BadInput where there is none.
    """
    if os.path.isdir(path):
        found = [
            file
            for file in glob.glob(os.path.join(glob.escape(path), "**"), recursive=True)
            if _KNOWN.search(file.lower()) and os.path.basename(file)[0] not in "._"
        ]
        if not found:
            raise BadInput(f"{path} is a folder without a Parquet, ORC, CSV, TSV or TFRecord file")
        return sorted(found)
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not found:
        raise BadInput(f"no file matches {path}")
    return found


def parts_of(table: pa.Table) -> Tuple[Tuple[str, int], ...]:
    """The files, and the rows of each, that `read_columns` put together."""
    return tuple((file, rows) for file, rows in json.loads(table.schema.metadata[_PARTS]))


def identify(path: str, rows: Optional[int] = None) -> FileIdentity:
    """Hashes the file; reads it once, in blocks of a mebibyte."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return FileIdentity(path, digest.hexdigest(), os.path.getsize(path), rows)


def identify_all(files: Iterable[Tuple[str, Optional[int]]]) -> Tuple[FileIdentity, ...]:
    """`identify` of a data set's files, each with its rows if they are known.

    Raises: BadInput for two files of the same bytes, whose rows would be counted twice.
    """
    known: Dict[str, str] = {}
    found = []
    for file, rows in files:
        found.append(identify(file, rows))
        earlier = known.setdefault(found[-1].sha256, file)
        if earlier != file:
            raise BadInput(
                f"{file} is a copy of {earlier}; rows that are counted twice make the interval too "
                "narrow, so leave one out"
            )
    return tuple(found)


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
    tables = [_read_file(file, numbers, names, optional) for file in files]
    for file, table in zip(files, tables):
        if table.column_names != tables[0].column_names:
            raise BadInput(
                f"{file} has the columns {', '.join(table.column_names)} of those asked for, "
                f"{files[0]} has {', '.join(tables[0].column_names)}; they must be the same"
            )
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise BadInput(f"the files of {path} do not have the same types: {error}") from error
    if not whole.num_rows:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    parts = [(file, table.num_rows) for file, table in zip(files, tables)]
    return whole.replace_schema_metadata({_PARTS: json.dumps(parts)})


def _read_file(
    path: str, numbers: Sequence[str], names: Sequence[str], optional: Sequence[str]
) -> pa.Table:
    kind = kind_of(path)
    with explained(path):
        if kind == "tfrecord":
            return read_tfrecord(path, list(dict.fromkeys([*numbers, *names])), optional)
        if kind in ("parquet", "orc"):
            file: Any
            if kind == "parquet":
                file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
                present = file.schema_arrow.names
            else:
                file = pyarrow.orc.ORCFile(path)
                present = file.schema.names
            return file.read(columns=chosen(path, present, [*numbers, *names], optional))
        wanted = chosen(path, header(path, kind), [*numbers, *names], optional)
        return _read_text(path, kind, wanted, names)


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
        with open(path, "rb") as file:
            magic = file.read(len(_PARQUET))
    except IsADirectoryError as error:
        raise BadInput(f"{path} is a folder; a file is expected") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error
    if not magic:
        raise BadInput(f"{path} is empty (0 bytes)")
    if magic == _PARQUET:
        return "parquet"
    if magic.startswith(_ORC):
        return "orc"
    suffixes = [suffix.lower() for suffix in pathlib.Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
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


def header(path: str, separator: str) -> List[str]:
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
