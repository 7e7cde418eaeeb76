"""The rows of a data set in batches, each from one file, in order and in bounded memory.

The data sets are those of `parity.io.tables`. Columns of text files stay text, so that whoever
knows their type can name the row that does not have it; the type of a column of which nobody knows
it is the one that its first 16 MB suggest. An empty field is missing. In a TFRecord file a feature
with one value in every record of a batch is a plain column, any other a column of lists; a record
that lacks it has a missing value there.
"""

from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.io.data_files import files_of
from parity.io.streams import Batch
from parity.io.tables import chosen, explained, header, kind_of, text_options
from parity.io.tfrecord import read_examples
from semisync.common.errors import BadInput

_BLOCK = 1 << 24  # bytes of a text file


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
    kind = kind_of(path)
    names = columns.names
    if kind == "parquet":
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        wanted = chosen(path, file.schema_arrow.names, names, ())
        for part in file.iter_batches(size, columns=wanted):
            yield pa.Table.from_batches([part])
    elif kind == "orc":
        stripes: Any = pyarrow.orc.ORCFile(path)
        wanted = chosen(path, stripes.schema.names, names, ())
        for i in range(stripes.nstripes):
            yield pa.Table.from_batches([stripes.read_stripe(i, columns=wanted)])
    elif kind == "tfrecord":
        yield from _examples(path, names, size)
    else:
        chosen(path, header(path, kind), names, ())
        yield from _text(path, kind, columns)


def _text(path: str, separator: str, columns: Columns) -> Iterator[pa.Table]:
    known = [name for name in columns.names if name not in columns.inferred]
    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
        convert_options=text_options(columns.names, dict.fromkeys(known, pa.string())),
    )
    for part in reader:
        table = pa.Table.from_batches([part])
        for name in columns.lists:
            lists = pc.split_pattern(table[name], columns.separator)
            table = table.set_column(table.column_names.index(name), name, lists)
        yield table


def _examples(path: str, names: Sequence[str], size: int) -> Iterator[pa.Table]:
    seen: Dict[str, int] = dict.fromkeys(names, 0)
    rows: List[Dict[str, List[Any]]] = []
    for _, found in read_examples(path):
        rows.append(found)
        for name in names:
            seen[name] += name in found
        if len(rows) == size:
            yield _table(path, rows, names)
            rows = []
    if rows:
        yield _table(path, rows, names)
    for name, records in seen.items():
        if not records:
            raise BadInput(f"{path}: no record has the feature {name!r}")


def _table(path: str, rows: List[Dict[str, List[Any]]], names: Sequence[str]) -> pa.Table:
    columns = {}
    for name in names:
        lists = [row.get(name) or None for row in rows]
        if any(values is not None and len(values) > 1 for values in lists):
            columns[name] = pa.array(lists)
        else:
            columns[name] = pa.array([None if values is None else values[0] for values in lists])
    return pa.table(columns)
