"""All rows of the columns that a comparison reads, each column by itself.

1. A missing column is a finding, and so is the first value that its input does not take.
2. Missing values are counted, and so are ids that are no row of their table.
3. Labels and keys are checked as when scores are written.
"""

from __future__ import annotations

import shlex
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa

from migrate.model.features.table_rows import TableRows
from migrate.scoring.model import Feature, Input, columns_of, naming_inputs
from migrate.scoring.output import keys_of, positive_rows
from migrate.scoring.run import Reading, columns_for, feature_of, rows_of
from parity.inputs.checks import Column, LabelValues, refuse_one_class
from parity.io.batches import Batch
from parity.io.columns import At
from parity.io.join import refuse_repeated, repeated
from semisync.common.errors import BadInput, Findings, MissingColumn, MissingValue, SemisyncError

_STAND_IN = "0"  # for a missing value, so that the others of its batch are checked


def look_at_columns(
    data: str,
    inputs: Sequence[Input],
    label: str,
    key: Optional[str],
    reading: Reading,
    tables: Mapping[str, Sequence[TableRows]],
    findings: Findings,
    progress: Callable[[int, str], None],
) -> int:
    """Reads the whole data set once; returns its rows.

    Args:
        inputs: the inputs to read; several may take one column.
        tables: by an input's name.
        progress: called after each batch with the rows so far and the file they are from.
    """
    others = [label] if key is None else [label, key]
    seen = [_Seen(one, tables.get(one.name, ())) for one in inputs if one.column != label]
    labels, keys = _Labels(label, data), _Keys(key, data)
    rows = 0
    with findings.noting():
        for batch in _batches(data, [one.taken for one in seen], others, reading, findings):
            rows += batch.table.num_rows
            for one in seen:
                one.add(batch, reading)
            labels.add(batch)
            keys.add(batch)
            progress(rows, batch.file)
    for fault in [*(one.found(rows) for one in seen), labels.found(rows), keys.found()]:
        for each in fault:
            findings.note(each)
    return rows


def _batches(
    data: str, inputs: List[Input], others: List[str], reading: Reading, findings: Findings
) -> Iterator[Batch]:
    """The batches of the existing columns; missing ones are findings."""
    options = columns_of(inputs)
    while True:
        try:
            for batch in rows_of(
                data, columns_for(inputs, others, reading), reading.size, reading.text
            ):
                yield batch
            return
        except MissingColumn as error:
            missing = error.column
            with findings.noting(), naming_inputs(options):
                raise
        # From the start again, without the missing column.
        inputs = [one for one in inputs if one.column != missing]
        others = [one for one in others if one != missing]
        if not inputs and not others:
            return


class _Seen:
    """The values of one input so far.

    Args:
        tables: those whose row numbers the values are.

    Attributes:
        taken: the input.
    """

    def __init__(self, taken: Input, tables: Sequence[TableRows]) -> None:
        self.taken, self._tables = taken, tables
        self._first: Optional[MissingValue] = None
        self._missing = 0
        self._fault: Optional[SemisyncError] = None
        self._outside: Dict[TableRows, Tuple[str, int]] = {}
        self._strays: Dict[TableRows, int] = {}

    def add(self, batch: Batch, reading: Reading) -> None:
        """The next rows."""
        if self._fault is not None or self.taken.column not in batch.table.column_names:
            return
        try:
            feature = self._feature(batch, reading)
        except SemisyncError as error:
            self._fault = error
            return
        if self._first is not None:
            self._missing += batch.table[self.taken.column].null_count
        for table in self._tables:
            self._stray(batch, feature, table)

    def _feature(self, batch: Batch, reading: Reading) -> Feature:
        if self._first is None:
            try:
                return feature_of(batch, self.taken, reading)
            except MissingValue as error:
                self._first = error
        # From the first missing value on they are counted; the others are checked with a stand-in.
        return feature_of(batch, self.taken, reading, _STAND_IN)

    def _stray(self, batch: Batch, feature: Feature, table: TableRows) -> None:
        values = feature.values
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
            return
        flat = values.reshape(-1)
        strays = table.strays(flat)
        if len(strays) and table not in self._outside:
            at = At(batch.column(self.taken.column))
            many = np.prod(values.shape[1:], dtype=int)
            lengths = np.full(len(values), many) if feature.lengths is None else feature.lengths
            self._outside[table] = at.inside(lengths).value(strays[0]), flat[strays[0]]
        self._strays[table] = self._strays.get(table, 0) + len(strays)

    def found(self, rows: int) -> Iterator[SemisyncError]:
        """The findings on the column."""
        if self._first is not None:
            option = shlex.quote("{}=0".format(self.taken.column))
            yield MissingValue.of(
                self._first.place,
                f"empty ({self._missing:,} of {rows:,} rows)",
                f"add --fill {option}, or what the job takes in its place",
            )
        if self._fault is not None:
            yield self._fault
        for table, (place, value) in self._outside.items():
            yield table.refusal(place, value, f" ({self._strays[table]:,} such in all)")


class _Keys:
    """The keys so far, all of which are remembered, to find repeated ones."""

    def __init__(self, key: Optional[str], data: str) -> None:
        self._key, self._data = key, data
        self._chunks: List[pa.Array] = []
        self._fault: Optional[SemisyncError] = None

    def add(self, batch: Batch) -> None:
        """The next rows."""
        if self._key is None or self._fault is not None:
            return
        if self._key not in batch.table.column_names:
            return
        try:
            self._chunks += keys_of(batch, self._key).chunks
        except SemisyncError as error:
            self._fault = error

    def found(self) -> Iterator[SemisyncError]:
        """The findings on the keys."""
        if self._fault is not None:
            yield self._fault
        # Keys of several types cannot be compared; no chunks: the column is missing, which is
        # noted.
        elif len({chunk.type for chunk in self._chunks}) == 1 and self._key is not None:
            try:
                keys = pa.chunked_array(self._chunks)
                refuse_repeated(repeated(keys), Column(self._key, self._data))
            except BadInput as error:
                yield error


class _Labels:
    """The labels so far."""

    def __init__(self, label: str, data: str) -> None:
        self._label, self._data = label, data
        self._values = LabelValues()
        self._positives: Optional[int] = None
        self._fault: Optional[SemisyncError] = None

    def add(self, batch: Batch) -> None:
        """The next rows."""
        if self._fault is not None or self._label not in batch.table.column_names:
            return
        try:
            positive = positive_rows(batch, self._label, self._values)
        except SemisyncError as error:
            self._fault = error
            return
        self._positives = (self._positives or 0) + int(positive.sum())

    def found(self, rows: int) -> Iterator[SemisyncError]:
        """The findings on the labels."""
        if self._fault is not None:
            yield self._fault
        elif self._positives is not None:
            try:
                refuse_one_class(self._positives, rows, Column(self._label, self._data))
            except BadInput as error:
                yield error
