"""Reading a data set in batches, so that memory does not grow with the rows.

Each batch is checked as `parity.readers` checks a whole file; a value at fault is named with its
file and the row in that file.
"""

import os
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.checks import Column, check_label_values, check_scores, check_weight_values
from parity.columns import to_names, to_numbers
from parity.readers import ColumnNames
from parity.rows import Rows
from parity.tables import chosen, explained, files_of, header, kind_of, read_columns
from parity.tfrecord import tfrecord_tables
from semisync.errors import BadInput

BATCH = 1 << 16  # rows; a column of them fits the processor's cache
DIVIDED_BATCH = 1 << 20  # where rows are divided by day or slice, so that no piece is tiny

Progress = Callable[[str, int], None]  # file, rows so far


class Batch(NamedTuple):
    """Rows of one file, from row `skipped` (0 is the first) on."""

    file: str
    skipped: int
    table: pa.Table


class Block(NamedTuple):
    """Checked rows, those of weight 0 left out."""

    rows: Rows  # without clusters
    numbers: np.ndarray  # int64 (n,): where the rows are in the data set, from 0
    names: Dict[str, pa.ChunkedArray]  # the columns that divide them: days, slices
    group: Optional[pa.ChunkedArray]


def batches(
    path: str, numbers: Sequence[str], names: Sequence[str] = (), size: int = BATCH
) -> Iterator[Batch]:
    """The data set's rows in batches, in order; of Parquet of `size` rows.

    Args:
        numbers: columns that hold numbers.
        names: columns that name something: strings from a text file.

    Raises: BadInput as `parity.tables.read_columns`.
    """
    for file in files_of(path):
        skipped = 0
        with explained(file):
            for table in _tables(file, numbers, names, size):
                if table.num_rows:
                    yield Batch(file, skipped, table)
                    skipped += table.num_rows


def blocks(path: str, names: ColumnNames, progress: Optional[Progress] = None) -> Iterator[Block]:
    """The checked rows of a data set that holds the label and both scores.

    Args:
        progress: called after each batch.

    Raises: BadInput, naming file, column and row.
    """
    numbers = [names.label, names.baseline_score, names.candidate_score]
    numbers += [names.weight] if names.weight else []
    texts = list(dict.fromkeys([*names.parts, *([names.group] if names.group else [])]))
    seen = 0
    for batch in batches(path, numbers, texts, DIVIDED_BATCH if texts else BATCH):
        seen += batch.table.num_rows
        yield _checked(batch, seen - batch.table.num_rows, names, texts)
        if progress is not None:
            progress(batch.file, seen)
    if not seen:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")


def _checked(batch: Batch, before: int, names: ColumnNames, texts: Sequence[str]) -> Block:
    def column(name: str) -> Column:
        return Column(name, batch.file, skipped=batch.skipped)

    def numbers(name: str) -> np.ndarray:
        return to_numbers(batch.table[name], column(name))

    positive = check_label_values(numbers(names.label), column(names.label))
    scores = [
        check_scores(numbers(name), column(name))
        for name in (names.baseline_score, names.candidate_score)
    ]
    weights = None
    if names.weight is not None:
        weights = check_weight_values(numbers(names.weight), column(names.weight))
    rows = Rows(positive, scores[0], scores[1], None, weights)
    held = {name: to_names(batch.table[name], column(name)) for name in texts}
    order = np.arange(before, before + len(positive))
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        rows, order = rows.take(kept), order[kept]
        held = {name: values.take(kept) for name, values in held.items()}
    parts = {name: held[name] for name in names.parts}
    return Block(rows, order, parts, held[names.group] if names.group else None)


def _tables(
    path: str, numbers: Sequence[str], names: Sequence[str], size: int
) -> Iterator[pa.Table]:
    kind = kind_of(path)
    columns = [*numbers, *names]
    if kind == "parquet":
        # Read ahead, what was read would be kept until the end of the file.
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
        wanted = chosen(path, file.schema_arrow.names, columns, ())
        for part in file.iter_batches(size, columns=wanted):
            yield pa.Table.from_batches([part])
    elif kind == "orc":
        stripes: Any = pyarrow.orc.ORCFile(path)
        wanted = chosen(path, stripes.schema.names, columns, ())
        for i in range(stripes.nstripes):
            yield pa.Table.from_batches([stripes.read_stripe(i, columns=wanted)])
    elif kind == "tfrecord":
        yield from tfrecord_tables(path, list(dict.fromkeys(columns)))
    else:
        wanted = chosen(path, header(path, kind), columns, ())
        try:
            yield from _text(path, kind, wanted, names)
        except pa.ArrowInvalid:
            whole = read_columns(path, numbers, names)  # reads fields as text, so that
            for name in numbers:  # `to_numbers` can name the row at fault
                to_numbers(whole[name], Column(name, path))
            raise


def _text(
    path: str, separator: str, wanted: Sequence[str], names: Sequence[str]
) -> Iterator[pa.Table]:
    types = {name: pa.string() if name in names else pa.float64() for name in wanted}
    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
        convert_options=pyarrow.csv.ConvertOptions(include_columns=wanted, column_types=types),
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
