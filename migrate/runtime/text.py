"""TensorFlow's ops on text: joining, lengths, pieces, case, regular expressions.

Strings are bytes. Regular expressions are RE2's, on UTF-8, in TensorFlow and in Arrow alike.
"""

from __future__ import annotations

from typing import Sequence, Union

import numpy
import pyarrow.compute
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import trimming
from semisync.common.errors import BadInput, UsageError


def string_join(inputs: Sequence[Strings], separator: str = "") -> Strings:
    """TensorFlow's StringJoin: the strings side by side; a scalar goes with every string."""
    shapes = {part.shape for part in inputs if part.ndim}
    if not inputs or len(shapes) > 1:
        raise BadInput(f"strings of shapes {sorted(shapes)} cannot be joined side by side")
    shape = shapes.pop() if shapes else ()
    # Arrow joins a scalar with every row.
    columns = [part.arrow() if part.shape == shape else part.arrow()[0] for part in inputs]
    between = pyarrow.scalar(separator.encode("utf-8"), pyarrow.large_binary())
    return Strings.of(pyarrow.compute.binary_join_element_wise(*columns, between), shape)


def string_length(strings: Strings, unit: str = "BYTE") -> torch.Tensor:
    """TensorFlow's StringLength, int32, in bytes or, unit UTF8_CHAR, in characters."""
    if unit == "BYTE":
        lengths = strings.offsets[1:] - strings.offsets[:-1]
    elif unit == "UTF8_CHAR":
        lengths = trimming.characters(strings.data, strings.offsets)
    else:
        raise UsageError(f"the unit of a length is BYTE or UTF8_CHAR, not {unit!r}")
    return torch.from_numpy(lengths.astype(numpy.int32)).reshape(strings.shape)


def substr(
    strings: Strings,
    pos: Union[int, torch.Tensor],
    length: Union[int, torch.Tensor],
    unit: str = "BYTE",
) -> Strings:
    """TensorFlow's Substr in bytes: from `pos`, from the end if negative, at most `length`."""
    if unit != "BYTE":
        raise UsageError(f"pieces of strings in units of {unit} are not supported, only BYTE")
    begin, size = torch.as_tensor(pos), torch.as_tensor(length)
    shape = numpy.broadcast_shapes(strings.shape, begin.shape, size.shape)
    if shape != strings.shape:
        strings = strings.broadcast_to(shape)
    starts, ends = strings.offsets[:-1], strings.offsets[1:]
    first = numpy.broadcast_to(begin.numpy(), shape).reshape(-1).astype(numpy.int64)
    # Positions in `data`, as the bounds are.
    first = first + numpy.where(first < 0, ends, starts)
    if ((first < starts) | (first > ends)).any():
        raise BadInput(f"a piece of a string begins at {pos}, beyond the string's end")
    most = numpy.broadcast_to(size.numpy(), shape).reshape(-1).astype(numpy.int64)
    last = numpy.where((most < 0) | (most > ends - first), ends, first + most)
    return Strings.of_spans(strings.data, first, last, shape)


def string_strip(strings: Strings) -> Strings:
    """TensorFlow's StringStrip: without ASCII white space at both ends."""
    starts, ends = trimming.stripped(strings.data, strings.offsets)
    return Strings.of_spans(strings.data, starts, ends, strings.shape)


def string_lower(strings: Strings, encoding: str = "") -> Strings:
    """TensorFlow's StringLower of ASCII letters."""
    return _with_case(strings, encoding, pyarrow.compute.ascii_lower)


def string_upper(strings: Strings, encoding: str = "") -> Strings:
    """TensorFlow's StringUpper of ASCII letters."""
    return _with_case(strings, encoding, pyarrow.compute.ascii_upper)


def _with_case(strings: Strings, encoding: str, change: object) -> Strings:
    if encoding:
        raise UsageError(f"letter case in {encoding} is not supported, only that of ASCII")
    data = strings.data[strings.offsets[0] : strings.offsets[-1]]
    # One long text: the case of ASCII changes no length, so the offsets stay valid.
    changed = change(_one_text(data))  # type: ignore[operator]
    buffer = changed.buffers()[2]
    moved = numpy.frombuffer(buffer, numpy.uint8) if buffer is not None else data
    return Strings(moved, strings.offsets - strings.offsets[0], strings.shape)


def _one_text(data: numpy.ndarray) -> pyarrow.Array:
    """All bytes as one text, whose ASCII letters stay where they are."""
    return Strings(data, numpy.array([0, len(data)])).text()


def regex_full_match(strings: Strings, pattern: str) -> torch.Tensor:
    """TensorFlow's RegexFullMatch: whether the whole string matches; bool."""
    # Arrow searches anywhere; the group keeps the anchors outside of the pattern's alternatives.
    whole = rf"\A(?:{pattern})\z"
    matched = _searched(pyarrow.compute.match_substring_regex, strings, whole)
    return torch.from_numpy(matched.to_numpy(zero_copy_only=False)).reshape(strings.shape)


def regex_replace(
    strings: Strings, pattern: str, rewrite: str, replace_global: bool = True
) -> Strings:
    """TensorFlow's RegexReplace; the rewrite refers to groups as \\1."""
    replace = pyarrow.compute.replace_substring_regex
    most = None if replace_global else 1
    changed = _searched(replace, strings, pattern, replacement=rewrite, max_replacements=most)
    return Strings.of(changed, strings.shape)


def _searched(search: object, strings: Strings, pattern: str, **options: object) -> pyarrow.Array:
    try:
        return search(strings.text(), pattern=pattern, **options)  # type: ignore[operator]
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"regular expression {pattern!r}: {error}") from error
