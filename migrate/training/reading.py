"""Columns of files as the batches of a converted graph: each of its inputs takes one.

an input                               its column
of text                                text; of several values per row lists of text
of numbers                             numbers; lists of them, in the dtype of the input
of a label                             0 and 1
"""

from __future__ import annotations

import fnmatch
import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import torch

from migrate.data import Column, DataSet, Rows, Shuffle, open_data
from migrate.data.inputs import inputs_from
from migrate.model.features.table_rows import TableRows
from migrate.runtime.interface import Input
from migrate.scoring.model import Input as Taken
from migrate.scoring.model import of_column
from migrate.scoring.module_inputs import ModuleInputs, input_called
from migrate.training.task import Batch
from semisync.common.errors import UsageError

_FILLS = {"dense": float, "ids": int, "label": float}  # other kinds take text


class Reading(NamedTuple):
    """The columns that are read from the files.

    inputs    the module's inputs, by name
    column    the column of each input that has one
    constants the value of each input that is one for all rows
    label, day, key columns; None: there is none
    fills     by column, or pattern of columns, the fill of a missing value
    types     by column, or pattern of columns, the type that values are first cast to
    tables    by input, those whose rows its values number
    """

    inputs: Mapping[str, Input]
    column: Mapping[str, str]
    constants: Mapping[str, Any]
    label: Optional[str] = None
    day: Optional[str] = None
    key: Optional[str] = None
    fills: Mapping[str, Any] = {}
    types: Mapping[str, str] = {}
    tables: Mapping[str, Sequence[TableRows]] = {}

    def schema(self) -> List[Column]:
        """The columns, each once.

        Raises:
            UsageError: two inputs want one column differently, or an unread column has a fill or a
                type.
        """
        found: Dict[str, Column] = {}
        for name, column in self.column.items():
            one = _column(name, column, self.inputs[name], column == self.label)
            if found.setdefault(column, one) != one:
                raise UsageError(f"two inputs take the column {column!r} as two different kinds")
        if self.label is not None:
            found.setdefault(self.label, Column(self.label, "label"))
        for use, named in (("day", self.day), ("key", self.key)):
            if named in found:
                raise UsageError(
                    f"the column {named!r} is read for something else, and cannot be the {use} too"
                )
            if named is not None:
                found[named] = Column(named, "key")
        for what, said in (("fill", self.fills), ("type", self.types)):
            for pattern in said:
                if not any(fnmatch.fnmatchcase(column, pattern) for column in found):
                    raise UsageError(f"the column {pattern!r} has a {what}, but it is not read")
        return list(map(self._told, found.values()))

    def _told(self, column: Column) -> Column:
        """The column with its fill, its type, its tables, and a label's allowed values."""
        filled = _filled(column, of_column(self.fills.items(), column.name))
        kind = None if column.kind == "key" else of_column(self.types.items(), column.name)
        among = (0, 1) if column.name == self.label else ()
        return filled._replace(type=kind, tables=self._tables_of(column), among=among)

    def _tables_of(self, column: Column) -> Sequence[TableRows]:
        own = (name for name, taken in self.column.items() if taken == column.name)
        tables = [table for name in own for table in self.tables.get(name, ())]
        return tuple(dict.fromkeys(tables)) if column.of_integers else ()

    def taken(self) -> List[Taken]:
        """The inputs that take a column; `--input` names it for sparse ones too."""
        return [
            Taken(column, name, None, False, self.inputs[name].shape)
            for name, column in self.column.items()
        ]

    def batch(self, rows: Rows) -> Batch:
        """The rows as a batch; it is called in a thread of the data set."""
        table = rows.columns
        inputs = {**self.constants, **inputs_from(rows, self.inputs, self.column)}
        if not rows.share.rows:  # they are another process's, which counts them
            return Batch(inputs, share=rows.share)
        labels = None if self.label is None else torch.tensor(table[self.label].to_numpy())
        days = None if self.day is None else table[self.day].to_numpy(zero_copy_only=False)
        keys = None if self.key is None else table[self.key]
        return Batch(inputs, labels, days, keys, share=rows.share)

    @property
    def split(self) -> Optional[Callable[[Batch, int], List[Batch]]]:
        """Makes batches of one that has the rows of several; None where each is converted alone.

        Values of a fixed number per row are divided by row; lists are as wide as the longest of
        their batch, and some graphs take one number of rows alone.
        """
        fixed = ("dense", "string", "label", "key")
        alike = self.column and all(one.kind in fixed for one in self.schema())
        any_rows = all((self.inputs[name].shape or [None])[0] is None for name in self.column)
        return self._split if alike and any_rows else None

    def _split(self, batch: Batch, size: int) -> List[Batch]:
        parts = {name: batch.inputs[name].split(size) for name in self.column}

        def of_rows(number: int) -> Batch:
            own = slice(number * size, (number + 1) * size)
            return batch._replace(
                inputs={**self.constants, **{name: some[number] for name, some in parts.items()}},
                labels=None if batch.labels is None else batch.labels[own],
                days=None if batch.days is None else batch.days[own],
                keys=None if batch.keys is None else batch.keys[own],
            )

        return list(map(of_rows, range(len(next(iter(parts.values()))))))


