"""Turns an Arrow column into checked NumPy; errors name file, column and row at fault."""

import re
from typing import Any, Callable, Mapping, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.checks import Column
from parity.inputs.days import MOMENT
from parity.inputs.ids import Ids
from semisync.common.errors import BadInput, UsageError

_LISTS = {pa.lib.Type_LIST, pa.lib.Type_LARGE_LIST, pa.lib.Type_FIXED_SIZE_LIST}
_TEXTS = {
    pa.lib.Type_STRING,
    pa.lib.Type_LARGE_STRING,
    pa.lib.Type_BINARY,
    pa.lib.Type_LARGE_BINARY,
}


_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.I)


class At(NamedTuple):
    """The origin of flat values: their column, and its lists.

    Attributes:
        lengths: int64, how many values each list has, of the outermost first.
    """

    column: Column
    lengths: Tuple[np.ndarray, ...] = ()

    def value(self, index: int) -> str:
        """The row of a value, as messages name it."""
        # From the innermost lists outwards: the place of a value's list is its place one level up.
        for lengths in reversed(self.lengths):
            index = int(np.searchsorted(np.cumsum(lengths), index, "right"))
        return self.column.at(index)

    def inside(self, lengths: np.ndarray) -> "At":
        """The origin of the values inside these values, which are lists of `lengths`."""
        return self._replace(lengths=(*self.lengths, lengths))

    def refuse_null(self, array: pa.Array) -> None:
        """Raises BadInput for a missing value in a list."""
        if array.null_count:
            raise BadInput(f"{self.value(first_null(array))} has an empty value in its list")


def plain(values: Any) -> pa.Array:
    """One array, chunks put together, of values rather than a dictionary's codes or views."""
    if isinstance(values, pa.ChunkedArray):
        chunks = values.chunks or [pa.array([], values.type)]
        if len(chunks) > 1 and values.type == pa.string():  # which together may pass its 2 GB
            chunks = values.cast(pa.large_string()).chunks
        values = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == pa.string_view():
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if values.type == pa.binary_view() else values


