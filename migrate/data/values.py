"""One Arrow column of a block as checked values, or a sentence that names the row at fault.

The kinds and what becomes of missing values: see `migrate.data.schema`; the types that come out:
`migrate.data.rows`. Within, offsets of lists begin with 0, and values are those of the lists alone,
without what Arrow may keep behind missing ones.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from migrate.data.place import Place
from migrate.data.schema import Column
from semisync.common.errors import BadInput

_MOST = (1 << 31) - 1  # values in the lists of an Arrow array

_LIST = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
)
_TEXT = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


class At(NamedTuple):
    """Which column of which block, for the messages."""

    column: Column
    place: Place

    def wrong_type(self, kind: pa.DataType, wanted: str) -> BadInput:
        """The column holds another type."""
        return BadInput(
            f"{self.place.column(self.column.name)} holds {kind}; a column of kind "
            f"{self.column.kind} takes {wanted}"
        )

    def wrong_value(self, index: int, offsets: Optional[numpy.ndarray], what: str) -> BadInput:
        """A value is wrong: the `index`-th, of the lists with `offsets` if there are any."""
        if offsets is not None:
            index = int(numpy.searchsorted(offsets, index, "right")) - 1
        return BadInput(f"{self.place.row(self.column.name, index)} {what}")

    def missing(self, index: int, offsets: Optional[numpy.ndarray] = None) -> BadInput:
        """A value is missing."""
        what = f"is missing; kind {self.column.kind} needs a value in every row, or a default"
        return self.wrong_value(index, offsets, what)


def checked_values(array: Any, column: Column, place: Place) -> Any:
    """The column's values, of an Arrow `array`, as `Rows` has them.

    Raises: BadInput for another type, a missing value without a default, and a number out of range.
    """
    return _CHECKS[column.kind](_plain(array), At(column, place))


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a list; a map is none, though Arrow has it as a list of pairs."""
    return any(check(kind) for check in _LIST)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text or bytes."""
    return any(check(kind) for check in _TEXT)


def _ids(array: Any, at: At) -> Any:
    own = pa.int32() if at.column.dtype == "int32" else pa.int64()
    is_as_due = pa.types.is_list(array.type) and array.type.value_type == own
    if is_as_due and not array.null_count and not array.values.null_count:
        return pa.ListArray.from_arrays(array.offsets, array.values)  # which names its items alike
    if is_list(array.type):
        offsets, values = _flat(array)
        present = pc.is_valid(array) if array.null_count else None
    else:
        present = pc.is_valid(array) if array.null_count else None
        offsets = numpy.arange(len(array) + 1)
        if present is not None:
            numpy.cumsum(present.to_numpy(zero_copy_only=False), out=offsets[1:])
            array = array.drop_null()
        values = array
    ids = _whole_numbers(values, offsets, at)
    if at.column.default is not None and present is not None:
        gaps = numpy.flatnonzero(~present.to_numpy(zero_copy_only=False))
        ids = numpy.insert(ids, offsets[gaps], at.column.default)
        offsets[1:] += numpy.cumsum(numpy.bincount(gaps, minlength=len(offsets) - 1))
    return lists(offsets, ids)


def _weighted(array: Any, at: At) -> Any:
    kind = array.type
    wanted = "lists of (id, weight), or maps from id to weight"
    names = ("id", "weight")
    if pa.types.is_map(kind):
        names = ("key", "value")
        array = array.cast(
            pa.large_list(pa.struct(list(zip(names, (kind.key_type, kind.item_type)))))
        )
    elif not is_list(kind):
        raise at.wrong_type(kind, wanted)
    offsets, pairs = _flat(array)
    if not pa.types.is_struct(pairs.type) or {field.name for field in pairs.type} != {*names}:
        raise at.wrong_type(kind, wanted)
    _refuse_null_inside(pairs, offsets, at)
    ids, weights = (_plain(pc.struct_field(pairs, name)) for name in names)
    _refuse_null_inside(weights, offsets, at)
    numbers = _floats(weights, at)
    _refuse_nan(numbers, offsets, at)
    return lists_of_pairs(offsets, _whole_numbers(ids, offsets, at), numbers)


def lists(offsets: numpy.ndarray, values: Any) -> Any:
    """Lists without missing ones; offsets: int64 [n + 1]."""
    if offsets[-1] > _MOST:
        raise BadInput(f"{offsets[-1]} values in lists of one block; {_MOST} are the most")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(numpy.int32)), values)


def lists_of_pairs(offsets: numpy.ndarray, ids: numpy.ndarray, weights: numpy.ndarray) -> Any:
    """Weighted ids as `Rows` has them."""
    pairs = pa.StructArray.from_arrays([pa.array(ids), pa.array(weights)], ["id", "weight"])
    return lists(offsets, pairs)


def _dense(array: Any, at: At) -> Any:
    width, default = at.column.width, at.column.default
    if not is_list(array.type):
        if width != 1:
            raise at.wrong_type(array.type, f"lists of {width} numbers")
        return pa.array(_filled(array, None, at))
    offsets, values = _flat(array)
    lengths = numpy.diff(offsets)
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if default is None and not valid.all():
        raise at.missing(int(valid.argmin()))
    wrong = valid & (lengths != width)
    if wrong.any():
        row = int(wrong.argmax())
        raise at.wrong_value(row, None, f"has {lengths[row]} values; the schema says {width}")
    numbers = numpy.empty((len(array), width), numpy.float32)
    numbers[valid] = _filled(values, offsets, at).reshape(-1, width)
    if default is not None:
        numbers[~valid] = default
    flat = pa.array(numbers.reshape(-1))
    return flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)


def _numbers(array: Any, at: At) -> Any:
    if not is_list(array.type):
        raise at.wrong_type(array.type, "lists of numbers")
    offsets, values = _flat(array)
    _refuse_null_inside(values, offsets, at)
    return lists(offsets, pa.array(_filled(values, offsets, at)))


def _label(array: Any, at: At) -> Any:
    return pa.array(_filled(array, None, at))


def _key(array: Any, at: At) -> Any:
    column, kind = at.column, array.type
    if column.dtype == "int64" and not pa.types.is_integer(kind):
        raise at.wrong_type(kind, "integers where its dtype is int64")
    if pa.types.is_nested(kind) or (column.dtype == "string" and not is_text(kind)):
        raise at.wrong_type(kind, "a number or a text per row, text where its dtype is string")
    if array.null_count:
        if column.default is None:
            raise at.missing(_first_null(array))
        try:
            array = array.fill_null(pa.scalar(column.default).cast(kind))
        except pa.ArrowException as error:
            raise at.wrong_type(kind, f"no default {column.default!r}") from error
    if pa.types.is_string(kind):
        return array.cast(pa.large_string())
    fits = pa.types.is_integer(kind) and kind != pa.uint64()
    return array.cast(pa.int64()) if fits else array


def _string(array: Any, at: At) -> Any:
    if not is_text(array.type) and not pa.types.is_null(array.type):
        raise at.wrong_type(array.type, "text")
    default = "" if at.column.default is None else str(at.column.default)
    return array.cast(pa.large_binary()).fill_null(default.encode())


def _strings(array: Any, at: At) -> Any:
    if not is_list(array.type):
        raise at.wrong_type(array.type, "lists of text")
    offsets, values = _flat(array)
    if not is_text(values.type):
        raise at.wrong_type(array.type, "lists of text")
    _refuse_null_inside(values, offsets, at)
    return lists(offsets, values.cast(pa.large_binary()))


_CHECKS: Dict[str, Callable[[Any, At], Any]] = {
    "dense": _dense,
    "ids": _ids,
    "key": _key,
    "label": _label,
    "numbers": _numbers,
    "string": _string,
    "strings": _strings,
    "weighted": _weighted,
}


def _plain(array: Any) -> Any:
    """One array, of values rather than of a dictionary's codes."""
    if isinstance(array, pa.ChunkedArray):
        chunks = array.chunks or [pa.array([], array.type)]
        array = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _flat(array: Any) -> Tuple[numpy.ndarray, Any]:
    """Offsets of lists, int64 from 0, a missing one being empty; and their values."""
    if pa.types.is_fixed_size_list(array.type) or array.null_count:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        offsets = numpy.zeros(len(array) + 1, numpy.int64)
        numpy.cumsum(lengths, out=offsets[1:])
    else:
        offsets = array.offsets.to_numpy().astype(numpy.int64)
        offsets -= offsets[0]
    return offsets, _plain(array.flatten())


