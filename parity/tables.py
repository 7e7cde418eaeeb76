"""Reading the named columns of one Parquet, CSV or TSV file into Arrow, and knowing the file.

A Parquet file is known by its magic, CSV and TSV by their suffix (also with .gz, .bz2 or .zst).
Only the named columns are decoded. In text files numbers are float64 and names stay text, so that
the id 0012 is not the id 12; an empty field is a missing value.

Whatever pyarrow says of a file that it cannot read becomes one sentence in BadInput.
"""

import contextlib
import hashlib
import os
import pathlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from semisync.errors import BadInput

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = {".gz", ".bz2", ".zst"}
_PARQUET = b"PAR1"


class FileIdentity(NamedTuple):
    """What a report says of a file that it used."""

    path: str
    sha256: str
    bytes: int
    rows: int


def identify(path: str, rows: int) -> FileIdentity:
    """Hashes the file; reads it once, in blocks of a mebibyte."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return FileIdentity(path, digest.hexdigest(), os.path.getsize(path), rows)


def read_columns(
    path: str, numbers: Sequence[str], names: Sequence[str], optional: Sequence[str] = ()
) -> pa.Table:
    """Reads some columns of a file.

    Args:
        path: a Parquet, CSV or TSV file.
        numbers: columns that hold numbers; a text file that has anything else in one of them
            yields all of them as strings, for the caller to name the row at fault.
        names: columns that identify: keys and groups; strings from a text file.
        optional: those of `numbers` that may be absent.

    Raises: BadInput for a file or a column that is not there, and for a file that is empty, cut
    short, corrupt or of another format.
    """
    separator = _separator(path)
    with _explained(path):
        if separator is None:
            file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            wanted = _chosen(path, file.schema_arrow.names, [*numbers, *names], optional)
            table = file.read(columns=wanted)
        else:
            wanted = _chosen(path, _header(path, separator), [*numbers, *names], optional)
            table = _read_text(path, separator, wanted, names)
    if not table.num_rows:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    return table


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns what pyarrow and the file system raise into BadInput, on one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{path} cannot be read, it may be cut short or corrupt: {reason[:300]}"
        ) from error


def _separator(path: str) -> Optional[str]:
    """The separator of a text file; None for Parquet."""
    try:
        with open(path, "rb") as file:
            magic = file.read(len(_PARQUET))
    except IsADirectoryError as error:
        raise BadInput(f"{path} is a folder; a Parquet, CSV or TSV file is expected") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error
    if not magic:
        raise BadInput(f"{path} is empty (0 bytes)")
    if magic == _PARQUET:
        return None
    suffixes = [suffix.lower() for suffix in pathlib.Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    separator = _SEPARATORS.get(suffixes[-1]) if suffixes else None
    if separator is None:
        raise BadInput(
            f"{path} is neither Parquet (it does not begin with PAR1) nor, by its name, a .csv or "
            ".tsv file"
        )
    return separator


def _chosen(
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


def _header(path: str, separator: str) -> List[str]:
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
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=wanted,
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
