"""Reading the named columns of a data set into Arrow, as a whole or in batches.

Several files of one data set (parity.io.data_files) are read in the order of their names, each by
the reader of its format (parity.io.formats); columns that stand in the names of their folders
(parity.io.partitions) are columns like others. In text files numbers are float64 and names stay
text, so that the id 0012 is not the id 12.

Batches keep memory from growing with the rows. A value at fault is named with its file and the row
in that file, in either case.
"""

import json
from typing import (
    Callable,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column
from parity.io.columns import FILL, to_day_names, to_names, to_numbers, with_fills
from parity.io.damage import explained
from parity.io.data_files import files_of
from parity.io.formats import Columns, chosen, open_file
from parity.io.partitions import completed, partitions_of, refuse_contradiction
from parity.io.text_format import TextFormat
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.storage import folders
from semisync.storage.unfolding import refuse_unfolding

BATCH = 1 << 16  # rows; a column of them fits the processor's cache
Progress = Callable[[str, int], None]  # file, rows of the data set so far

_PARTS = b"files"
_NONE: Mapping[str, str] = {}


class Batch(NamedTuple):
    """Rows of one file from row `skipped` on, counted from 0, and its path's columns."""

    file: str
    skipped: int
    table: pa.Table
    placed: FrozenSet[str] = frozenset()

    def column(self, name: str) -> Column:
        """The column as messages name it."""
        return Column(name, self.file, skipped=self.skipped)

    def numbers(self, name: str) -> np.ndarray:
        """The values of a column of numbers, as `parity.io.columns.to_numbers` gives them."""
        return to_numbers(self.table[name], self.column(name))

    def names(self, name: str) -> pa.ChunkedArray:
        """The values of a column that can be filled, as `parity.io.columns.to_names` gives them."""
        return to_names(self.table[name], self.column(name), FILL)

    def days(self, name: str) -> pa.ChunkedArray:
        """The values of the column of days, as `parity.io.columns.to_day_names` gives them."""
        return to_day_names(self.table[name], self.column(name), FILL)


def batches(
    path: str,
    numbers: Sequence[str],
    names: Sequence[str] = (),
    size: int = BATCH,
    optional: Sequence[str] = (),
    alike: bool = True,
    fills: Mapping[str, str] = _NONE,
    text: Optional[TextFormat] = None,
) -> Iterator[Batch]:
    """The data set's rows in batches, in order; of Parquet of `size` rows.

    Args:
        path: a Parquet, ORC, CSV, TSV or TFRecord file, a folder or a pattern of them.
        numbers: columns that hold numbers; a text file that has anything else in one of them
            yields them as strings from there on, for the caller to name the row at fault.
        names: columns that identify: keys and groups; strings from a text file.
        optional: those of `numbers` that may be absent.
        alike: whether `names` must have one type in all files, and values in their first rows.
        fills: the fill of missing values, by column.
        text: how text files are written, whatever their names.

    Raises:
        BadInput: a file or a column that is not there, or a file that is empty, cut short, corrupt
            or of another format.
    """
    first: Optional[Batch] = None
    for batch in batches_of(path, _columns(numbers, names, optional), size, text):
        if fills:
            batch = batch._replace(table=with_fills(batch.table, fills, batch.column))
        if alike and not batch.skipped:  # once per file
            first = first or batch._replace(table=batch.table.slice(0, 1))
            _check_types(batch, first, names)
        yield batch


def batches_of(
    path: str, columns: Columns, size: int, text: Optional[TextFormat] = None
) -> Iterator[Batch]:
    """The data set's rows as `batches` yields them, of columns that are read as `columns` says.

    Raises:
        BadInput: as `batches`.
    """
    files = files_of(path, text is not None)
    partitions = partitions_of(files)
    for file in files:
        skipped = 0
        for batch in _of_file(file, columns, size, partitions[file], text, len(files) > 1):
            if batch.table.num_rows:
                yield batch._replace(skipped=skipped)
                skipped += batch.table.num_rows


def read_columns(
    path: str,
    numbers: Sequence[str],
    names: Sequence[str],
    optional: Sequence[str] = (),
    fills: Mapping[str, str] = _NONE,
    text: Optional[TextFormat] = None,
    progress: Optional[Progress] = None,
) -> pa.Table:
    """All rows at once; arguments and errors as of `batches`, and BadInput without a row.

    Args:
        progress: called after each batch.
    """
    files, columns = files_of(path, text is not None), _columns(numbers, names, optional)
    partitions = partitions_of(files)
    several = len(files) > 1
    tables: List[pa.Table] = []
    for file in files:
        read = _of_file(file, columns, BATCH, partitions[file], text, several)
        if progress is not None:
            read = _watched(read, sum(table.num_rows for table in tables), progress)
        tables.append(_whole(read, file))
    held = [(file, table) for file, table in zip(files, tables) if table.num_rows]
    if not held:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    first, expected = held[0]
    for file, table in held:
        if table.column_names != expected.column_names:
            raise BadInput(
                f"{file} has the columns {', '.join(table.column_names)} of those asked for, "
                f"{first} has {', '.join(expected.column_names)}; they must be the same"
            )
    try:
        whole = pa.concat_tables([table for _, table in held], promote_options="permissive")
    except pa.ArrowException as error:
        raise BadInput(f"the files of {path} do not have the same types: {error}") from error
    parts = [(file, table.num_rows) for file, table in zip(files, tables)]
    whole = with_fills(whole, fills, lambda name: Column(name, path, tuple(parts)))
    return whole.replace_schema_metadata({_PARTS: json.dumps(parts)})


def of_no_file(table: pa.Table) -> pa.Table:
    """A table in memory, for which `parts_of` gives no file."""
    return table.replace_schema_metadata({_PARTS: "[]"})


def parts_of(table: pa.Table) -> Tuple[Tuple[str, int], ...]:
    """The files, and the rows of each, that `read_columns` put together."""
    return tuple((file, rows) for file, rows in json_text.loads(table.schema.metadata[_PARTS]))


def count_rows(path: str, text: Optional[TextFormat] = None) -> Optional[int]:
    """Rows of a data set whose files say how many they have; None for others."""
    total = 0
    for file in files_of(path, text is not None):
        with explained(file):
            rows = open_file(file, text).rows
        if rows is None:
            return None
        total += rows
    return total


def _columns(numbers: Sequence[str], names: Sequence[str], optional: Sequence[str]) -> Columns:
    types = {**dict.fromkeys(numbers, pa.float64()), **dict.fromkeys(names, pa.string())}
    return Columns([*numbers, *names], optional, types)


def _of_file(
    path: str,
    columns: Columns,
    size: int,
    partitions: Mapping[str, pa.Scalar],
    text: Optional[TextFormat],
    several: bool,
) -> Iterator[Batch]:
    """The rows of a file, with the columns of its path; at least one batch, all from row 0.

    Args:
        several: it is one of several; Hive writes such files without rows and columns.
    """
    with explained(path):
        file = open_file(path, text)
        if several and not file.holds_rows():
            yield Batch(path, 0, pa.table({}))
            return
        if file.columns is None:  # TFRecord: only the records say which features they have
            inside = list(dict.fromkeys(columns.names))
            columns = columns._replace(optional=[*columns.optional, *partitions])  # or in the path
        else:
            outside = [name for name in partitions if name not in file.columns]
            wanted = chosen(path, [*file.columns, *outside], columns.names, columns.optional)
            inside = [name for name in wanted if name not in outside]
            inside = inside or list(file.columns[:1])  # which tells how many rows there are
        types = {name: kind for name, kind in columns.types.items() if name in inside}
        for table in file.tables(columns._replace(names=inside, types=types), size):
            outside = [name for name in partitions if name not in table.column_names]
            held = [*table.column_names, *outside]
            wanted = chosen(path, held, columns.names, columns.optional)
            for name in table.column_names:
                refuse_contradiction(path, name, table[name])
            yield Batch(path, 0, completed(table, wanted, partitions), frozenset(outside))


def _watched(batches: Iterator[Batch], seen: int, progress: Progress) -> Iterator[Batch]:
    for batch in batches:
        yield batch
        seen += batch.table.num_rows
        progress(batch.file, seen)


def _whole(batches: Iterator[Batch], path: str) -> pa.Table:
    pieces, held, stored = [], 0, folders.size_of(path)
    for batch in batches:
        held += batch.table.nbytes
        refuse_unfolding(held, stored, path)
        pieces.append(batch.table)
    try:
        return pa.concat_tables(pieces, promote_options="permissive")
    except pa.ArrowTypeError:  # text from the first field on that is not a number
        return pa.concat_tables([piece.cast(pieces[-1].schema) for piece in pieces])


def _check_types(batch: Batch, first: Batch, names: Sequence[str]) -> None:
    """Refuses names of another type than the first file's: 1 is not "1"."""
    start = batch._replace(table=batch.table.slice(0, 1))
    for name in names:
        kind, expected = (
            to_names(of_file.table[name], of_file.column(name)).type for of_file in (start, first)
        )
        if kind != expected:
            raise BadInput(
                f"{batch.column(name)} holds {kind}, but that of {first.file} {expected}; the "
                "files must have the same types"
            )
