"""The values of constants in a graph, as arrays.

    AttrValue     {8 tensor}
    TensorProto   {1 dtype, 2 shape, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val,
                   8 string_val, 9 scomplex_val, 10 int64_val, 11 bool_val, 13 half_val,
                   16 uint32_val, 17 uint64_val}

The values are in `tensor_content`, as they lie in memory, or in the list of their type, whose last
value repeats for all that are missing; an empty list means zeros. If one value fills the whole
shape, the array is a view of that value and takes no memory, see `is_spread`.
Source: tensorflow/core/framework/tensor.proto and tensor_util.MakeNdarray
"""

from __future__ import annotations

import math
from typing import Dict, List, Optional

import numpy

from migrate.graph.attributes import shape_of
from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BFLOAT16, DTYPES, widened
from semisync.encoding.wire import Value, fields, message, number, numbers

# The size of a constant whose last value repeats: per value in the file, or in all if more.
_MOST_EACH, _MOST_FEW = 1 << 10, 1 << 14
_MOST_VALUES = 1 << 58  # the most that an array can index
_FIXED = {5: "<f4", 6: "<f8"}  # lists of little-endian numbers, by their field
_VARINTS = {7, 10, 11, 13, 16, 17}
_STRINGS = 8


def constant_array(graph: Graph, node: Node) -> numpy.ndarray:
    """The value of a Const node: an array of its type, of objects (bytes) for strings.

    Raises:
        BadInput: it is damaged, or of a type whose values are not numbers or strings.
    """
    attribute = dict(fields(memoryview(node.attrs.get("value", b"")), graph.path))
    if 8 not in attribute:
        raise BadInput(f"{graph.path}: the constant {node.name!r} has no value; it is damaged")
    return _array(message(attribute[8], graph.path), node.name, graph.path)


def _array(tensor: memoryview, name: str, path: str) -> numpy.ndarray:
    parts: Dict[int, List[Value]] = {}
    for field, value in fields(tensor, path):
        parts.setdefault(field, []).append(value)
    shape = shape_of(message(parts.get(2, [memoryview(b"")])[0], path), path)
    dtype = DTYPES.get(number(parts.get(1, [0])[0], path))
    sizes = tuple(size for size in shape or () if size is not None)
    count = math.prod(sizes)
    if dtype is None or shape is None or None in shape or count > _MOST_VALUES:
        raise BadInput(f"{path}: the constant {name!r} has no known type or shape; it is damaged")
    if dtype.name == "string":
        found = [bytes(message(value, path)) for value in parts.get(_STRINGS, [])]
        return _repeated(numpy.array(found or [b""], object), count, name, path).reshape(sizes)
    # bfloat16 is stored as its 16 bits, in tensor_content and in half_val.
    array = numpy.dtype("<u2") if dtype.array == BFLOAT16 else dtype.array
    if array is None or array.fields:
        raise BadInput(f"{path}: the constant {name!r} is {dtype.name}, which is not read here")
    values = _content(parts, array, count, name, path)
    if dtype.array == BFLOAT16:
        values = widened(values.astype(array).view(BFLOAT16))
    return _repeated(values, count, name, path).reshape(sizes)


def is_spread(array: numpy.ndarray) -> bool:
    """Whether one value in the file fills the whole constant."""
    return array.size > 1 and 0 in array.strides


def _content(
    parts: Dict[int, List[Value]], array: numpy.dtype, count: int, name: str, path: str
) -> numpy.ndarray:
    """The values in the file."""
    if 4 in parts:
        content = bytes(message(parts[4][0], path))
        if len(content) != count * array.itemsize:
            raise BadInput(
                f"{path}: the constant {name!r} has {len(content)} bytes, expected "
                f"{count * array.itemsize}; it is damaged"
            )
        return numpy.frombuffer(content, array)
    values = _listed(parts, array, path)
    return numpy.zeros(1, array) if values is None else values


def _listed(
    parts: Dict[int, List[Value]], array: numpy.dtype, path: str
) -> Optional[numpy.ndarray]:
    """The values of whichever list there is, of type `array`; None if there is none."""
    for field, values in parts.items():
        if field in _FIXED:
            form = numpy.dtype(_FIXED[field])
            packed = [
                value.to_bytes(form.itemsize, "little") if isinstance(value, int) else bytes(value)
                for value in values
            ]
            data = b"".join(packed)
            # Surplus bytes are dropped; `_repeated` compares the count.
            return numpy.frombuffer(data[: len(data) // form.itemsize * form.itemsize], form)
        if field in _VARINTS:
            whole = [one for value in values for one in numbers(value, path)]
            # A negative number is a varint of 64 bits, in two's complement.
            bits = numpy.array([one & 0xFFFFFFFFFFFFFFFF for one in whole], "<u8")
            if array.kind == "f":  # half_val holds 16 bits in an int32
                return bits.astype(f"<u{array.itemsize}").view(array)
            return bits.astype(array)
    return None


def _repeated(values: numpy.ndarray, count: int, name: str, path: str) -> numpy.ndarray:
    if len(values) > max(count, 1) or not (len(values) or not count):
        raise BadInput(
            f"{path}: the constant {name!r} has {len(values)} values, expected {count}; it is "
            "damaged"
        )
    if len(values) == 1:
        # A view: its stride of 0 is how `is_spread` knows it.
        return numpy.broadcast_to(values, count)
    if count > max(_MOST_FEW, _MOST_EACH * len(values)):
        raise BadInput(
            f"{path}: the constant {name!r} has {len(values)} values, the last of which stands for "
            f"{count - len(values) + 1:,}; expected a constant of {_MOST_EACH} times as many values"
        )
    missing = max(count - len(values), 0)
    return numpy.concatenate([values, numpy.repeat(values[-1:], missing)])[:count]
