"""Reading a data set in batches, so that memory does not grow with the rows.

Each batch is checked as `parity.io.readers` checks a whole file; a value at fault is named with its
file and the row in that file.
"""

import os
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from parity.inputs.checks import Column, check_label_values, check_scores, check_weight_values
from parity.inputs.rows import Rows
from parity.io.columns import to_names, to_numbers
from parity.io.data_files import files_of
from parity.io.logits import probabilities
from parity.io.partitions import completed, partitions_of
from parity.io.readers import ColumnNames
from parity.io.tables import chosen, divided, explained, header, kind_of, read_columns, text_options
from parity.io.tfrecord import tfrecord_tables
from semisync.common.errors import BadInput

BATCH = 1 << 16  # rows; a column of them fits the processor's cache
DIVIDED_BATCH = 1 << 20  # where rows are divided by day or slice, so that no piece is tiny

Progress = Callable[[str, int], None]  # file, rows so far


class Batch(NamedTuple):
    """Rows of one file, from row `skipped` (0 is the first) on."""

    file: str
    skipped: int
    table: pa.Table

    def column(self, name: str) -> Column:
        """Names it in messages."""
        return Column(name, self.file, skipped=self.skipped)

    def numbers(self, name: str) -> np.ndarray:
        """As `parity.io.columns.to_numbers`."""
        return to_numbers(self.table[name], self.column(name))

    def labels(self, name: str) -> np.ndarray:
        """bool (n,), checked."""
        return check_label_values(self.numbers(name), self.column(name))

    def scores(self, names: ColumnNames, role: str) -> np.ndarray:
        """float32 or float64 (n,), checked: those of one of parity.io.logits.ROLES."""
        name = getattr(names, role)
        scores = check_scores(self.numbers(name), self.column(name))
        return probabilities(scores) if role in names.logits else scores

    def weights(self, name: str) -> np.ndarray:
        """float64 (n,), checked; some may be 0."""
        return check_weight_values(self.numbers(name), self.column(name))

    def names(self, name: str) -> pa.ChunkedArray:
        """As `parity.io.columns.to_names`."""
        return to_names(self.table[name], self.column(name))


class Block(NamedTuple):
    """Checked rows, those of weight 0 left out."""

    rows: Rows  # without clusters
    numbers: np.ndarray  # int64 (n,): where the rows are in the data set, from 0
    names: Dict[str, pa.ChunkedArray]  # the columns that divide them: days, slices
    group: Optional[pa.ChunkedArray]


def batches(
    path: str,
    numbers: Sequence[str],
    names: Sequence[str] = (),
    size: int = BATCH,
    optional: Sequence[str] = (),
    alike: bool = True,
) -> Iterator[Batch]:
    """The data set's rows in batches, in order; of Parquet of `size` rows.

    Args:
        numbers: columns that hold numbers.
        names: columns that name something: strings from a text file.
        optional: those of `numbers` that may be absent.
        alike: whether `names` must have one type in all files, and values in their first rows.

    Raises: BadInput as `parity.io.tables.read_columns`.
    """
    first: Optional[Batch] = None
    files = files_of(path)
    partitions = partitions_of(files)
    for file in files:
        skipped = 0
        with explained(file):
            for table in _tables(file, numbers, names, size, optional, partitions[file]):
                if table.num_rows:
                    batch = Batch(file, skipped, table)
                    if alike and not skipped:
                        first = first or batch._replace(table=table.slice(0, 1))
                        _check_types(batch, first, names)
                    yield batch
                    skipped += table.num_rows


def _check_types(batch: Batch, first: Batch, names: Sequence[str]) -> None:
    """Refuses names of another type than the first file's: 1 is not "1"."""
    start = batch._replace(table=batch.table.slice(0, 1))
    for name in names:
        kinds = [one.names(name).type for one in (start, first)]
        if kinds[0] != kinds[1]:
            raise BadInput(
                f"{batch.column(name)} holds {kinds[0]}, but that of {first.file} {kinds[1]}; the "
                "files must have the same types"
            )


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
        yield _checked(batch, seen - batch.table.num_rows, names)
        if progress is not None:
            progress(batch.file, seen)
    if not seen:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")


def with_weight(block: Block) -> Block:
    """The block without its rows of weight 0."""
    weights = block.rows.weights
    if weights is None or weights.all():
        return block
    kept = np.flatnonzero(weights)
    return Block(
        block.rows.take(kept),
        block.numbers[kept],
        {name: values.take(kept) for name, values in block.names.items()},
        None if block.group is None else block.group.take(kept),
    )


def _checked(batch: Batch, before: int, names: ColumnNames) -> Block:
    positive = batch.labels(names.label)
    scores = batch.scores(names, "baseline_score"), batch.scores(names, "candidate_score")
    weights = batch.weights(names.weight) if names.weight else None
    return with_weight(
        Block(
            Rows(positive, *scores, None, weights),
            np.arange(before, before + len(positive)),
            {name: batch.names(name) for name in names.parts},
            batch.names(names.group) if names.group else None,
        )
    )


def _tables(
    path: str,
    numbers: Sequence[str],
    names: Sequence[str],
    size: int,
    optional: Sequence[str],
    partitions: Mapping[str, pa.Scalar],
) -> Iterator[pa.Table]:
    kind = kind_of(path)
    columns = [*numbers, *names]
    if kind == "parquet":
        # Read ahead, what was read would be kept until the end of the file.
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
        present = file.schema_arrow.names
        wanted, inside = divided(path, present, columns, optional, partitions)
        for part in file.iter_batches(size, columns=inside):
            yield completed(pa.Table.from_batches([part]), wanted, partitions)
    elif kind == "orc":
        stripes: Any = pyarrow.orc.ORCFile(path)
        wanted, inside = divided(path, stripes.schema.names, columns, optional, partitions)
        for i in range(stripes.nstripes):
            stripe = pa.Table.from_batches([stripes.read_stripe(i, columns=inside)])
            yield completed(stripe, wanted, partitions)
    elif kind == "tfrecord":
        inside = [name for name in dict.fromkeys(columns) if name not in partitions]
        for table in tfrecord_tables(path, inside, optional):
            wanted = chosen(path, [*table.column_names, *partitions], columns, optional)
            yield completed(table, wanted, partitions)
    else:
        wanted, inside = divided(path, header(path, kind), columns, optional, partitions)
        try:
            for table in _text(path, kind, inside, names):
                yield completed(table, wanted, partitions)
        except pa.ArrowInvalid:
            # Fields are then read as text, so that `to_numbers` can name the row at fault.
            whole = read_columns(path, numbers, names, optional)
            for name in set(numbers) & set(whole.column_names):
                to_numbers(whole[name], Column(name, path))
            raise


def _text(
    path: str, separator: str, wanted: Sequence[str], names: Sequence[str]
) -> Iterator[pa.Table]:
    def opened(types: Dict[str, pa.DataType]) -> Any:
        return pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
            convert_options=text_options(wanted, types),
        )

    texts = dict.fromkeys(names, pa.string())
    with opened(texts) as first:  # labels may be the words true and false
        words = [field.name for field in first.schema if pa.types.is_boolean(field.type)]
    types = {**dict.fromkeys(wanted, pa.float64()), **dict.fromkeys(words, pa.bool_()), **texts}
    for part in opened(types):
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