def plain_chunks(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As `plain`, chunk by chunk."""
    kind = plain(pa.array([], values.type)).type
    return pa.chunked_array([plain(chunk) for chunk in values.chunks], kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a list; a map is not, though Arrow has it as a list of pairs."""
    return kind.id in _LISTS


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text or bytes."""
    return kind.id in _TEXTS


def in_lists(array: pa.Array) -> pa.Array:
    """Text as lists if every value is a list as Python or numpy prints it, such as "[0.1, 0.9]"."""
    if not is_text(array.type) or not len(array) or str(array[0].as_py())[:1] != "[":
        return array
    words = array.cast(pa.large_string())
    if not pc.all(pc.match_substring_regex(words, r"^\[+[^\[\]]+\]+$")).as_py():
        return array
    numbers = pc.replace_substring_regex(words, r"[\[\],\s]+", " ")
    return pc.split_pattern(pc.utf8_trim_whitespace(numbers), " ")


def opened(array: pa.Array) -> Tuple[np.ndarray, pa.Array]:
    """How many values each list has, int64, 0 for a missing list; and all values."""
    if pa.types.is_list(array.type) and not array.null_count:  # as below, but faster
        offsets = array.offsets.to_numpy()
        values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        return np.diff(offsets).astype(np.int64), plain(values)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64), plain(array.flatten())


def first_null(array: pa.Array) -> int:
    """The place of the first missing value, of which there is one."""
    return int(pc.index(pc.is_null(array), True).as_py())


def in_dtype(array: pa.Array, dtype: Any, at: At) -> np.ndarray:
    """Plain values as numbers of a numpy dtype; missing floats are nan, too large ones infinite.

    Raises:
        BadInput: as `cast`.
    """
    target, kind = np.dtype(dtype), array.type
    if kind == pa.from_numpy_dtype(target):
        return array.to_numpy(zero_copy_only=False)
    if target.kind != "f" or is_text(kind):
        array = cast(array, pa.from_numpy_dtype(target), at)
    elif not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        array = cast(array, pa.float64(), at)
    # By NumPy, since Arrow's cast refuses integers that floating point does not hold exactly.
    with np.errstate(over="ignore"):
        return array.to_numpy(zero_copy_only=False).astype(target, copy=False)


def has_gaps(numbers: np.ndarray) -> np.ndarray:
    """bool (n,): whether floating point of that width lacks whole numbers of the number's size."""
    return np.abs(numbers) >= 2.0 ** (np.finfo(numbers.dtype).nmant + 1)


def cast(array: pa.Array, target: pa.DataType, at: At) -> pa.Array:
    """Plain values in another type, numbers or text, where nothing is lost.

    Text is parsed: with blanks around it, and to floats true and false, in any case, as 1 and 0.
    Floating point becomes whole numbers, or text, where those are certainly the ones that were
    meant; 1e10 is "10000000000" in text, as an integer would be.

    Raises:
        BadInput: another type, or a value that does not fit, with its row.
    """
    if array.type == target:
        return array
    if pa.types.is_floating(array.type) and (pa.types.is_integer(target) or is_text(target)):
        _refuse_gaps(array, at)
    try:
        # Arrow would cast a time to its count of units.
        if pa.types.is_temporal(array.type) and not is_text(target):
            raise pa.ArrowNotImplementedError("a time is not a number")
        return _cast(array, target)
    except pa.ArrowNotImplementedError as error:
        due = "text" if is_text(target) else "numbers"
        raise BadInput(f"{at.column} holds {array.type}, not {due}") from error
    except pa.ArrowInvalid as error:
        low, high = 0, len(array)
        while high - low > 1:  # the first half that cannot be cast holds the first such value
            middle = (low + high) // 2
            try:
                _cast(array[low:middle], target)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        due = "a number" if pa.types.is_floating(target) else "text" if is_text(target) else target
        value = array[low].as_py()
        value = value.decode(errors="replace") if isinstance(value, bytes) else value
        hint = ""
        if pa.types.is_floating(target) and _DECIMAL_COMMA.fullmatch(str(value).strip()):
            hint = """; --text '{"decimal": ","}' (text= in Python) reads decimal commas"""
        raise BadInput(f"{at.value(low)} is {value!r}; {due} is expected{hint}") from error


def _refuse_gaps(array: pa.Array, at: At) -> None:
    """Raises BadInput for a whole number that may have lost digits, such as an id of 64 bits."""
    numbers = array.to_numpy(zero_copy_only=False)
    unsure = has_gaps(numbers)
    if unsure.any():
        index = int(unsure.argmax())
        raise BadInput(
            f"{at.value(index)} is {numbers[index]}, in {array.type}, which cannot hold every "
            "whole number of that size; write whole numbers as such"
        )


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_floating(array.type) and is_text(target):
        return _in_words(array).cast(target)
    if not is_text(array.type) or is_text(target):
        return array.cast(target)
    words = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
    try:
        return words.cast(target)
    except pa.ArrowInvalid:  # words are looked for only where not all of them are numbers
        if not pa.types.is_floating(target):
            raise
        for word, number in (("true", "1"), ("false", "0")):
            words = pc.if_else(pc.equal(pc.utf8_lower(words), word), number, words)
        return words.cast(target)


def _in_words(array: pa.Array) -> pa.Array:
    """Text of floating point, that of whole numbers without a point or exponent; nan has none."""
    if pc.any(pc.is_nan(array)).as_py():
        raise pa.ArrowInvalid("nan")
    whole = pc.equal(pc.trunc(array), array)
    # int64 holds them: `_refuse_gaps` has refused larger ones, and infinite ones.
    numbers = pc.if_else(whole, array, pa.scalar(0, array.type)).cast(pa.int64())
    return pc.if_else(whole, numbers.cast(pa.string()), array.cast(pa.string()))


def to_numbers(values: pa.ChunkedArray, column: Column) -> np.ndarray:
    """bool, integer or floating (n,) in the column's own width; anything else as float64.

    A list of one value is read as that value, others as `in_dtype` does.

    Raises:
        BadInput: a missing value, or anything that is not a number.
    """
    refuse_missing(values, column)
    array = _of_one(plain(values), column)
    kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return array.to_numpy(zero_copy_only=False)
    return in_dtype(array, np.float64, At(column))


FILL = ", unless --fill COL=VALUE gives one"


def filled(values: Any, fill: Any, column: Column) -> Any:
    """The array, or chunked array, with `fill` for missing values, in its own type.

    Raises:
        UsageError: a `fill` of another type.
    """
    if pa.types.is_null(values.type):
        values = values.cast(pa.scalar(fill).type)
    kind = values.type
    try:
        return values.fill_null(pa.scalar(fill).cast(kind))
    except pa.ArrowException as error:
        raise UsageError(f"{column} holds {kind}; {fill!r} cannot fill what is missing") from error


def with_fills(
    table: pa.Table, fills: Mapping[str, str], column: Callable[[str], Column]
) -> pa.Table:
    """The table with the given fills for missing values and nan; `column` names one in messages."""
    for name, fill in fills.items():
        values = plain_chunks(table[name])
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), None, values)
        place = table.column_names.index(name)
        table = table.set_column(place, name, filled(values, fill, column(name)))
    return table


