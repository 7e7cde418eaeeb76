"""A block of a file, read by its format, as a checked record batch."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

import pyarrow as pa

from migrate.data.formats import json_lines, text, tfrecord
from migrate.data.listing import COLUMNAR, Block, File, Listing
from migrate.data.schema import Column
from migrate.data.values import checked_values, refuse_strays
from parity.inputs.checks import Column as Place
from parity.io.damage import Broken, explained
from parity.io.formats import FORMATS
from parity.io.partitions import partitions_of, refuse_contradiction
from parity.io.text_format import TextFormat, of_kind
from semisync.common.errors import BadInput


class Lost(NamedTuple):
    """A block that could not be read and was skipped."""

    file: str
    rows: int
    reason: str


class Loader:
    """Reads blocks of a listing, from any thread."""

    def __init__(
        self,
        listing: Listing,
        schema: Sequence[Column],
        written: Optional[TextFormat],
        skip_broken: bool,
    ) -> None:
        self._schema, self._written, self._skip_broken = schema, written, skip_broken
        self._blocks = listing.blocks()
        self._placed = partitions_of([file.path for file in listing.files])
        self._first: Dict[str, Tuple[Any, str]] = {}  # the type of each column, and a file with it

    def load(self, number: int) -> Union[Any, Lost]:
        """A pyarrow.RecordBatch of the rows of a block, in the form of `Rows`.

        Raises:
            BadInput: a column of another kind, values that are missing or out of range, ids that
                are no row of their table, a file that changed, a type that differs from another
                file's, or damage unless it is to be skipped.
        """
        block = self._blocks[number]
        try:
            found = self._read(block)
        except Broken as error:
            if not self._skip_broken:
                raise
            return Lost(block.file.path, block.rows, str(error))
        return self._checked(found, block.file.path, block.first, block.rows)

    def empty(self) -> Any:
        """A record batch as of `load`, without rows; keys are of type null."""
        arrays = []
        for column in self._schema:
            untyped = column._replace(dtype=None) if column.kind == "key" else column
            arrays.append(checked_values(pa.nulls(0), untyped, Place(column.name)))
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self._schema])

    def _read(self, block: Block) -> Dict[str, Any]:
        """The schema's columns of a block as Arrow arrays.

        Raises:
            Broken: damage.
            BadInput: text that is not of its column's kind.
        """
        at, number = block.file, block.number
        columns = [column for column in self._schema if column.name in at.names]
        with explained(at.path):
            if at.format in COLUMNAR:
                names = [column.name for column in columns]
                table = FORMATS[at.format](at.path).block(number, names)
                return {name: table[name] for name in names}
            if at.format == "tfrecord":
                return tfrecord.read(at.path, at.bounds, number, block.first, columns)
            if at.format == "json":
                return json_lines.read(at.path, at.size, number, block.rows, columns)
            lines = lines_of(at, number, self._written, block.first, columns)
            return {column.name: lines.column(column) for column in columns}

    def _checked(self, found: Dict[str, Any], path: str, first: int, rows: int) -> Any:
        arrays = []
        for column in self._schema:
            array, place = found.get(column.name), Place(column.name, path, skipped=first)
            if array is None:
                array = _constant(column, self._placed[path][column.name], rows)
            elif len(array) != rows:
                raise BadInput(f"{path} has {len(array)} rows where {rows} were listed; it changed")
            else:
                refuse_contradiction(path, column.name, array)
            values = checked_values(array, column, place)
            refuse_strays(values, column, place)
            kind, file = self._first.setdefault(column.name, (values.type, path))
            if values.type != kind:
                raise BadInput(f"{place} holds {values.type}, but {kind} in {file}")
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self._schema])


def _constant(column: Column, value: Any, rows: int) -> Any:
    """A column of the value, a pyarrow.Scalar, that the name of a folder such as day=2024-01-31
    sets for all rows of its files; a key without a dtype keeps the value's type."""
    of_text = column.kind in ("string", "strings")
    return pa.repeat(value.cast(pa.large_string()) if of_text else value, rows)


def lines_of(
    file: File,
    block: int,
    written: Optional[TextFormat],
    first: int,
    wanted: Sequence[Column] = (),
) -> text.Lines:
    """A block of a text file, which begins with row `first`.

    Args:
        wanted: the columns to read, if only these are.
    """
    how, rows = of_kind(file.format, written), file.rows[block]
    return text.Lines(file.path, file.size, block, rows, file.names, how, first, wanted)
