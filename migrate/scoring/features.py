"""One Arrow column in the form that a model takes, or a sentence that names the row at fault.

1. A missing value is refused for a dense input, unless `fill` is given; for a sparse one it is a
   row without values. A missing value within a list is always refused.
2. NaN counts as missing if there is a `fill`, unless that is nan itself, or with `nan_is_missing`:
   a graph may handle it when scoring, but in training it would make the weights NaN.
3. Text becomes numbers if the type or the model requires numbers; numbers become text only if the
   type is text. Floats become integers only if the conversion is exact, and below 2^53, since a
   larger float64 may be the rounded form of another id.
4. Without a dtype integers are int64, floats float32 (as models compute), text bytes.
5. Lists may hold lists, all of one size. A flat list fills an input of several dimensions in
   row-major order.
"""

import math
from typing import Any, List, Optional, Tuple, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrate.scoring.model import TYPES, Feature, Input
from parity.inputs.checks import Column
from parity.io.columns import At, cast, first_null, in_dtype, is_list, is_text, opened, plain
from semisync.common.errors import BadInput, MissingValue, UsageError
from semisync.common.shapes import fitted

_ARROW = {
    name: pa.large_string() if name == "string" else pa.type_for_alias(name) for name in TYPES
}
_Values = Union[np.ndarray, pa.Array]
MAKES_TEXT = "; --type makes text of it"  # appended to messages of commands with --type


def feature(
    values: Any,
    column: Column,
    wanted: Input,
    kind: Optional[str] = None,
    fill: Optional[str] = None,
    nan_is_missing: bool = False,
) -> Feature:
    """The column's values in the dtype and shape of `wanted`.

    Args:
        values: Arrow's, of a batch; lists, numbers or text.
        column: their source, for messages.
        kind: one of TYPES to which the values are first converted.
        fill: the replacement of a missing value, as text.
        nan_is_missing: whether NaN counts as missing even without a fill.

    Raises:
        BadInput: the input does not take a value; with its row.
        UsageError: `fill` is of another type.
    """
    array, at, rows = plain(values), At(column), len(values)
    _check_type(array.type, column, wanted)
    if pa.types.is_null(array.type) and (wanted.sparse or _width(wanted, []) not in (None, 1)):
        array = array.cast(pa.list_(array.type))  # all null: it may be of lists
    lengths, inner, in_lists = None, [], is_list(array.type)
    present = None  # which rows have a value, where not all have
    if array.null_count and (in_lists or (wanted.sparse and fill is None)):
        present = pc.is_valid(array).to_numpy(zero_copy_only=False)
        if not wanted.sparse and fill is None:
            raise _missing(at, array, first_null(array))
    if in_lists:
        lengths, array = opened(array)
        at = at.inside(lengths)
        at.refuse_null(array)
    elif present is not None:
        lengths, array = present.astype(np.int64), array.drop_null()
        at = at.inside(lengths)
    while is_list(array.type):
        many, array = opened(array)
        inner.append(_one_length(many, at, None))
        at = at.inside(many)
        at.refuse_null(array)
    flat = _typed(array, wanted, kind, fill, at)
    if nan_is_missing or fill is not None:
        flat = _without_nan(flat, fill, at, in_lists)
    width = 1 if wanted.sparse else _width(wanted, inner)
    if lengths is None:
        if width not in (None, 1):
            raise BadInput(f"{column} has one value in each row; {width} are expected")
        if wanted.sparse:
            return Feature(flat, np.ones(rows, np.int64))
        return Feature(_shaped(flat, wanted, (rows,)), None)
    if fill is not None and present is not None:
        # A missing list has as many fills as the input takes, or else as the first list has values.
        some = lengths[present][:1].tolist() or [1]
        each = some[0] if width is None else width
        flat = _with_fills(flat, lengths, ~present, each * math.prod(inner), fill)
        lengths = np.where(present, lengths, each)
    if wanted.sparse:
        return Feature(flat, lengths)
    size = (rows, _one_length(lengths, At(column), width), *inner)
    return Feature(_shaped(flat, wanted, size), None)


def _check_type(kind: pa.DataType, column: Column, wanted: Input) -> None:
    """Refuses types other than numbers, text and lists; for a sparse input also lists of lists."""
    inside, depth = kind, 0
    while is_list(inside):
        inside, depth = inside.value_type, depth + 1
    if pa.types.is_nested(inside) or (wanted.sparse and depth > 1):
        raise BadInput(f"{column} holds {kind}; numbers, text or lists of them are expected")


def _width(wanted: Input, inner: List[int]) -> Optional[int]:
    """How many values, or lists, a row of a dense input has, if its shape is known."""
    sizes = (None,) if wanted.shape is None else wanted.shape[1:]
    if inner or None in sizes:
        return None
    return math.prod(size for size in sizes if size is not None)


