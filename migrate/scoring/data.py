"""The rows of a data set in batches, each from one file, in order and in bounded memory.

The data sets are those of `parity.io.tables`. Columns of text files stay text, so that whoever
knows their type can name the row that does not have it; the type of a column of which nobody knows
it is the one that its first 16 MB suggest. An empty field is missing. In a TFRecord file a feature
with one value in every record of a batch is a plain column, any other a column of lists; a record
that lacks it has a missing value there.
"""

from typing import Collection, Iterator, NamedTuple, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from parity.io import formats
from parity.io.data_files import files_of
from parity.io.formats import chosen, explained, open_file
from parity.io.tables import Batch
from semisync.common.errors import BadInput


class Columns(NamedTuple):
    """What to read."""

    names: Sequence[str]
    inferred: Collection[str] = ()  # columns of text files whose type nobody knows
    lists: Collection[str] = ()  # columns of text files whose fields hold several values
    separator: str = "|"  # between these


def batches(path: str, columns: Columns, size: int) -> Iterator[Batch]:
    """The columns of the data set in batches of at most `size` rows.

    Raises: BadInput for a file or a column that is not there, damage, and a data set without rows.
    """
    empty = True
    for file in files_of(path):
        skipped = 0
        with explained(file):
            for table in _tables(file, columns, size):
                for start in range(0, table.num_rows, size):
                    part = table.slice(start, size)
                    yield Batch(file, skipped, part)
                    skipped += part.num_rows
                    empty = False
    if empty:
        raise BadInput(f"{path} has no rows to score")


def _tables(path: str, columns: Columns, size: int) -> Iterator[pa.Table]:
    file = open_file(path)
    names = columns.names
    if file.columns is not None:
        names = chosen(path, file.columns, names)
    texts = {name: pa.string() for name in names if name not in columns.inferred}
    for table in file.tables(formats.Columns(names, types=texts, several=True), size):
        for name in columns.lists if isinstance(file, formats.Text) else ():
            lists = pc.split_pattern(table[name], columns.separator)
            table = table.set_column(table.column_names.index(name), name, lists)
        yield table
