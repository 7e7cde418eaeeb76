"""The fields of one column of text as an Arrow array, null where a field is missing."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import pyarrow as pa

from migrate.data.compiled import tokens
from migrate.data.schema import Column
from migrate.data.values import lists_of_pairs
from parity.io.columns import At, in_dtype
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput


class Fields:
    """One column of the lines of a block.

    Args:
        data: uint8.
        starts, ends: int64 [rows], of the fields in it.
        quote: a byte or -1.
    """

    def __init__(
        self,
        data: numpy.ndarray,
        starts: numpy.ndarray,
        ends: numpy.ndarray,
        quote: int,
        column: Column,
        at: At,
        written: TextFormat,
    ) -> None:
        self._column, self._at, self._written = column, at, written
        null = self._null(data, starts, ends)
        ends = ends if null is None else numpy.where(null, starts, ends)
        self._data, self._starts, self._ends = data, starts, ends
        if quote >= 0 and self._has(quote):
            self._data, offsets, wrong = tokens.unquoted(data, starts, ends, quote)
            if wrong >= 0:
                raise self._wrong(wrong, "text whose quotes are closed")
            self._starts, self._ends = offsets[:-1], offsets[1:]

    def arrow(self) -> Any:
        """The array, of a type that `checked_values` takes for the kind."""
        column = self._column
        if column.of_integers:
            return self._id_lists()
        if column.dtype is not None and column.kind == "dense":  # which `checked_values` parses
            return self._text() if column.width == 1 else self._text_lists()
        make = {
            "dense": self._numbers if column.width == 1 else self._number_lists,
            "key": self._text,
            "label": self._numbers,
            "numbers": self._number_lists,
            "string": self._text,
            "strings": self._text_lists,
            "weighted": self._pairs,
        }
        return make[column.kind]()

    def _id_lists(self) -> Any:
        offsets, values, wrong = tokens.integers(
            self._data, self._starts, self._ends, ord(self._written.values)
        )
        return self._text_lists() if wrong >= 0 else id_lists(offsets, values, self._column)

    def _pairs(self) -> Any:
        offsets, values, starts, ends, wrong = tokens.pairs(
            self._data,
            self._starts,
            self._ends,
            ord(self._written.values),
            ord(self._written.weight),
        )
        if wrong >= 0:
            raise self._wrong(
                wrong, f"ids, each perhaps with {self._written.weight!r} and a weight"
            )
        weights = self._parsed(starts, ends, offsets)
        weights = weights.fill_null(1.0) if weights.null_count else weights
        return lists_of_pairs(numpy.diff(offsets), values, weights.to_numpy())

    def _numbers(self) -> Any:
        return self._parsed(self._starts, self._ends, None)

    def _number_lists(self) -> Any:
        offsets, starts, ends = self._parts()
        numbers = self._parsed(starts, ends, offsets)
        return pa.LargeListArray.from_arrays(offsets, numbers, mask=self._mask())

    def _text(self) -> Any:
        array = self._copied(self._starts, self._ends, pa.large_binary())
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            for row, value in enumerate(array.to_pylist()):
                try:
                    (value or b"").decode()
                except UnicodeDecodeError:
                    raise self._wrong(row, "UTF-8") from error
            raise

    def _text_lists(self) -> Any:
        offsets, starts, ends = self._parts()
        null = self._null(self._data, starts, ends)
        if null is not None and null.any():
            wrong = int(null.argmax())
            where = self._at.inside(numpy.diff(offsets)).value(wrong)
            raise BadInput(f"{where} has an empty value in its list")
        values = self._copied(starts, ends, pa.large_binary(), empty_is_null=False)
        return pa.LargeListArray.from_arrays(offsets, values, mask=self._mask())

    def _parts(self) -> Any:
        return tokens.parts(self._data, self._starts, self._ends, ord(self._written.values))

    def _parsed(
        self, starts: numpy.ndarray, ends: numpy.ndarray, offsets: Optional[numpy.ndarray]
    ) -> Any:
        """float32 of the spans, null for empty ones; `offsets` are those of their lists."""
        numbers, others = tokens.numbers(self._data, starts, ends)
        missing = starts >= ends
        others = numpy.flatnonzero(others & ~missing)
        if len(others):
            texts = self._copied(starts[others], ends[others], pa.large_string())
            try:
                numbers[others] = texts.cast(pa.float32()).to_numpy()
            except pa.ArrowInvalid:
                # `texts` has the hard values alone: how many of them each row has, to name the row
                # at fault.
                every = numpy.arange(len(self._starts) + 1) if offsets is None else offsets
                at = self._at.inside(numpy.diff(numpy.searchsorted(others, every)))
                numbers[others] = in_dtype(texts, numpy.float32, at)
        return pa.array(numbers, mask=missing if missing.any() else None)

    def _copied(
        self,
        starts: numpy.ndarray,
        ends: numpy.ndarray,
        kind: pa.DataType,
        empty_is_null: bool = True,
    ) -> Any:
        """The bytes of the spans as an Arrow array."""
        data, offsets, _ = tokens.unquoted(self._data, starts, ends, -1)
        valid, nulls = None, 0
        if empty_is_null:
            present = starts < ends
            nulls = len(present) - int(numpy.count_nonzero(present))
            valid = pa.py_buffer(numpy.packbits(present, bitorder="little")) if nulls else None
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(kind, len(starts), buffers, nulls)

    def _has(self, quote: int) -> bool:
        present = self._starts < self._ends
        return bool((self._data[self._starts[present]] == quote).any())

    def _null(
        self, data: numpy.ndarray, starts: numpy.ndarray, ends: numpy.ndarray
    ) -> Optional[numpy.ndarray]:
        """Whether each span is the format's text for a missing value; None if it has none."""
        if self._written.null is None:
            return None
        null = numpy.frombuffer(self._written.null.encode(), numpy.uint8)
        found: numpy.ndarray = tokens.equal(data, starts, ends, null)
        return found

    def _missing(self) -> numpy.ndarray:
        missing: numpy.ndarray = self._starts >= self._ends
        return missing

    def _mask(self) -> Any:
        missing = self._missing()
        return pa.array(missing) if missing.any() else None

    def _wrong(self, row: int, wanted: str) -> BadInput:
        field = bytes(self._data[self._starts[row] : self._ends[row]])[:60]
        what = f"is {field.decode(errors='replace')!r}; {wanted} expected"
        return BadInput(f"{self._at.value(row)} {what}")


def id_lists(offsets: numpy.ndarray, values: numpy.ndarray, column: Column) -> Any:
    """A column of ids, with offsets int32 [rows + 1]."""
    empty = None
    if column.default is not None or column.kind == "dense":  # else a missing list is an empty one
        empty = pa.array(offsets[1:] == offsets[:-1])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=empty)
