"""A batch as the inputs of a converted model: the raw features under the names in its INPUTS.

    convert = inputs_of(model.INPUTS)
    data = open_data("log/day=01", schema, 512, last="pad", convert=convert)
    for batch in data:
        logits = module(batch.inputs)

A column of kind ids goes to a sparse input as it is, and to a dense one where every row has as many
ids as the input takes; strings likewise. Dense columns go to inputs of numbers, `numbers` to sparse
ones. Columns without an input are left in `columns`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

import numpy
import pyarrow as pa

from migrate.data.order.position import Position
from migrate.data.rows import Rows, lists_of
from migrate.runtime import columns as of_columns
from migrate.runtime.columns import Input
from semisync.common.errors import BadInput, UsageError


class InputBatch(NamedTuple):
    """One rank's part of a global batch.

    inputs: what the module's `forward` takes. columns: a pyarrow.RecordBatch of all columns, labels
    and keys among them. position: as of a `Batch`.

    It has as many rows as there are, also where a `Batch` would be padded.
    """

    inputs: Dict[str, Any]
    columns: Any
    position: Position


def inputs_of(
    inputs: Mapping[str, Input], columns: Optional[Mapping[str, str]] = None
) -> Callable[[Rows], InputBatch]:
    """For `open_data(convert=...)`: makes what a converted model takes.

    inputs: INPUTS of its model.py. columns: the column of an input, where it has another name.

    Raises:
        UsageError: `columns` names something that no input has. The function raises BadInput for an
            input without a column, unless it is optional, and for a column that does not fit it.
    """
    renamed = dict(columns or {})
    for name in renamed:
        if name not in inputs:
            raise UsageError(f"there is no input {name!r}; the model has: {', '.join(inputs)}")

    def convert(rows: Rows) -> InputBatch:
        found = {}
        present = rows.columns.schema.names
        for name, wanted in inputs.items():
            column = renamed.get(name, name)
            if column in present:
                found[name] = input_of(name, wanted, rows.columns[column])
            elif not wanted.optional or name in renamed:
                raise BadInput(
                    f"the input {name!r} has no column {column!r}; the schema has: "
                    f"{', '.join(present)}"
                )
        return InputBatch(found, rows.columns, rows.position)

    return convert


def input_of(name: str, wanted: Input, array: Any) -> Any:
    """One input of a module, of a column as `Rows` has it; BadInput where it does not fit."""
    if not pa.types.is_list(array.type):
        if wanted.sparse:
            values = array if _is_text(array.type) else array.to_numpy()
            return of_columns.sparse(name, wanted, values, numpy.ones(len(array), numpy.int64))
        return of_columns.dense(name, wanted, _dense(array))
    offsets, values = lists_of(array)
    if pa.types.is_struct(values.type):
        raise BadInput(
            f"the input {name!r} has a column of weighted ids; a model takes ids and weights as "
            "two inputs: give them as two columns, of the kinds ids and numbers"
        )
    lengths = numpy.diff(offsets).astype(numpy.int64)
    flat = values if _is_text(values.type) else values.to_numpy()
    if wanted.sparse:
        return of_columns.sparse(name, wanted, flat, lengths)
    width = int(lengths[0]) if len(lengths) else 1
    if not width or (lengths != width).any():
        raise BadInput(
            f"the input {name!r} takes as many values in every row, but its column has "
            f"{lengths.min()} to {lengths.max()}"
        )
    if isinstance(flat, numpy.ndarray):
        one = wanted.shape is not None and len(wanted.shape) == 1 and width == 1
        return of_columns.dense(name, wanted, flat if one else flat.reshape(-1, width))
    return of_columns.dense(name, wanted, pa.FixedSizeListArray.from_arrays(flat, width))


def _dense(array: Any) -> Any:
    if pa.types.is_fixed_size_list(array.type):
        return array.flatten().to_numpy().reshape(-1, array.type.list_size)
    return array if _is_text(array.type) else array.to_numpy()


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
