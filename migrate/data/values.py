"""One Arrow column of a block as checked values, or a sentence that names the row at fault.

The kinds and the treatment of missing values: see `migrate.data.schema`; the resulting types:
`migrate.data.rows`. Except for keys and weighted ids a kind is an input of a model, with the rules
of `migrate.scoring.features`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from migrate.data.schema import Column
from migrate.scoring.features import feature
from migrate.scoring.model import Input
from parity.inputs.checks import Column as Place
from parity.io.columns import (
    At,
    cast,
    filled,
    in_dtype,
    is_list,
    is_text,
    opened,
    plain,
    refuse_missing,
    to_names,
)
from semisync.common.errors import BadInput

_MOST = (1 << 31) - 1  # values in the lists of an Arrow array
_SPARSE = {"ids": "int64", "numbers": "float32", "strings": "bytes"}
_DENSE = {"dense": "float32", "label": "float32", "string": "bytes"}


def checked_values(array: Any, column: Column, place: Place) -> Any:
    """The values of an Arrow array, in the form of `Rows`.

    Raises:
        BadInput: the type differs, a value without a default is missing, or a number is out of
            range.
    """
    array = plain(array)
    if column.kind == "key":
        return _key(array, column, place)
    if column.kind == "weighted":
        return _weighted(array, column, place)
    sparse = column.kind in _SPARSE
    dtype = column.dtype or {**_SPARSE, **_DENSE}[column.kind]
    as_due = dtype == "int64" and sparse and array.type == pa.list_(pa.int64())
    if as_due and column.type is None and not array.null_count and not array.values.null_count:
        return pa.ListArray.from_arrays(array.offsets, array.values)  # which names its items alike
    shape = None if sparse else (None, column.width)
    wanted = Input(column.name, column.name, dtype, sparse, shape)
    fill = None if column.default is None else str(column.default)
    values, lengths = feature(array, place, wanted, column.type, fill, nan_is_missing=True)
    if lengths is not None:
        return _lists(lengths, values)
    flat = values
    while isinstance(flat, pa.Array) and pa.types.is_fixed_size_list(flat.type):
        flat = flat.flatten()
    flat = pa.array(flat.reshape(-1)) if isinstance(flat, numpy.ndarray) else flat
    return flat if column.width == 1 else pa.FixedSizeListArray.from_arrays(flat, column.width)


def refuse_strays(values: Any, column: Column, place: Place) -> None:
    """Raises BadInput for an integer that is no row of the column's tables, or a number that is not
    among those that it may hold.

    Args:
        values: from `checked_values`.
    """
    at = At(place)
    if (column.tables or column.among) and is_list(values.type):
        lengths, values = opened(values)
        at = at.inside(lengths)
    for table in column.tables:
        numbers = values.to_numpy()
        strays = table.strays(numbers)
        if len(strays):
            raise table.refusal(at.value(strays[0]), numbers[strays[0]])
    if column.among:
        numbers = values.to_numpy()
        strays = numpy.flatnonzero(~numpy.isin(numbers, column.among))
        if len(strays):
            known = " or ".join(f"{one:g}" for one in column.among)
            found = f"{at.value(strays[0])} is {numbers[strays[0]]:g}"
            raise BadInput(f"{found}, expected {known}; leave those rows out, or mend them")


def lists_of_pairs(lengths: numpy.ndarray, ids: numpy.ndarray, weights: numpy.ndarray) -> Any:
    """Weighted ids in the form of `Rows`."""
    pairs = pa.StructArray.from_arrays([pa.array(ids), pa.array(weights)], ["id", "weight"])
    return _lists(lengths, pairs)


def _lists(lengths: numpy.ndarray, values: Any) -> Any:
    """Lists without missing ones."""
    offsets = numpy.zeros(len(lengths) + 1, numpy.int64)
    numpy.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > _MOST:
        raise BadInput(f"{offsets[-1]} values in lists of one block; {_MOST} are the most")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(numpy.int32)), pa.array(values))


def _weighted(array: Any, column: Column, place: Place) -> Any:
    kind, names = array.type, ("id", "weight")
    if kind in (pa.null(), pa.list_(pa.null())):  # no value tells the type
        array = array.cast(pa.list_(pa.struct([("id", pa.int64()), ("weight", pa.float32())])))
    if pa.types.is_map(kind):
        names = ("key", "value")
        pair = pa.struct(list(zip(names, (kind.key_type, kind.item_type))))
        array = array.cast(pa.large_list(pair))
    pairs = array.type.value_type if is_list(array.type) else None
    if pairs is None or not pa.types.is_struct(pairs) or {one.name for one in pairs} != {*names}:
        raise BadInput(
            f"{place} holds {kind}; lists of (id, weight), or maps from id to weight, are expected"
        )
    lengths, flat = opened(array)
    at = At(place).inside(lengths)
    at.refuse_null(flat)
    ids, weights = (plain(pc.struct_field(flat, name)) for name in names)
    at.refuse_null(ids)
    numbers = in_dtype(weights, "float32", at)
    # from_pandas: a NaN is a missing weight too.
    at.refuse_null(pa.array(numbers, from_pandas=True))
    return lists_of_pairs(lengths, in_dtype(ids, column.dtype or "int64", at), numbers)


def _key(array: Any, column: Column, place: Place) -> Any:
    if column.default is not None and array.null_count:
        array = filled(array, column.default, place)
    if column.dtype == "timestamp":
        return _moments(array, At(place))
    if column.dtype is not None:
        due = pa.int64() if column.dtype == "int64" else pa.large_string()
        array = cast(array, due, At(place))
    return plain(to_names(pa.chunked_array([array]), place))


def _moments(array: Any, at: At) -> Any:
    """timestamp[us] of times in UTC, none missing; those without a zone count as UTC."""
    kind, due = array.type, pa.timestamp("us")
    refuse_missing(array, at.column)
    if pa.types.is_timestamp(kind):
        return _in_microseconds(array)
    if pa.types.is_date(kind):
        return array.cast(due)
    if not is_text(kind):
        raise BadInput(
            f"{at.column} holds {kind}; dates, times, or text such as 2024-01-31 12:00:00 are "
            "expected"
        )
    words = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
    # All values must be of one form. Arrow casts text with a zone only to a type with one; "us"
    # refuses a seventh digit of a second, "ns" years before 1678 or after 2261.
    for unit, zone in itertools.product(("us", "ns"), ("UTC", None)):
        try:
            return _in_microseconds(words.cast(pa.timestamp(unit, zone)))
        except pa.ArrowInvalid:
            pass
    return cast(array, due, at)  # which names the error


def _in_microseconds(array: Any) -> Any:
    """timestamp[us] in UTC, of timestamps, finer digits cut off."""
    return array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.timestamp("us"))
