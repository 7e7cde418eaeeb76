"""A batch as the inputs of a converted model: the raw features under the names in its INPUTS.

    convert = inputs_of(model.INPUTS)
    data = open_data("log/day=01", schema, 512, last="pad", convert=convert)
    for batch in data:
        logits = module(batch.inputs)

An input takes a column by the rules of `migrate.scoring.features`: a sparse one takes ids, numbers
and strings unchanged, a dense one takes them if every row has the required number. Columns without
an input are left in `columns`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

import pyarrow as pa

from migrate.data.order.position import Position
from migrate.data.rows import Rows
from migrate.runtime.columns import dense
from migrate.runtime.interface import Input
from migrate.scoring.features import feature
from migrate.scoring.model import TYPES
from migrate.scoring.module_inputs import taking, tensor
from parity.inputs.checks import Column
from semisync.common.errors import BadInput, UsageError

# The types of which a dense input takes each row's one value as it is.
_AS_THEY_ARE: Dict[Optional[str], Any] = {
    **{name: pa.type_for_alias(name) for name in TYPES if name != "string"},
    "string": pa.large_binary(),
}


class InputBatch(NamedTuple):
    """One rank's part of a global batch, in the form that a converted model takes.

    It has only real rows, also where a `Batch` would be padded.

    Attributes:
        inputs: the argument of the module's `forward`.
        columns: a pyarrow.RecordBatch of all columns, labels and keys among them.
        position: as of a `Batch`.

    Examples:
        >>> from migrate.data import Column, inputs_of, open_data
        >>> model = migrate.load_model("model.ckpt-40000")
        >>> schema = [Column("city", "string"), Column("item", "dense", "int64")]
        >>> convert = inputs_of(model.tensorflow_inputs)
        >>> batch = next(iter(open_data("clicks.parquet", schema, 4, last="drop", convert=convert)))
        >>> model(batch.inputs).shape, batch.columns.num_rows
        (torch.Size([4, 1]), 4)
    """

    inputs: Dict[str, Any]
    columns: Any
    position: Position


def inputs_of(
    inputs: Mapping[str, Input], columns: Optional[Mapping[str, str]] = None
) -> Callable[[Rows], InputBatch]:
    """For `open_data(convert=...)`: makes the inputs of a converted model.

    Args:
        inputs: INPUTS of its model.py, or `tensorflow_inputs` of `migrate.load_model`'s.
        columns: the column of an input, if it has another name.

    Returns:
        A function from `Rows` to an `InputBatch`. It raises BadInput for an input without a column,
        unless it is optional, and for a column that does not fit it.

    Raises:
        UsageError: `columns` names something that is not an input.

    Examples:
        >>> from migrate.data import Column, inputs_of, open_data
        >>> model = migrate.load_model("model.ckpt-40000")
        >>> convert = inputs_of(model.tensorflow_inputs, {"city": "city", "item": "item"})
        >>> schema = [Column("city", "string"), Column("item", "dense", "int64")]
        >>> data = open_data("clicks.parquet", schema, 4, last="drop", convert=convert)
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
                found[name] = input_of(name, wanted, column, rows)
            elif not wanted.optional or name in renamed:
                raise BadInput(
                    f"the input {name!r} has no column {column!r}; the schema has: "
                    f"{', '.join(present)}"
                )
        return InputBatch(found, rows.columns, rows.position)

    return convert


def input_of(name: str, wanted: Input, column: str, rows: Rows) -> Any:
    """One input of a module, from a column; raises BadInput if it does not fit."""
    values = rows.columns[column]
    if values.type == _AS_THEY_ARE.get(wanted.dtype) and not (wanted.sparse or values.null_count):
        text = wanted.dtype == "string"
        return dense(name, wanted, values if text else values.to_numpy(zero_copy_only=False))
    taken = taking(column, name, wanted)
    return tensor(name, wanted, feature(values, Column(column, "a batch"), taken))
