"""Picking and placing by index: gather, scatter, unique values, partitions, beams, boxes.

An index out of range, negative ones included, is an error, as in TensorFlow on a CPU.
"""

from __future__ import annotations

from typing import Union

from migrate.model.ops.arguments import index_type, normal, number, sizes, stacked
from migrate.model.ops.values import STRINGS, Call, Many, Ops, literal


def gather(call: Call) -> str:
    """`x.index_select(1, i)`, `F.embedding(i, x)`, `x[3]`; of a variable `runtime.rows(x, i)`"""
    axis = number(call[2]) if len(call) > 2 else "0"
    batch = call.integer("batch_dims")
    text, indices = call[0].tensor, call[1]
    more = "" if axis == "0" else f", {axis}"
    if call[0].kind == STRINGS or batch or not axis.lstrip("-").isdecimal():
        more += f", batch_dims={batch}" if batch else ""
        return f"runtime.gather({text}, {indices.tensor}{more})"
    place = normal(int(axis), call[0].rank)
    if place == 0 and call[0].is_variable:
        return f"runtime.rows({text}, {indices.tensor})"
    # A negative index counts from the end in torch, and is an error in TensorFlow.
    known = indices.constant if indices.is_literal else None
    if known is not None and known.item() >= 0:
        return f"{text}[{indices}]" if place == 0 else f"{text}.select({place}, {indices})"
    if indices.rank == 1:
        return f"{text}.index_select({place}, {indices.tensor})"
    if place == 0 and call[0].rank == 2:
        return f"F.embedding({indices.tensor}, {text})"
    return f"runtime.gather({text}, {indices.tensor}{more})"


def scatter(call: Call) -> str:
    """`runtime.scatter_nd(indices, updates, shape)`; what meets is added"""
    return f"runtime.scatter_nd({call[0].tensor}, {call[1].tensor}, {sizes(call[2])})"


def unique(call: Call) -> Many:
    """`runtime.unique(x)`: values in the order of their first occurrence, and indices into them"""
    # UniqueV2 takes an axis, which makes no difference for a vector.
    if call.node.op.endswith("V2") and call[0].rank != 1:
        raise call.refusal("it looks for equal slices of a tensor that may not be a vector")
    counts = "WithCounts" in call.node.op
    more = ", counts=True" if counts else ""
    if call.dtype("out_idx", "int32") == "int64":
        more += ', dtype="int64"'
    return Many(f"runtime.unique({call[0].tensor}{more})", 3 if counts else 2)


def list_diff(call: Call) -> Many:
    """`runtime.list_diff(x, y)`: what is in x and not in y, and where"""
    more = ', dtype="int64"' if call.dtype("out_idx", "int32") == "int64" else ""
    return Many(f"runtime.list_diff({call[0].tensor}, {call[1].tensor}{more})", 2)


def partition(call: Call) -> Many:
    """`runtime.dynamic_partition(x, partitions, 2)`"""
    count = call.integer("num_partitions")
    written = f"runtime.dynamic_partition({call[0].tensor}, {call[1].tensor}, {count})"
    return Many(written, count)


def stitch(call: Call) -> str:
    """`runtime.dynamic_stitch([i, j], [x, y])`"""
    half = len(call) // 2
    return f"runtime.dynamic_stitch({stacked(call.args[:half])}, {stacked(call.args[half:])})"


def inverse(call: Call) -> str:
    """`x.argsort().int()`"""
    return f"{call[0].tensor}.argsort(){index_type(call, 'T', 'int32')}"


def search(call: Call) -> str:
    """`torch.searchsorted(x, values, out_int32=True)`"""
    more = "" if call.dtype("out_type", "int32") == "int64" else ", out_int32=True"
    more += ", right=True" if call.node.op == "UpperBound" else ""
    # torch warns if the values are not contiguous.
    return f"torch.searchsorted({call[0].tensor}, {call[1].tensor}.contiguous(){more})"


def accidental_hits(call: Call) -> Many:
    """`runtime.accidental_hits(classes, sampled)`: (rows, columns, weights) of sampled classes that
    are the row's own"""
    return Many(f"runtime.accidental_hits({call[0].tensor}, {call[1].tensor})", 3)


def suppression(call: Call) -> Union[str, Many]:
    """`runtime.non_max_suppression(boxes, scores, 10, 0.5)`"""
    count = number(call[2])
    # The first versions have the bounds as attributes, later ones as inputs.
    if len(call) == 3:
        bounds = [literal(call.number("iou_threshold", 0.5))]
    else:
        bounds = [
            number(value) if value.constant is None else literal(value.constant[()])
            for value in call.args[3:5]
        ]
    given = ", ".join([call[0].tensor, call[1].tensor, count, *bounds])
    chosen = f"runtime.non_max_suppression({given})"
    if call.node.op != "NonMaxSuppressionV4":
        return chosen
    pad = call.flag("pad_to_max_output_size")
    return Many(f"runtime.padded_suppression({chosen}, {count}, {pad})", 2)


OPS: Ops = {
    "ComputeAccidentalHits": accidental_hits,
    "DynamicPartition": partition,
    "DynamicStitch": stitch,
    "Gather": gather,
    "GatherNd": "runtime.gather_nd({0:t}, {1:t})",
    "GatherTree": "runtime.gather_tree({0:t}, {1:t}, {2:t}, {3:n})",
    "GatherV2": gather,
    "InvertPermutation": inverse,
    "ListDiff": list_diff,
    "LowerBound": search,
    "NonMaxSuppression": suppression,
    "NonMaxSuppressionV2": suppression,
    "NonMaxSuppressionV3": suppression,
    "NonMaxSuppressionV4": suppression,
    "ParallelDynamicStitch": stitch,
    "ResourceGather": gather,
    "ResourceGatherNd": "runtime.gather_nd({0:t}, {1:t})",
    "ScatterNd": scatter,
    "TensorScatterAdd": "runtime.tensor_scatter_add({0:t}, {1:t}, {2:t})",
    "TensorScatterUpdate": "runtime.tensor_scatter_update({0:t}, {1:t}, {2:t})",
    "Unique": unique,
    "UniqueV2": unique,
    "UniqueWithCounts": unique,
    "UniqueWithCountsV2": unique,
    "UpperBound": search,
    "Where": "{0:t}.nonzero()",
}
