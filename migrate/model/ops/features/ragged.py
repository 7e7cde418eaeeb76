"""Ragged tensors: values, and the splits of their rows, each a tensor of its own."""

from __future__ import annotations

from migrate.graph import attributes
from migrate.model.ops.arguments import plain, stacked
from migrate.model.ops.values import STRINGS, Call, Many, Ops


def ranges(call: Call) -> Many:
    """`runtime.ragged_range(starts, limits, steps)`: splits and values"""
    given = ", ".join(value.tensor for value in call.args)
    given += ', dtype="int32"' if call.dtype("Tsplits", "int64") == "int32" else ""
    return Many(f"runtime.ragged_range({given})", 2)


def gather(call: Call) -> Many:
    """`runtime.ragged_gather(splits, values, indices)`: splits and values"""
    if call.integer("PARAMS_RAGGED_RANK") != 1 or call[2].rank != 1:
        raise call.refusal("it is not known to be of one ragged axis and of a vector of rows")
    return Many(f"runtime.ragged_gather({', '.join(value.tensor for value in call.args)})", 2)


def to_sparse(call: Call) -> Many:
    """`runtime.ragged_to_sparse([splits], values)`: indices, values, shape"""
    return Many(f"runtime.ragged_to_sparse({stacked(call.args[:-1])}, {call[-1].tensor})", 3)


def to_dense(call: Call) -> str:
    """`runtime.ragged_to_dense(shape, values, default, [splits], ["ROW_SPLITS"])`"""
    kinds = attributes.strings(call.graph, call.node, "row_partition_types")
    default = call[2].tensor if call[2].kind == STRINGS else plain(call[2])
    given = f"{plain(call[0])}, {call[1].tensor}, {default}, {stacked(call.args[3:])}"
    return f"runtime.ragged_to_dense({given}, {kinds!r})"


OPS: Ops = {
    "RaggedGather": gather,
    "RaggedRange": ranges,
    "RaggedTensorToSparse": to_sparse,
    "RaggedTensorToTensor": to_dense,
}
