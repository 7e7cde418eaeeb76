"""Reading a data set in batches, so that memory does not grow with the rows.

Each batch is checked as `parity.readers` checks a whole file; a value at fault is named with its
file and the row in that file.
"""

import os
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.checks import Column, check_label_values, check_scores
from parity.columns import to_numbers
from parity.readers import ColumnNames
from parity.summary import Summary
from parity.tables import chosen, explained, files_of, header, kind_of, read_columns
from semisync.errors import BadInput

BATCH = 1 << 20  # rows

Progress = Callable[[str, int], None]  # file, rows so far


class Batch(NamedTuple):
    """Rows of one file, from row `skipped` (0 is the first) on."""

    file: str
    skipped: int
    table: pa.Table


def batches(path: str, columns: Tuple[str, ...]) -> Iterator[Batch]:
    """The data set's rows in batches of about a million, in order.

    Raises: BadInput as `parity.tables.read_columns`.
    """
    for file in files_of(path):
        skipped = 0
        with explained(file):
            for table in _tables(file, columns):
                if table.num_rows:
                    yield Batch(file, skipped, table)
                    skipped += table.num_rows


def summarize(path: str, names: ColumnNames, progress: Optional[Progress] = None) -> Summary:
    """Counts a data set that holds the label and both scores (parity.summary).

    Args:
        progress: called after each batch.

    Raises: BadInput, naming file, column and row.
    """
    wanted = (names.label, names.baseline_score, names.candidate_score)
    summary, rows = Summary(), 0
    for batch in batches(path, wanted):
        label, *scores = (Column(name, batch.file, skipped=batch.skipped) for name in wanted)
        positive = check_label_values(to_numbers(batch.table[label.name], label), label)
        summary.add(
            positive,
            *(check_scores(to_numbers(batch.table[c.name], c), c) for c in scores),
        )
        rows += len(positive)
        if progress is not None:
            progress(batch.file, rows)
    if not rows:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    return summary


def _tables(path: str, columns: Tuple[str, ...]) -> Iterator[pa.Table]:
    kind = kind_of(path)
    if kind == "parquet":
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        wanted = chosen(path, file.schema_arrow.names, columns, ())
        for part in file.iter_batches(BATCH, columns=wanted):
            yield pa.Table.from_batches([part])
    elif kind == "orc":
        stripes: Any = pyarrow.orc.ORCFile(path)
        wanted = chosen(path, stripes.schema.names, columns, ())
        for i in range(stripes.nstripes):
            yield pa.Table.from_batches([stripes.read_stripe(i, columns=wanted)])
    elif kind == "tfrecord":
        yield read_columns(path, columns, [])  # its rows cost far more to parse than to hold
    else:
        wanted = chosen(path, header(path, kind), columns, ())
        try:
            yield from _text(path, kind, wanted)
        except pa.ArrowInvalid:
            whole = read_columns(path, columns, [])  # reads fields as text, so that `to_numbers`
            for name in columns:  # can name the row at fault
                to_numbers(whole[name], Column(name, path))
            raise


def _text(path: str, separator: str, wanted: Any) -> Iterator[pa.Table]:
    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64())
        ),
    )
    for part in reader:
        yield pa.Table.from_batches([part])


def count_rows(path: str) -> Optional[int]:
    """Rows of a Parquet or ORC data set, from its footers; None for other formats."""
    total = 0
    for file in files_of(path):
        kind = kind_of(file)
        with explained(file):
            if kind == "parquet":
                total += pyarrow.parquet.ParquetFile(file).metadata.num_rows
            elif kind == "orc":
                total += int(pyarrow.orc.ORCFile(file).nrows)
            else:
                return None
    return total


def total_bytes(path: str) -> int:
    """Size of the data set's files."""
    return sum(os.path.getsize(file) for file in files_of(path))
