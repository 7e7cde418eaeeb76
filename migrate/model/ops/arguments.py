"""How arguments are written: axes, sizes, data types, in the forms that torch takes."""

from __future__ import annotations

import ast
from typing import Any, List, Optional, Sequence

from migrate.model.ops.values import HOST, MOST_SIZES, OBJECT, STRINGS, Call, Value, listed
from semisync.common.errors import BadInput

_MOST_ELEMENTS = 256  # of a tuple whose elements are written one by one; TensorFlow has 254 axes


def number(value: Value) -> str:
    """A Python number: a constant, a HOST value, or the value of a tensor with one number."""
    known = _numbers(value)
    if known is not None:
        return str(known[0])
    return value.text if value.kind in (HOST, OBJECT) else f"{value}.item()"


def sizes(value: Value) -> str:
    """A tuple of integers: a constant, a HOST value, or the values of a tensor."""
    known = _numbers(value)
    if known is not None:
        return listed([int(one) for one in known])
    return value.text if value.kind == HOST else f"{value}.tolist()"


def spread(value: Value) -> str:
    """As `sizes`; a constant becomes separate numbers, as methods of tensors take them."""
    known = _numbers(value)
    return ", ".join(map(str, known)) if known else sizes(value)


def elements(value: Value) -> Optional[List[str]]:
    """The expressions of the integers of a tuple; None if their number is not known, or is more
    than a tensor has axes."""
    length = value.shape[0] if value.shape else None
    if max(length or 0, 0 if value.constant is None else value.constant.size) > _MOST_ELEMENTS:
        return None
    known = _numbers(value)
    if known is not None:
        return [str(int(one)) for one in known]
    if value.kind == HOST:
        written = ast.parse(value.text, mode="eval").body
        if isinstance(written, ast.Tuple):
            return [ast.unparse(one) for one in written.elts]
    return None if length is None else [f"{value}[{k}]" for k in range(length)]


def _numbers(value: Value) -> Optional[List[Any]]:
    """The numbers of a constant; None if they are computed.

    Raises:
        TypeError: it holds strings.
        BadInput: far too many for sizes or axes.
    """
    if value.constant is not None and value.kind == STRINGS:
        raise TypeError("a string stands where a number belongs")
    if value.constant is not None and value.constant.size > MOST_SIZES:
        raise BadInput(
            f"the graph gives an op {value.constant.size:,} sizes or axes, as the constant "
            f"{value.text}, expected at most {MOST_SIZES:,}; it is damaged"
        )
    return None if value.constant is None else value.constant.reshape(-1).tolist()


def plain(value: Value) -> str:
    """A tensor, or a Python number or tuple where it is one: for functions that take either."""
    return value.text if value.kind == HOST or value.is_literal else value.tensor


def stacked(values: Sequence[Value]) -> str:
    """Tensors as a list."""
    return "[" + ", ".join(value.tensor for value in values) + "]"


def normal(axis: int, rank: Optional[int]) -> int:
    """An axis counted from the front, where the rank is known."""
    return axis + rank if axis < 0 and rank is not None else axis


def keywords(**values: object) -> str:
    """Arguments by name, those that differ from None and False; each after a comma."""
    given = {key: value for key, value in values.items() if value not in (None, False)}
    return "".join(f", {key}={value}" for key, value in given.items())


def index_type(call: Call, name: str, default: str) -> str:
    """The suffix that casts an int64 result to the type in attribute `name`."""
    return "" if call.dtype(name, default) == "int64" else ".int()"
