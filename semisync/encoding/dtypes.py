"""TensorFlow's data types: their numbers in files, and their names in numpy and torch.

bfloat16 and the types of eight bits and fewer have no numpy type. Their values are read as
structured types of one unsigned field that has the type's name (`BFLOAT16`), so that arithmetic on
the bare bits fails instead of giving a wrong number. A 4-bit or 2-bit value is stored in the low
bits of a byte of its own.
Source: tensorflow/core/framework/types.proto
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

import numpy

BFLOAT16 = numpy.dtype([("bfloat16", "<u2")])


class DType(NamedTuple):
    """A type of TensorFlow's.

    Attributes:
        array: its numpy type, None if values have no fixed size or no reader.
        torch: the attribute of the torch module, None if nothing is converted to it.
    """

    name: str
    array: Optional[numpy.dtype]
    torch: Optional[str]

    @property
    def is_floating(self) -> bool:
        """Whether variables of this type are trained as an embedding may be."""
        return self.name in ("float32", "float64", "float16", "bfloat16")

    @property
    def is_integer(self) -> bool:
        """Whether its values are integers; those of the quantized types stand for real numbers."""
        return self.array is not None and self.array.kind in "iu" and self.torch is not None

    @property
    def swap(self) -> int:
        """Bytes that change their order together from one endianness to the other."""
        size = self.array.itemsize if self.array is not None else 1
        return size // 2 if self.name.startswith("complex") else size


def _same(name: str) -> DType:
    return DType(name, numpy.dtype(name).newbyteorder("<"), name)


def _bits(name: str) -> DType:
    return DType(name, numpy.dtype([(name, "u1")]), None)


DTYPES: Dict[int, DType] = {
    1: _same("float32"),
    2: _same("float64"),
    3: _same("int32"),
    4: _same("uint8"),
    5: _same("int16"),
    6: _same("int8"),
    7: DType("string", None, None),
    8: _same("complex64"),
    9: _same("int64"),
    10: _same("bool"),
    11: DType("qint8", numpy.dtype("i1"), None),
    12: DType("quint8", numpy.dtype("u1"), None),
    13: DType("qint32", numpy.dtype("<i4"), None),
    14: DType("bfloat16", BFLOAT16, "bfloat16"),
    15: DType("qint16", numpy.dtype("<i2"), None),
    16: DType("quint16", numpy.dtype("<u2"), None),
    17: _same("uint16"),
    18: _same("complex128"),
    19: _same("float16"),
    20: DType("resource", None, None),
    21: DType("variant", None, None),
    22: _same("uint32"),
    23: _same("uint64"),
    24: _bits("float8_e5m2"),
    25: _bits("float8_e4m3fn"),
    26: _bits("float8_e4m3fnuz"),
    27: _bits("float8_e4m3b11fnuz"),
    28: _bits("float8_e5m2fnuz"),
    29: _bits("int4"),
    30: _bits("uint4"),
    31: _bits("int2"),
    32: _bits("uint2"),
    33: _bits("float4_e2m1fn"),
}

BY_NAME: Dict[str, DType] = {dtype.name: dtype for dtype in DTYPES.values()}


def widened(values: numpy.ndarray) -> numpy.ndarray:
    """bfloat16 as float32; everything else as it is."""
    if values.dtype != BFLOAT16:
        return values
    # Its bits are the upper half of a float32's.
    return (values.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)


def as_rows(values: numpy.ndarray) -> numpy.ndarray:
    """`values` as rows [n, dim] of a type that can be calculated with."""
    return widened(values).reshape(len(values), -1)


def number_type(name: str) -> numpy.dtype:
    """The numpy type of data type `name`, which is known to be one of numbers."""
    array = BY_NAME[name].array
    assert array is not None, name
    return array