def _typed(
    array: pa.Array, wanted: Input, kind: Optional[str], fill: Optional[str], at: At
) -> _Values:
    """The values in the input's dtype, none missing; with only `kind`, floats keep their width."""
    if kind is not None:
        array = cast(array, _ARROW[kind], at)
    dtype = wanted.dtype or _natural(array.type, kind is not None)
    if dtype == "bytes":
        if not is_text(array.type) and not pa.types.is_null(array.type):
            raise BadInput(f"{at.column} holds {array.type}, but the model takes text{MAKES_TEXT}")
        if array.null_count and fill is None:
            raise _missing(at, array, first_null(array))
        array = array.cast(pa.large_binary())
        return array.fill_null((fill or "").encode()) if array.null_count else array
    if not array.null_count:
        return in_dtype(array, dtype, at)
    if fill is None:
        raise _missing(at, array, first_null(array))
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    flat = np.full(len(array), _number(fill, dtype, at.column))
    flat[valid] = in_dtype(array.drop_null(), dtype, at.inside(valid.astype(np.int64)))
    return flat


def _without_nan(flat: _Values, fill: Optional[str], at: At, in_lists: bool) -> _Values:
    """The values with nan replaced by the fill; without a fill, or in lists, nan is refused."""
    if isinstance(flat, pa.Array) or flat.dtype.kind != "f":
        return flat
    missing = np.isnan(flat)
    number = None if fill is None else _number(fill, str(flat.dtype), at.column)
    if not missing.any() or (number is not None and np.isnan(number)):
        return flat
    if number is None or in_lists:
        raise _missing(at, flat, int(missing.argmax()), in_lists)
    return np.where(missing, number, flat)


def _number(fill: str, dtype: str, column: Column) -> Any:
    try:
        return in_dtype(pa.array([fill]), dtype, At(column))[0]
    except BadInput as error:
        raise UsageError(
            f"{column} is read as {dtype}; {fill!r} cannot fill what is missing"
        ) from error


def _with_fills(
    flat: _Values, lengths: np.ndarray, gaps: np.ndarray, each: int, fill: str
) -> _Values:
    """The values of lists, with `each` times the fill in the rows that are `gaps`."""
    filled = np.repeat(gaps, np.where(gaps, each, lengths))
    # Position len(flat) is that of the fill, which is appended.
    places = np.where(filled, len(flat), np.cumsum(~filled) - 1)
    if isinstance(flat, np.ndarray):
        number = _number(fill, str(flat.dtype), Column("the fill"))
        return np.append(flat, number)[places]
    text = pa.array([fill.encode()], pa.large_binary())
    return pa.concat_arrays([flat, text]).take(pa.array(places))


def _natural(kind: pa.DataType, as_is: bool) -> str:
    """The dtype of an Arrow type for a model that does not specify one."""
    if is_text(kind):
        return "bytes"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return str(kind) if as_is else "int64"
    return "float64" if as_is and pa.types.is_float64(kind) else "float32"


def _one_length(lengths: np.ndarray, at: At, due: Optional[int]) -> int:
    """The length of lists that are all of one length: `due`, or that of the first."""
    first = int(lengths[0]) if len(lengths) else 0
    differs = lengths != (first if due is None else due)
    if differs.any():
        place = int(differs.argmax())
        what = (
            f"the first of its batch {first}; a dense input takes as many in each row, --sparse "
            "any number"
            if due is None
            else f"expected {due}"
        )
        raise BadInput(f"{at.value(place)} has {lengths[place]} values, {what}")
    return first if due is None else due


def _shaped(values: _Values, wanted: Input, size: Tuple[int, ...]) -> _Values:
    """(rows, k, ...) in the input's shape, text as fixed-size lists; `size` if it has none."""
    if wanted.shape is not None:
        known = [one for one in wanted.shape[1:] if one is not None]
        if len(known) == len(wanted.shape[1:]) and math.prod(size[1:]) == math.prod(known):
            size = (size[0], *known)
        else:  # a batch may have fewer rows than the model takes, and is padded then
            size = fitted((None, *wanted.shape[1:]), size) or size
    if isinstance(values, np.ndarray):
        return values.reshape(size)
    if 0 in size[1:]:  # from_arrays could not infer their number
        kind = values.type
        for width in reversed(size[1:]):
            kind = pa.list_(kind, width)
        return pa.array(np.empty(size).tolist(), kind)
    for width in reversed(size[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, width)
    return values


def _missing(at: At, values: _Values, index: int, in_list: bool = False) -> BadInput:
    if in_list:
        return BadInput(f"{at.value(index)} has an empty value in its list")
    what = "nan" if isinstance(values, np.ndarray) else "empty"
    remedy = f"--fill {at.column.name}=VALUE, or a Column's default, gives one"
    return MissingValue.of(at.value(index), what, remedy)
