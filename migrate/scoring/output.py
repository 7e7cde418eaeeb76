"""The Parquet file of scores: a row for each row of the data, in its order.

    KEY      the key column, or "row", the row's number in the data set from 0
    LABEL    int8, 0 or 1
    kept     other columns, unchanged
    score    float32 or float64, the model's output, or the probability of its logit
    logit    the model's output, if the score is a probability: for a large logit a float32
             probability is exactly 1.0, whose log loss is infinite for a negative row

The file's metadata has "semisync.score", a JSON object: schema, model, data, versions, written.
"""

import json
from typing import Any, List, Mapping, Optional, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from parity.inputs.checks import LabelValues
from parity.io.batches import Batch
from parity.io.columns import to_names, to_numbers
from semisync.common.errors import BadInput

SCHEMA = "semisync/score/1"
SCORE = "score"
LOGIT = "logit"
ROW = "row"
_KEY = "semisync.score"
_ROW_GROUP = 1 << 20  # rows, or up to a batch more


class ScoreFile:
    """Writes batch after batch; `finish` ends the file.

    Args:
        path: the temporary file; the caller moves it to its final name.
        key, label: columns of the data, or None.
        kept: further columns to copy.
    """

    def __init__(
        self, path: str, key: Optional[str], label: Optional[str], kept: Sequence[str]
    ) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)
        self._key, self._label, self._kept = key, label, kept
        self._writer: Optional[pyarrow.parquet.ParquetWriter] = None
        self._schema: Optional[pa.Schema] = None  # of the first batch
        self._waiting: List[pa.Table] = []
        self._labels = LabelValues()
        self.rows = self.positives = 0

    def add(self, batch: Batch, scores: Mapping[str, np.ndarray]) -> None:
        """Appends the batch's rows, and `scores` as columns.

        Raises:
            BadInput: a missing key, a label that is not 0 or 1, or columns of a new type.
        """
        rows = batch.table.num_rows
        columns = {}
        if self._key is None:
            columns[ROW] = pa.array(np.arange(self.rows, self.rows + rows))
        else:
            columns[self._key] = keys_of(batch, self._key)
        if self._label is not None:
            positive = positive_rows(batch, self._label, self._labels)
            columns[self._label] = pa.array(positive.astype(np.int8))
            self.positives += int(positive.sum())
        for name in self._kept:
            columns[name] = _text(batch.table[name])
        columns.update((name, pa.array(values)) for name, values in scores.items())
        table = pa.table(columns)
        if self._schema is None:
            self._schema = table.schema
        table = _as_before(table, self._schema, batch.file)
        self._waiting.append(table)
        self.rows += rows
        if sum(part.num_rows for part in self._waiting) >= _ROW_GROUP:
            self._flush()

    def finish(self, about: Mapping[str, Any]) -> None:
        """Writes the remaining rows and the metadata."""
        self._flush()
        assert self._writer is not None  # the data has rows
        about = {"schema": SCHEMA, **about}
        self._writer.add_key_value_metadata({_KEY: json.dumps(about)})
        self._writer.close()

    def close(self) -> None:
        """Closes the file, finished or not."""
        self._file.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema)
        if self._waiting:
            whole = pa.concat_tables(self._waiting)
            self._writer.write_table(whole, row_group_size=whole.num_rows)
        self._waiting = []


def keys_of(batch: Batch, key: str) -> pa.ChunkedArray:
    """The keys of the rows; raises BadInput for a missing one."""
    return to_names(_text(batch.table[key]), batch.column(key))


def positive_rows(batch: Batch, label: str, labels: LabelValues) -> np.ndarray:
    """bool (n,): which rows are positive; raises BadInput for a value that is not a label.

    Args:
        labels: those of the previous batches, to which this one's are added.
    """
    at = batch.column(label)
    return labels.positive(to_numbers(_text(batch.table[label]), at), at)


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The text of a TFRecord's bytes; other columns unchanged."""
    return values.cast(pa.large_string()) if pa.types.is_binary(values.type) else values


def _as_before(table: pa.Table, schema: pa.Schema, file: str) -> pa.Table:
    try:
        return table.cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise BadInput(
            f"{file} has columns of another type than the rows before: {error}"
        ) from error
