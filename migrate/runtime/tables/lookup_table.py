"""TensorFlow's static lookup tables: HashTableV2, filled from a list or from a text file.

A table whose keys come from a file takes from each line its key and its value: the whole line
(WHOLE_LINE), its number (LINE_NUMBER), or a column. A key may occur twice with the same value, not
with two.
Source: tensorflow/core/kernels/lookup_util.cc, io/inputbuffer.cc
"""

from __future__ import annotations

from typing import Any, Union

import numpy
import torch

from migrate.runtime.hashing import string_to_hash_bucket_fast
from migrate.runtime.printing import as_string
from migrate.runtime.reading import string_to_number
from migrate.runtime.strings import Strings
from semisync.common.compiled import splitting, table
from semisync.common.errors import BadInput, UsageError

Column = Union[torch.Tensor, Strings]

WHOLE_LINE, LINE_NUMBER = -2, -1


class LookupTable:
    """A table from int64, int32 or string keys to values of any type.

    Args:
        keys, values: Strings, a tensor, or values for one; one-dimensional and of one length.
        default: the value of a key that the table does not have.
    """

    def __init__(self, keys: Any, values: Any, default: Any, where: str = "lookup table") -> None:
        self._keys, values = _column(keys), _column(values)
        if self._keys.ndim != 1 or self._keys.shape != values.shape:
            raise UsageError(
                f"{where}: keys of shape {list(self._keys.shape)} and values of shape "
                f"{list(values.shape)} are not a table"
            )
        if isinstance(self._keys, Strings):
            self._slots, first = table.build_strings(self._keys.data, self._keys.offsets)
        else:
            self._slots, first = table.build_integers(_integers(self._keys))
        self._values = values
        self._default = default
        self._values_and_default = _followed(values, default)
        differs = _array(values[torch.from_numpy(first)] != values)
        if differs.any():
            row = int(numpy.flatnonzero(differs)[0])
            key = _array(self._keys[row : row + 1])[0]
            raise BadInput(f"{where}: the key {key!r} has two values, {_two(values, first, row)}")
        # `first` is the row in which each key stands first, so repeated keys are not counted.
        self._size = int((first == numpy.arange(len(first))).sum())

    @classmethod
    def from_text_file(
        cls,
        path: str,
        key_index: int = WHOLE_LINE,
        value_index: int = LINE_NUMBER,
        vocab_size: int = -1,
        delimiter: str = "\t",
        default: Any = -1,
        key_dtype: Any = Strings,
        value_dtype: Any = torch.int64,
        offset: int = 0,
    ) -> LookupTable:
        """The table of InitializeTableFromTextFileV2.

        Args:
            vocab_size: the number of lines to read, a file of fewer is refused; -1: all.
            key_dtype, value_dtype: Strings or a torch data type.
            offset: added to line numbers.
        """
        lines = _lines(path, vocab_size)
        parts = _Parts(
            lines, delimiter.encode("utf-8", "surrogateescape"), max(key_index, value_index), path
        )
        keys = parts.column(key_index, key_dtype, offset)
        values = parts.column(value_index, value_dtype, offset)
        return cls(keys, values, default, path)

    def __len__(self) -> int:
        """How many different keys there are."""
        return self._size

    def find(self, keys: Column, default: Any = None) -> Column:
        """The value of each key, in the shape of `keys`; `default` replaces the table's own."""
        if isinstance(self._keys, Strings) != isinstance(keys, Strings):
            kinds = ("numbers", "strings")
            had, got = isinstance(self._keys, Strings), isinstance(keys, Strings)
            raise UsageError(f"the keys of a lookup table are {kinds[had]}, not {kinds[got]}")
        missing = len(self._values)
        if isinstance(keys, Strings):
            known = self._keys.data
            rows = table.find_strings(self._slots, known, missing, keys.data, keys.offsets)
        else:
            rows = table.find_integers(self._slots, missing, _integers(keys))
        values = self._values_and_default
        if default is not None and not _is(default, self._default):
            values = _followed(self._values, default)
        found = torch.from_numpy(rows).reshape(tuple(keys.shape))
        if isinstance(keys, torch.Tensor) and isinstance(values, torch.Tensor):
            return values.take(found).to(keys.device)
        return values.take(found)

    def find_or_hash(self, keys: Column, default: Any, buckets: int) -> torch.Tensor:
        """As `find`, but with a hash bucket, numbered after the keys, for the default."""
        found = self.find(keys, default)
        if not isinstance(found, torch.Tensor):
            raise UsageError("the buckets of a vocabulary are numbers, and its values are strings")
        text = keys if isinstance(keys, Strings) else as_string(keys)
        hashed = string_to_hash_bucket_fast(text, buckets).reshape(found.shape) + len(self)
        return torch.where(found != default, found, hashed)


