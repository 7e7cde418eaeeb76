"""TensorFlow's data types: their numbers in files, and their names in numpy and torch.

bfloat16 has no numpy type. Its values are read as `BFLOAT16`, a structured type of one uint16
field, so that arithmetic on the bare bits fails instead of giving a wrong number.
Source: tensorflow/core/framework/types.proto
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

import numpy

BFLOAT16 = numpy.dtype([("bfloat16", "<u2")])


class DType(NamedTuple):
    """name: TensorFlow's; array: its numpy type, None where values have no fixed size or no
    reader; torch: the attribute of the torch module, None where torch has no such type."""

    name: str
    array: Optional[numpy.dtype]
    torch: Optional[str]

    @property
    def is_floating(self) -> bool:
        """Whether variables of this type are trained as an embedding may be."""
        return self.name in ("float32", "float64", "float16", "bfloat16")


def _same(name: str) -> DType:
    return DType(name, numpy.dtype(name).newbyteorder("<"), name)


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
    24: DType("float8_e5m2", None, None),
    25: DType("float8_e4m3fn", None, None),
    29: DType("int4", None, None),
    30: DType("uint4", None, None),
}

BY_NAME: Dict[str, DType] = {dtype.name: dtype for dtype in DTYPES.values()}
