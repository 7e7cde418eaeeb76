"""One Arrow column of a batch as a model takes it, or a sentence that names the row at fault.

1. A missing value is refused for a dense input, unless `fill` is given; for a sparse one it is a
   row without values. A missing value within a list is always refused.
2. Text becomes numbers where the type or the model asks for numbers; numbers become text only
   where the type says so. Floats become integers only where nothing is lost.
3. Without a dtype integers are int64, floats float32 (as models compute), text bytes.
4. Lists may hold lists, all of one size. A flat list fills an input of several dimensions in its
   order, row-major.
"""

from typing import Any, Optional, Tuple, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrate.scoring.model import TYPES, Feature, Input
from parity.inputs.checks import Column
from parity.io.columns import filled
from semisync.common.errors import BadInput
from semisync.common.shapes import fitted

_ARROW = {
    name: pa.large_string() if name == "string" else pa.type_for_alias(name) for name in TYPES
}
_Values = Union[np.ndarray, pa.Array]
_TEXT = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def feature(
    values: pa.ChunkedArray,
    at: Column,
    wanted: Input,
    kind: Optional[str] = None,
    fill: Optional[str] = None,
) -> Feature:
    """The column's values in the dtype and shape that `wanted` asks for.

    Args:
        values: of the batch; lists, numbers or text.
        at: where they came from, for the messages.
        kind: one of TYPES that the values are first turned into.
        fill: stands for a missing value, as text.

    Raises: BadInput, naming the row; UsageError for a `fill` of another type.
    """
    array = _plain(values)
    lengths = None
    _check_type(array.type, at, wanted)
    if pa.types.is_nested(array.type):
        if array.null_count and not wanted.sparse:
            raise _missing(at, array)
        lengths, array = _opened(array)
    elif array.null_count:
        if fill is not None:
            array = _filled(array, fill, wanted, kind, at)
        elif wanted.sparse:
            lengths = pc.is_valid(array).to_numpy(zero_copy_only=False).astype(np.int64)
            array = array.drop_null()
        else:
            raise _missing(at, array)
    rows, inner = np.arange(len(array)), []
    if lengths is not None:
        rows = np.repeat(np.arange(len(lengths)), lengths)
    _refuse_empty(array, at, rows)
    while pa.types.is_nested(array.type):
        many, array = _opened(array)
        inner.append(_one_length(many, at, rows))
        rows = np.repeat(rows, many)
        _refuse_empty(array, at, rows)
    if kind is not None:
        array = _cast(array, _ARROW[kind], at, rows)
    flat = _typed(array, wanted.dtype, at, rows, as_is=kind is not None)
    if wanted.sparse:
        return Feature(flat, np.ones(len(values), np.int64) if lengths is None else lengths)
    size: Tuple[int, ...] = (len(values),)
    if lengths is not None:
        size = (*size, _one_length(lengths, at, np.arange(len(lengths))), *inner)
    # a batch may have fewer rows than the model takes, and is padded then
    shape = None if wanted.shape is None else (None, *wanted.shape[1:])
    return Feature(_shaped(flat, fitted(shape, size) or size), None)


def _check_type(kind: pa.DataType, at: Column, wanted: Input) -> None:
    """Refuses what is no number, text or list; for a sparse input lists of lists as well."""
    inside, depth = kind, 0
    while _is_list(inside):
        inside, depth = inside.value_type, depth + 1
    if pa.types.is_nested(inside) or (wanted.sparse and depth > 1):
        raise BadInput(f"{at} holds {kind}; numbers, text or lists of them are expected")