def to_names(values: pa.ChunkedArray, column: Column, instead: str = "") -> pa.ChunkedArray:
    """Values that name rows or parts of the rows; a missing one is refused, with a hint, `instead`.

    Integers are int64 (uint64 stays), text is large strings, and so are dates and times: in UTC if
    they have a time zone, without trailing zeros of a second, so that one moment has one name in
    every unit. Other plain types stay as they are.
    """
    refuse_missing(values, column, instead)
    values = plain_chunks(values)
    kind = values.type
    if pa.types.is_nested(kind):
        raise BadInput(f"{column} holds {kind}; a number or a string per row is expected")
    if pa.types.is_integer(kind):
        return values if pa.types.is_uint64(kind) else values.cast(pa.int64())
    if pa.types.is_timestamp(kind):
        return _moments(values, column)
    if pa.types.is_floating(kind):
        numbers = values.to_numpy()
        if np.isnan(numbers).any():
            place = column.at(int(np.isnan(numbers).argmax()))
            raise BadInput(f"{place} is nan; every row needs a value{instead}")
    text = pa.types.is_string(kind) or pa.types.is_date(kind)
    return values.cast(pa.large_string()) if text else values


def to_day_names(values: pa.ChunkedArray, column: Column, instead: str = "") -> pa.ChunkedArray:
    """The days' names, as `to_names`; a moment, also as text, becomes its day in its own zone."""
    plain_values = plain_chunks(values)
    if pa.types.is_timestamp(plain_values.type):
        refuse_missing(values, column, instead)
        zone = plain_values.type.tz
        if zone is not None:
            plain_values = pc.local_timestamp(plain_values)
        return plain_values.cast(pa.date32()).cast(pa.large_string())
    names = to_names(values, column, instead)
    if is_text(names.type) and pc.all(pc.match_substring_regex(names, MOMENT)).as_py():
        return pc.utf8_slice_codeunits(names, 0, 10)
    return names


def _of_one(array: pa.Array, column: Column) -> pa.Array:
    """The values of lists of one each; other values as they are."""
    array = in_lists(array)
    if not is_list(array.type):
        return array
    lengths, flat = opened(array)
    several = np.flatnonzero(lengths != 1)
    if several.size:
        raise BadInput(f"{column.at(int(several[0]))} is a list of other than one value")
    refuse_missing(flat, column)
    return flat


def _moments(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))
    try:
        text = values.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise BadInput(f"{column} holds a moment that has no date: {error}") from error
    for zeros, instead in ((r"\.0+(Z?)$", r"\1"), (r"(\.\d*[1-9])0+(Z?)$", r"\1\2")):
        text = pc.replace_substring_regex(text, zeros, instead)
    return text


def to_codes(names: pa.ChunkedArray) -> np.ndarray:
    """int (n,): a number from 0 for each distinct value of `to_names`."""
    return names.combine_chunks().dictionary_encode().indices.to_numpy()


def to_ids(values: pa.ChunkedArray, column: Column) -> Ids:
    """The input of an embedding table: one id per row, or a list of them."""
    if not is_list(values.type):
        return Ids(_ids(to_names(values, column), column))
    refuse_missing(values, column)
    lengths, flat = opened(plain(values))
    return Ids(_ids(to_names(pa.chunked_array([flat]), column), column), lengths)


def _ids(names: pa.ChunkedArray, column: Column) -> np.ndarray:
    """int64 or str (n,)."""
    if pa.types.is_integer(names.type):
        return names.to_numpy()
    if not pa.types.is_large_string(names.type):
        raise BadInput(f"{column} holds {names.type}; ids are whole numbers or words")
    return np.asarray(names.to_pylist(), dtype=str)


def refuse_missing(values: Any, column: Column, instead: str = "") -> None:
    """Raises BadInput for the first missing value; `instead` is the remedy."""
    if values.null_count:
        raise BadInput(
            f"{column.at(first_null(values))} is empty; every row needs a value{instead}"
        )
