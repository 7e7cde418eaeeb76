"""The files that a path names, and their columns of the label and the time.

A file means itself. A folder means its files of a format that every command reads, known by their
ending (.txt and .pq among them, also with .gz, .bz2 or .zst), that have a label, in the order
train, dev or valid, test where their names start so, else by name; with a time column the rows of
all are then sorted together. Other files and folders are skipped with a note, but for names that
begin with . or _; files that a Delta table has removed are not part of it.
Two repairs, which published samples need:

1. A file without a header belongs to the log of the first file that has one when its first line
   has as many values and a 0 or 1 for the label (a log cut into pieces).
2. Files of different columns are one log of the union of their columns with a field `file`, since
   an id need not mean the same in each.
"""

import bisect
import itertools
import pathlib
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from parity.io.data_files import is_hidden, named
from parity.io.delta import in_last_version
from semisync.common.errors import BadInput
from semisync.common.ordering import by_numbers
from semisync.demo.data.data_file import DataFile, Where, open_file, shown
from semisync.storage.sources import suffix_of

LABELS = ("label", "click", "clicked", "target", "y")
TIMES = ("timestamp", "datetime", "time", "date", "day")
_OTHER_ENDINGS = {".txt", ".parquet", ".pq", ".orc"}
_PARTS = ("train", "dev", "val", "test")


class Choices(NamedTuple):
    """The caller's own choices; names are matched exactly.

    Attributes:
        label, time: a column's name, or None to go by the usual names.
        drop: columns to leave out.
        categorical: columns that hold ids although they look like decimal numbers.
    """

    label: Optional[str] = None
    time: Optional[str] = None
    drop: Tuple[str, ...] = ()
    categorical: Tuple[str, ...] = ()


def files_of(path: pathlib.Path, choices: Choices, note: Callable[[str], None]) -> List[DataFile]:
    """The files that a path means, in order; each has the label.

    Raises:
        BadInput: there is no such path, or no click log in it.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist; name a file or a folder of a click log")
    if not path.is_dir():
        file = open_file(path)
        if _label(file, choices) is None:
            wanted = repr(choices.label) if choices.label else ", ".join(LABELS[:-1]) + " or y"
            raise BadInput(
                f"{path} has no column {wanted}; it has {listed(file.names)}; name its label"
            )
        return [file]
    paths = []
    for entry in sorted(path.iterdir()):
        if _is_data(entry):
            paths.append(entry)
        elif not is_hidden(entry.name):
            note(f"{entry} is skipped: its name has no ending of a format that is read")
    live = map(pathlib.Path, in_last_version(map(str, paths)))
    files = [open_file(file) for file in sorted(live, key=_by_part)]
    if not files:
        raise BadInput(
            f"{path} holds no file ending in .csv, .tsv, .txt, .parquet, .orc, .jsonl or .tfrecord"
        )
    first = next((file for file in files if _label(file, choices) is not None), None)
    if first is None:
        raise BadInput(
            f"none of the {len(files)} files in {path} has a label column; name one of them and "
            "its label"
        )
    log: List[DataFile] = []
    for file in files:
        part = file if _label(file, choices) is not None else _continued(first, file, choices)
        if part is None:
            note(f"{file.path} is skipped: it has no label column")
        elif (part.layout, _label(part, choices)) != (first.layout, _label(first, choices)):
            raise BadInput(
                f"{first.path} and {part.path} are logs of different formats or labels; "
                "name one of them"
            )
        else:
            log.append(part)
    return log


def read_files(files: Sequence[DataFile], note: Callable[[str], None]) -> Tuple[Any, Where]:
    """One pyarrow.Table of the rows of all files, and how an error names them."""
    import pyarrow as pa

    tables = [file.table() for file in files]
    if len({file.names for file in files}) > 1:
        note("the files differ in their columns: the field 'file' tells which a row came from")
        tables = [
            table.append_column("file", pa.repeat(file.path.stem, table.num_rows))
            for table, file in zip(tables, files)
        ]
    path = files[0].path
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise BadInput(
            f"{path.parent} holds files whose columns differ in type: {error}"
        ) from error
    starts = [0, *itertools.accumulate(table.num_rows for table in tables)]

    def row_of(row: int) -> str:
        number = bisect.bisect_right(starts, row) - 1
        return files[number].where(row - starts[number])

    return table, Where(str(path if len(files) == 1 else path.parent), row_of)


def label_of(file: DataFile, choices: Choices) -> str:
    """The label's column of a file that `files_of` has returned."""
    label = _label(file, choices)
    assert label is not None
    return label


def _label(file: DataFile, choices: Choices) -> Optional[str]:
    """The label's column, or None; raises BadInput if two columns could be it."""
    if choices.label is not None:
        return choices.label if choices.label in file.names else None
    usual = [name for name in file.names if name.lower() in LABELS and name not in choices.drop]
    if len(usual) > 1:
        raise BadInput(
            f"{file.path}: the columns {usual[0]!r} and {usual[1]!r} could both be the label; name "
            "one and drop the other if it is only known after the click"
        )
    return usual[0] if usual else None


def names_of_times(names: Sequence[str]) -> List[str]:
    """The columns with the usual name of a time, the likeliest first."""
    times = [name for name in names if name.lower() in TIMES]
    return sorted(times, key=lambda name: TIMES.index(name.lower()))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names as an error lists them."""
    return ", ".join(map(shown, names[:most])) + (", ..." if len(names) > most else "")


def _is_data(entry: pathlib.Path) -> bool:
    name = str(entry)
    return entry.is_file() and (named(name) is not None or suffix_of(name) in _OTHER_ENDINGS)


def _by_part(path: pathlib.Path) -> Tuple[int, Any]:
    rank = next((i for i, part in enumerate(_PARTS) if path.stem.lower().startswith(part)), None)
    return (len(_PARTS) if rank is None else rank, by_numbers(path.name))


def _continued(first: DataFile, file: DataFile, choices: Choices) -> Optional[DataFile]:
    """`file` with the header of `first`, if it reads as a later part of the same log."""
    if file.written is None or (first.layout, file.layout) != ("delimited", "delimited"):
        return None
    at = first.names.index(label_of(first, choices))
    if len(file.names) != len(first.names) or file.names[at] not in {"0", "1"}:
        return None
    return file._replace(names=first.names, written=file.written._replace(names=first.names))