def _whole_numbers(values: Any, offsets: numpy.ndarray, at: At) -> numpy.ndarray:
    """Integers in the column's dtype, none missing."""
    target = numpy.dtype(at.column.dtype or "int64")
    if not len(values):
        return numpy.empty(0, target)
    if not pa.types.is_integer(values.type):
        raise at.wrong_type(values.type, "integers, or lists of them")
    _refuse_null_inside(values, offsets, at)
    numbers = values.to_numpy(zero_copy_only=False)
    limit, own = numpy.iinfo(target), numpy.iinfo(numbers.dtype)
    for out_of_range, extreme in (
        (own.max > limit.max, lambda: numbers > numbers.dtype.type(limit.max)),
        (own.min < limit.min, lambda: numbers < numbers.dtype.type(limit.min)),
    ):
        if out_of_range:
            outside = extreme()
            if outside.any():
                where = int(outside.argmax())
                raise at.wrong_value(where, offsets, f"holds {numbers[where]}, beyond {target}")
    return numbers.astype(target, copy=False)


def _filled(array: Any, offsets: Optional[numpy.ndarray], at: At) -> numpy.ndarray:
    """float32, with the default for what is missing."""
    default = at.column.default
    if array.null_count and default is None:
        raise at.missing(_first_null(array), offsets)
    numbers = _floats(array, at)
    if default is None:
        _refuse_nan(numbers, offsets, at)
        return numbers
    return numpy.where(numpy.isnan(numbers), numpy.float32(default), numbers)


def _floats(array: Any, at: At) -> numpy.ndarray:
    """float32; NaN for null."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        array = array.cast(pa.float64())
    elif pa.types.is_null(kind):
        array = array.cast(pa.float32())
    elif not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise at.wrong_type(kind, "numbers")
    with numpy.errstate(over="ignore"):  # beyond float32 is infinite, as in the model
        return array.to_numpy(zero_copy_only=False).astype(numpy.float32, copy=False)


def _refuse_nan(numbers: numpy.ndarray, offsets: Optional[numpy.ndarray], at: At) -> None:
    missing = numpy.isnan(numbers)
    if missing.any():
        raise at.missing(int(missing.argmax()), offsets)


def _refuse_null_inside(values: Any, offsets: numpy.ndarray, at: At) -> None:
    if values.null_count:
        raise at.wrong_value(_first_null(values), offsets, "has a missing value in its list")


def _first_null(array: Any) -> int:
    return int(pc.index(pc.is_null(array), True).as_py())
