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

import numpy
import pyarrow as pa

from migrate.data.position import Position
from migrate.data.rows import Rows
from migrate.runtime.columns import dense, dense_alike
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
    """Makes a function for `open_data(convert=...)`, which makes a converted model's inputs.

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
        taken = {}
        present = rows.columns.schema.names
        for name, wanted in inputs.items():
            column = renamed.get(name, name)
            if column in present:
                taken[name] = column
            elif not wanted.optional or name in renamed:
                raise BadInput(
                    f"the input {name!r} has no column {column!r}; the schema has: "
                    f"{', '.join(present)}"
                )
        return InputBatch(inputs_from(rows, inputs, taken), rows.columns, rows.position)

    return convert


def inputs_from(
    rows: Rows, inputs: Mapping[str, Input], taken: Mapping[str, str]
) -> Dict[str, Any]:
    """The inputs that take a column, {name: column}; raises BadInput if one does not fit.

    Numbers of one type are copied together: of few rows a call for each column takes longer than
    the copies, and keeps the thread that trains waiting for the interpreter.
    """
    found: Dict[str, Any] = {}
    alike: Dict[Any, Dict[str, Any]] = {}
    for name, column in taken.items():
        wanted, values = inputs[name], rows.columns[column]
        plain = _as_they_are(wanted, values)
        if plain is None:
            changed = feature(values, Column(column, "a batch"), taking(column, name, wanted))
            found[name] = tensor(name, wanted, changed)
        elif isinstance(plain, numpy.ndarray) and plain.ndim == 1:
            # Those of one type and shape are stacked; a list is no key.
            sizes = wanted.shape and tuple(wanted.shape)
            alike.setdefault((wanted.dtype, sizes), {})[name] = plain
        else:
            found[name] = dense(name, wanted, plain)
    for several in alike.values():
        found.update(dense_alike(inputs[next(iter(several))], several))
    return found


def _as_they_are(wanted: Input, values: Any) -> Any:
    """The values of a column, if an input takes them unchanged, or None."""
    due, kind = _AS_THEY_ARE.get(wanted.dtype), values.type
    if wanted.sparse or values.null_count:
        return None
    if kind == due:
        return values if wanted.dtype == "string" else values.to_numpy(zero_copy_only=False)
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != due or wanted.dtype == "string":
        return None
    flat = values.flatten()
    if flat.null_count or wanted.shape is None or [*wanted.shape[1:]] != [kind.list_size]:
        return None
    return flat.to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
