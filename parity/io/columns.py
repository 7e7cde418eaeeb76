"""From one Arrow column to checked numpy, naming the file, the column and the row at fault."""

from typing import Any, Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.checks import Column
from parity.inputs.ids import Ids
from semisync.common.errors import BadInput, UsageError


def to_numbers(values: pa.ChunkedArray, column: Column) -> np.ndarray:
    """bool, integer or floating (n,) in the column's own width; text is parsed as float64.

    The words true and false, in any case, are read as 1 and 0, and a list of one value as that
    value. Raises BadInput for a missing value and for anything that is not a number.
    """
    _refuse_missing(values, column)
    values = _of_one(_plainly(values), column)
    kind = values.type
    if pa.types.is_decimal(kind):
        return values.cast(pa.float64()).to_numpy()
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values.to_numpy()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _parsed(values, column)
    raise BadInput(f"{column} holds {kind}, not numbers")


FILL = ", unless --fill COL=VALUE gives one"


def filled(values: Any, fill: str, column: Column) -> Any:
    """The array, or chunked array, with `fill` for missing values, of the type that it has.

    Raises: UsageError for a `fill` of another type.
    """
    kind = values.type
    try:
        return values.fill_null(pa.scalar(fill).cast(kind))
    except pa.ArrowException as error:
        raise UsageError(f"{column} holds {kind}; {fill!r} cannot fill what is missing") from error


def with_fills(
    table: pa.Table, fills: Mapping[str, str], column: Callable[[str], Column]
) -> pa.Table:
    """The table with what stands for missing values and nan in some of its columns, by name;
    `column` names one in messages."""
    for name, fill in fills.items():
        values = _plainly(table[name])
        if pa.types.is_null(values.type):
            values = values.cast(pa.string())
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), None, values)
        place = table.column_names.index(name)
        table = table.set_column(place, name, filled(values, fill, column(name)))
    return table


def to_names(values: pa.ChunkedArray, column: Column, instead: str = "") -> pa.ChunkedArray:
    """What names a row or a part of the rows, none missing; `instead` says what could be done.

    Whole numbers are int64 (uint64 stays uint64), text is large strings, and so are dates and
    times: in UTC where they have a time zone, without trailing zeros of a second, so that one
    moment has one name in every unit. Other plain types stay as they are.
    """
    _refuse_missing(values, column, instead)
    values = _plainly(values)
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


def _plainly(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of a dictionary or a view as such."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def _of_one(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """The values of lists of one each; other values as they are."""
    kind = values.type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return values
    several = np.flatnonzero(pc.list_value_length(values).to_numpy() != 1)
    if several.size:
        raise BadInput(f"{column.at(int(several[0]))} is a list of other than one value")
    values = pc.list_flatten(values)
    _refuse_missing(values, column)
    return values


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
    """What an embedding table is looked up with: one id per row, or a list of them."""
    kind = values.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return Ids(_plain(to_names(values, column), column))
    _refuse_missing(values, column)
    bags = values.combine_chunks()
    flat = pa.chunked_array([bags.flatten()])
    lengths = pc.list_value_length(bags).to_numpy().astype(np.int64)
    return Ids(_plain(to_names(flat, column), column), lengths)


def _plain(names: pa.ChunkedArray, column: Column) -> np.ndarray:
    """int64 or str (n,)."""
    if pa.types.is_integer(names.type):
        return names.to_numpy()
    if not pa.types.is_large_string(names.type):
        raise BadInput(f"{column} holds {names.type}; ids are whole numbers or words")
    return np.asarray(names.to_pylist(), dtype=str)


def _refuse_missing(values: pa.ChunkedArray, column: Column, instead: str = "") -> None:
    if values.null_count:
        index = pc.index(pc.is_null(values), True).as_py()
        raise BadInput(f"{column.at(index)} is empty; every row needs a value{instead}")


def _parsed(values: pa.ChunkedArray, column: Column) -> np.ndarray:
    given = pc.utf8_trim_whitespace(values)
    words = pc.utf8_lower(given)
    truths = pc.index_in(words, value_set=pa.array(["false", "true"], words.type))
    if not truths.null_count:
        return truths.to_numpy()
    try:
        return words.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        for index, word in enumerate(given.to_pylist()):
            try:
                float(word)
            except ValueError:
                raise BadInput(f"{column.at(index)} is {word!r}, not a number") from error
        raise BadInput(f"{column} holds text that is not a number: {error}") from error