def reading_of(
    inputs: Mapping[str, Input],
    named: Mapping[str, str],
    feeds: Mapping[str, Any],
    label: Optional[str],
    day: Optional[str],
    key: Optional[str] = None,
    fills: Optional[Mapping[str, Any]] = None,
    types: Optional[Mapping[str, str]] = None,
    tables: Optional[Mapping[str, Sequence[TableRows]]] = None,
) -> Reading:
    """The columns read for a module's inputs.

    Args:
        inputs: of the module, by name.
        named: {input: column} where the names differ.
        feeds: {input: value}; other names are left to the optimizer. An input with a
            default that is not named takes no column.
        label, day, key: columns; None: there is none.
        fills: {column, or pattern: the fill of a missing value}; without one, a missing value
            of a dense input is an error.
        types: {column, or pattern: the type its values are first cast to}, as a `Column` has it.
        tables: of a `Converted`; an id that is no row of its table is an error.

    Returns:
        A `Reading`, for `open_columns`. Its `schema` raises UsageError for fills and types that do
        not fit.

    Raises:
        UsageError: a name is not an input's.

    Examples:
        >>> from migrate.training import reading_of
        >>> model = migrate.load_model("model.ckpt-40000")
        >>> reading = reading_of(model.tensorflow_inputs, {}, {}, label="clicked", day=None)
        >>> sorted(column.name for column in reading.schema())
        ['city', 'clicked', 'item']
    """
    constants = {name: value for name, value in feeds.items() if input_called(name, inputs)}
    columns = [(column, name, False) for name, column in named.items()]
    given = ModuleInputs("the graph", inputs, columns, constants)
    column = {one.name: one.column for one in given.inputs}
    said = fills or {}, types or {}, tables or {}
    return Reading(inputs, column, given.constants, label, day, key, *said)


class ColumnData:
    """A data set over several epochs, as the loop takes it.

    Attributes:
        rows: of the data set.
        trained: rows of the batches so far, of all processes and epochs.
        dropped: rows of the epochs so far that were in no batch.
    """

    def __init__(self, data: DataSet[Batch], epochs: int) -> None:
        self._data, self._epochs = data, epochs
        self.rows, self.trained, self.dropped = data.rows, 0, 0

    def __iter__(self) -> Iterator[Batch]:
        while self._data.epoch < self._epochs:
            epoch, left = self._data.epoch, self._data.rows_left
            for batch in self._data:
                assert batch.share is not None
                self.trained += batch.share.of
                left -= batch.share.of
                if self._data.epoch > epoch:  # before a checkpoint after this batch
                    self.dropped, left = self.dropped + left, 0
                yield batch
            self.dropped += left  # of an epoch that had no batch left

    def state_dict(self) -> Dict[str, Any]:
        """The data set's position, and the rows up to there."""
        counts = {"trained": self.trained, "dropped": self.dropped}
        return {**self._data.state_dict(), **counts}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Moves to a position."""
        self._data.load_state_dict(state)
        self.trained, self.dropped = state.get("trained", 0), state.get("dropped", 0)


def open_columns(
    paths: Sequence[str],
    reading: Reading,
    batch_size: int,
    epochs: int = 1,
    shuffle: Optional[Shuffle] = None,
    last: str = "keep",
    **more: Any,
) -> ColumnData:
    """The training's batches.

    Args:
        paths: as `migrate.data.open_data` takes them.
        reading: from `reading_of`.
        batch_size: of a process.
        epochs: how many.
        shuffle: None reads in the order of the files' paths.
        last: "keep" ends an epoch with the batch of the rows that are left, as tf.data does;
            "drop" leaves them out.
        **more: of `migrate.data.open_data`.

    Returns:
        `ColumnData`, which `train` takes.

    Raises:
        BadInput, UsageError: as `migrate.data.open_data`.

    Examples:
        >>> from migrate.training import open_columns, open_converted, reading_of
        >>> converted = open_converted(migrate.open_checkpoint("model.ckpt-40000"))
        >>> reading = reading_of(converted.inputs, {}, {}, label="clicked", day=None)
        >>> for batch in open_columns(["clicks.parquet"], reading, batch_size=4):
        ...     print(len(batch.labels))
        4
        4
    """
    more = {
        "last": last,
        "shuffle": shuffle,
        "convert": reading.batch,
        "split": reading.split,
        **more,
    }
    data = open_data(paths, reading.schema(), batch_size, **more)
    return ColumnData(data, epochs)


def _filled(column: Column, fill: Any) -> Column:
    """The column with its default, as a value or as text."""
    if fill is None:
        return column
    try:
        return column._replace(default=_FILLS.get(column.kind, str)(str(fill)))
    except ValueError as error:
        raise UsageError(
            f"the fill of the column {column.name!r} is {fill!r}; a number is expected"
        ) from error


def _column(name: str, column: str, wanted: Input, label: bool) -> Column:
    if label:
        return Column(column, "label")
    dtype = wanted.dtype or "float32"
    sizes = () if wanted.shape is None else wanted.shape[1:]
    width = None if None in sizes else math.prod(one for one in sizes if one is not None)
    if dtype == "string":
        several = wanted.sparse or width is None or width > 1
        return Column(column, "strings" if several else "string")
    if dtype.startswith(("int", "uint")):
        dtype = dtype if dtype == "int32" else "int64"
        if wanted.sparse or width is None:
            return Column(column, "ids", dtype)
    if wanted.sparse or (width is None and dtype == "float32"):
        return Column(column, "numbers")
    if width is None:
        raise UsageError(
            f"the input {name!r} has the shape {list(wanted.shape or ())}; the values of a row "
            "must be of a known number"
        )
    own = ("int64", "int32", "float64", "bool")
    return Column(column, "dense", dtype if dtype in own else None, width=width)