class _Parts:
    """The lines of a file, and their columns if some are requested."""

    def __init__(self, lines: Strings, delimiter: bytes, last: int, path: str) -> None:
        self._lines, self._path = lines, path
        if last < 0:
            return
        if len(delimiter) != 1:
            raise UsageError(f"{path}: the delimiter of columns is one byte, not {delimiter!r}")
        delimiters = numpy.zeros(256, bool)
        delimiters[delimiter[0]] = True
        self._starts, self._ends, counts = splitting.at_bytes(
            lines.data, lines.offsets, delimiters, False
        )
        short = numpy.flatnonzero(counts <= last)
        if len(short):
            raise BadInput(
                f"{path}: line {short[0] + 1} has {counts[short[0]]} columns; column {last} "
                "was asked for, counted from 0"
            )
        self._firsts = numpy.cumsum(counts) - counts

    def column(self, index: int, dtype: Any, offset: int) -> Column:
        """One column in this type."""
        if index == LINE_NUMBER:
            if dtype != torch.int64:
                raise UsageError(f"{self._path}: the numbers of lines are int64, not {dtype}")
            return torch.arange(len(self._lines)) + offset
        if index == WHOLE_LINE:
            text = self._lines
        elif index >= 0:
            places = self._firsts + index
            text = Strings.of_spans(self._lines.data, self._starts[places], self._ends[places])
        else:
            raise UsageError(f"{self._path}: there is no column {index}")
        return text if dtype is Strings else string_to_number(text, dtype, self._path)


def _lines(path: str, most: int) -> Strings:
    """The lines of a file without their ends: "\\n", or "\\r\\n"."""
    try:
        data = numpy.fromfile(path, numpy.uint8)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    ends = numpy.flatnonzero(data == 10)
    if len(data) and data[-1] != 10:  # the last line has no end
        ends = numpy.append(ends, len(data))
    starts = numpy.append(0, ends + 1)[:-1]
    if most >= 0:
        if len(ends) < most:
            raise BadInput(f"{path}: {most} lines were expected, but there are {len(ends)}")
        starts, ends = starts[:most], ends[:most]
    if not len(ends):
        raise BadInput(f"{path}: there is no line")
    # A carriage return before the end of the line, unless the line is empty.
    ends = ends - ((ends > starts) & (data[ends - 1] == 13))
    empty = numpy.flatnonzero(starts == ends)
    if len(empty):
        raise BadInput(f"{path}: line {empty[0] + 1} is empty")
    return Strings.of_spans(data, starts, ends)


def _column(values: Any) -> Column:
    if isinstance(values, (torch.Tensor, Strings)):
        return values
    array = numpy.asarray(values)
    if array.dtype.kind in "OSUT":
        return Strings.of(values)
    return torch.as_tensor(array.astype(numpy.float32) if array.dtype.kind == "f" else array)


def _integers(keys: torch.Tensor) -> numpy.ndarray:
    if keys.dtype not in (torch.int32, torch.int64):
        raise UsageError(f"keys of a lookup table are int32, int64 or strings, not {keys.dtype}")
    return keys.to(torch.int64).reshape(-1).cpu().contiguous().numpy()


def _array(values: Column) -> numpy.ndarray:
    return values.numpy()


def _two(values: Column, first: numpy.ndarray, row: int) -> str:
    return " and ".join(str(_array(values[at : at + 1])[0]) for at in (int(first[row]), row))


def _followed(values: Column, default: Any) -> Column:
    """The values, followed by the default, whose position is the result for a missing key."""
    if isinstance(values, Strings):
        return Strings.concat([values, Strings.of(default).reshape([1])])
    return torch.cat([values, torch.as_tensor(default, dtype=values.dtype).reshape(1)])


def _is(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, (int, float, str, bytes)) and one == other