def _opened(array: Any) -> Tuple[np.ndarray, Any]:
    """How many values each list has, and all of them."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    return lengths, _plain(array.flatten())


def _refuse_empty(array: Any, at: Column, rows: np.ndarray) -> None:
    if array.null_count:
        raise BadInput(f"{at.at(rows[_first_null(array)])} has an empty value in its list")


def _plain(values: Any) -> Any:
    """One array that is no dictionary."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _filled(array: Any, fill: str, wanted: Input, kind: Optional[str], at: Column) -> Any:
    target = array.type
    if pa.types.is_null(target):  # no value in the whole batch
        known = {"bytes": pa.large_string()}.get(wanted.dtype or "")
        target = _ARROW[kind] if kind else known or pa.type_for_alias(wanted.dtype or "float32")
        array = array.cast(target)
    return filled(array, fill, at)


def _cast(array: Any, target: pa.DataType, at: Column, rows: np.ndarray) -> Any:
    """`array` as `target`; BadInput names the first value that cannot be one."""
    if array.type.equals(target):
        return array
    try:
        if _is_text(array.type) and not _is_text(target):
            array = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
        return array.cast(target)
    except pa.ArrowNotImplementedError as error:
        raise BadInput(f"{at} holds {array.type}, not {target}") from error
    except pa.ArrowInvalid as error:
        for row, value in zip(rows, array):
            try:
                value.cast(target)
            except pa.ArrowInvalid:
                raise BadInput(
                    f"{at.at(int(row))} is {value.as_py()!r}; {target} is expected"
                ) from error
        raise BadInput(f"{at} is not {target}: {error}") from error


def _typed(array: Any, dtype: Optional[str], at: Column, rows: np.ndarray, as_is: bool) -> _Values:
    """The values in `dtype`; without one `as_is` leaves floats as wide as they are."""
    kind = array.type
    if dtype is None:
        dtype = _natural(kind, as_is)
    if dtype == "bytes":
        if not _is_text(kind):
            raise BadInput(f"{at} holds {kind}, but the model takes text; --type makes text of it")
        return array.cast(pa.large_binary())
    target = np.dtype(dtype)
    if target.kind != "f":
        array = _cast(array, pa.from_numpy_dtype(target), at, rows)
    elif not pa.types.is_floating(kind) and not pa.types.is_integer(kind):
        array = _cast(array, pa.float64(), at, rows)
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as in the model
        return array.to_numpy(zero_copy_only=False).astype(target, copy=False)


def _natural(kind: pa.DataType, as_is: bool) -> str:
    """The dtype in which a model that does not ask for one gets an Arrow type."""
    if _is_text(kind):
        return "bytes"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return str(kind) if as_is else "int64"
    return "float64" if as_is and pa.types.is_float64(kind) else "float32"


def _is_list(kind: pa.DataType) -> bool:
    return any(
        check(kind)
        for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _is_text(kind: pa.DataType) -> bool:
    return kind in _TEXT


def _one_length(lengths: np.ndarray, at: Column, rows: np.ndarray) -> int:
    """That of lists which are all as long as the first; rows: those that they are in."""
    differs = lengths != lengths[:1]
    if differs.any():
        place = int(differs.argmax())
        raise BadInput(
            f"{at.at(int(rows[place]))} has {lengths[place]} values, the first of its batch "
            f"{lengths[0]}; a dense input takes as many in each row, --sparse any number"
        )
    return int(lengths[0]) if len(lengths) else 0


def _shaped(values: _Values, size: Tuple[int, ...]) -> _Values:
    """(rows, k, ...), text as fixed-size lists."""
    if isinstance(values, np.ndarray):
        return values.reshape(size)
    if 0 in size[1:]:  # from_arrays could not tell how many there are
        kind = values.type
        for width in reversed(size[1:]):
            kind = pa.list_(kind, width)
        return pa.array(np.empty(size).tolist(), kind)
    for width in reversed(size[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, width)
    return values


def _first_null(array: Any) -> int:
    return pc.index(pc.is_null(array), True).as_py()


def _missing(at: Column, array: Any) -> BadInput:
    return BadInput(
        f"{at.at(_first_null(array))} is empty, and a dense input needs a value in every row; "
        "--fill gives one"
    )
