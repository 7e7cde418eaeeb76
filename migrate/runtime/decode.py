"""TensorFlow's DecodeCSV and DecodeRaw.

A record of CSV has one field per column. An empty field, or one that is `na_value`, takes its
column's default; a column without a default must have a value in every record.
"""

from __future__ import annotations

from typing import List, Sequence, Union

import numpy
import torch

from migrate.runtime.reading import string_to_number
from migrate.runtime.strings import Strings
from semisync.common.compiled import csv
from semisync.common.errors import BadInput, UsageError

Column = Union[torch.Tensor, Strings]

_WRONG = {
    csv.COUNT: "it has more or fewer fields than expected",
    csv.BARE_QUOTE: "a field without quotes has a quote or a line end in it",
    csv.INNER_QUOTE: "a quote within quotes must be doubled",
    csv.OPEN_QUOTE: "a field in quotes must end with a quote and a delimiter",
}


def decode_csv(
    records: Strings,
    record_defaults: Sequence[Column],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] = (),
) -> List[Column]:
    """One column per default, in the shape of `records`.

    Args:
        record_defaults: tensors or Strings of one value, or of none if the column must have
            one; their types are those of the columns.
        select_cols: the fields to take, ascending; empty: all.
    """
    if len(field_delim.encode("utf-8")) != 1:
        raise UsageError(f"the delimiter of fields is one byte, not {field_delim!r}")
    selected = numpy.array(select_cols, numpy.int64)
    ascending = (numpy.diff(selected) > 0).all()
    if len(selected) and not (ascending and len(selected) == len(record_defaults)):
        raise UsageError("select_cols has one field per column, in ascending order")
    data, ends, row, wrong = csv.fields(
        records.data,
        records.offsets,
        ord(field_delim),
        use_quote_delim,
        selected,
        len(record_defaults),
    )
    if row >= 0:
        raise BadInput(f"CSV record {row}: {_WRONG[wrong]} ({len(record_defaults)} columns)")
    return [
        _column(
            Strings.of_spans(data, ends[:, number], ends[:, number + 1]),
            default,
            na_value,
            f"CSV column {number}",
        ).reshape(records.shape)
        for number, default in enumerate(record_defaults)
    ]


def _column(fields: Strings, default: Column, na_value: str, where: str) -> Column:
    """The values of one column, int64 [n] and the like."""
    missing = fields == b""
    if na_value:
        missing |= fields == na_value
    if bool(missing.any()):
        if default.numel() != 1:
            row = int(missing.nonzero()[0, 0])
            raise BadInput(f"{where}: record {row} has no value, and the column has no default")
        # A number for string_to_number to read; the default replaces it below.
        fields = Strings.where(missing, Strings.of(b"0"), fields)
    if isinstance(default, Strings):
        return Strings.where(missing, default.reshape([1]), fields) if missing.any() else fields
    values = string_to_number(fields, default.dtype, where)
    return torch.where(missing, default.reshape(()), values) if missing.any() else values


def decode_raw(strings: Strings, out_type: torch.dtype, little_endian: bool = True) -> torch.Tensor:
    """TensorFlow's DecodeRaw: the bytes of each string as numbers, along a new last axis."""
    lengths = numpy.unique(strings.offsets[1:] - strings.offsets[:-1])
    if len(lengths) > 1:
        raise BadInput(f"strings of {lengths[0]} and {lengths[-1]} bytes do not make a tensor")
    if not little_endian and out_type.itemsize > 1:
        raise UsageError("numbers whose highest byte comes first are not supported")
    length = int(lengths[0]) if len(lengths) else 0
    if length % out_type.itemsize:
        raise BadInput(f"strings of {length} bytes are not numbers of {out_type.itemsize} bytes")
    data = strings.data[strings.offsets[0] : strings.offsets[-1]].tobytes()
    shape = (*strings.shape, length // out_type.itemsize)
    if not data:
        return torch.empty(shape, dtype=out_type)
    # A bytearray, since torch warns of memory that cannot be written to.
    return torch.frombuffer(bytearray(data), dtype=out_type).reshape(shape)
