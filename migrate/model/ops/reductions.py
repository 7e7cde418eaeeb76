"""Reductions along axes and of segments, running sums, the largest values.

torch sums small integers as int64; TensorFlow keeps their type, which may wrap. An empty list of
axes reduces nothing in TensorFlow, and everything in torch. A segment is the rows that share a
number; one without rows is 0, or in Unsorted ops the identity of the reduction.
"""

from __future__ import annotations

from typing import List, Optional

from migrate.model.ops.arguments import index_type, normal, number
from migrate.model.ops.values import Call, Many, Ops, by, torch_type

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PICKED = "({0:t}, {1:t}, {2:t})"  # rows that indices pick
_COUNTED = "({0:t}, {1:t}, {2:t}, {3:n})"  # the same, into so many segments


def total(call: Call) -> str:
    """`x.sum(1)`"""
    kept = "" if call.dtype("T") in _FLOATS else f"dtype={torch_type(call.dtype('T'))}"
    return _reduced(call, "sum", kept)


def mean(call: Call) -> str:
    """`x.mean(1)`; of integers the quotient without its fraction"""
    if call.dtype("T") not in _FLOATS:
        return _general(call, "mean_of_integers")
    return _reduced(call, "mean")


def product(call: Call) -> str:
    """`x.prod(1)`"""
    axes = _axes(call)
    kept = "" if call.dtype("T") in _FLOATS else f"dtype={torch_type(call.dtype('T'))}"
    # torch's prod takes one axis, or all.
    if axes is None or len(axes) > 1:
        whole = axes is not None and call[0].rank == len(axes)
        return _reduced(call, "prod", kept) if whole and not _keep(call) else _general(call, "prod")
    return _reduced(call, "prod", kept)


def top_k(call: Call) -> Many:
    """`runtime.top_k(x, k)`: values and indices; of equal values the first come first"""
    count = number(call[1]) if len(call) > 1 else str(call.integer("k"))
    indices = ', dtype="int64"' if call.dtype("index_type", "int32") == "int64" else ""
    return Many(f"runtime.top_k({call[0].tensor}, {count}{indices})", 2)


def in_top_k(call: Call) -> str:
    """`runtime.in_top_k(predictions, targets, k)`"""
    count = number(call[2]) if len(call) > 2 else str(call.integer("k"))
    return f"runtime.in_top_k({call[0].tensor}, {call[1].tensor}, {count})"


def dense_bincount(call: Call) -> str:
    """`runtime.dense_bincount(x, size, weights)`: of a vector, or of each row"""
    more = ", binary=True" if call.flag("binary_output") else ""
    given = f"{call[0].tensor}, {number(call[1])}, {call[2].tensor}"
    return f"runtime.dense_bincount({given}{more})"


def _axes(call: Call) -> Optional[List[int]]:
    """The axes, each once; None if they are computed."""
    if call[1].constant is None:
        return None
    rank = call[0].rank
    return list(dict.fromkeys(normal(axis, rank) for axis in call.integers(1)))


def _keep(call: Call) -> bool:
    return call.flag("keep_dims")


def _reduced(call: Call, method: str, more: str = "") -> str:
    """A method of the tensor, whose arguments are the axes."""
    axes = _axes(call)
    if axes is None:
        return _general(call, method)
    # No axes: TensorFlow reduces nothing, torch everything.
    if not axes and call[0].rank != 0:
        return call[0].tensor
    arguments = [] if len(axes) == call[0].rank and not _keep(call) else [_listed(axes)]
    arguments += ["keepdim=True"] if _keep(call) else []
    return f"{call[0].tensor}.{method}({', '.join([*arguments, *filter(None, [more])])})"


def _extreme(call: Call, method: str) -> str:
    axes, shape = _axes(call), call[0].shape
    if axes is None or shape is None:
        return _general(call, method)
    # torch refuses to reduce an empty axis; TensorFlow gives the lowest or highest value.
    if any(shape[axis] in (None, 0) for axis in axes):
        return _general(call, method)
    return _reduced(call, method)


def _general(call: Call, name: str) -> str:
    """A reduction over computed axes, or one for which torch has no method."""
    axes = _axes(call)
    listed = call[1].text if axes is None else "[" + ", ".join(map(str, axes)) + "]"
    keep = ", keepdim=True" if _keep(call) else ""
    function = name if name in ("mean_of_integers", "euclidean_norm") else "reduce_" + name
    return f"runtime.{function}({call[0].tensor}, {listed}{keep})"


def _listed(axes: List[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else "(" + ", ".join(map(str, axes)) + ")"


def _position(call: Call, method: str) -> str:
    axis = number(call[1]) if len(call) > 1 else "0"
    return f"{call[0].tensor}.{method}({axis})" + index_type(call, "output_type", "int64")


def _running(call: Call, method: str) -> str:
    exclusive, reverse = call.flag("exclusive"), call.flag("reverse")
    axis = number(call[1])
    if exclusive or reverse:
        more = (", exclusive=True" if exclusive else "") + (", reverse=True" if reverse else "")
        return f"runtime.{method}({call[0].tensor}, {axis}{more})"
    kept = "" if call.dtype("T") in _FLOATS else f", dtype={torch_type(call.dtype('T'))}"
    return f"{call[0].tensor}.{method}({axis}{kept})"


OPS: Ops = {
    "All": by(_reduced, "all", said="`x.all(1)`"),
    "Any": by(_reduced, "any", said="`x.any(1)`"),
    "ArgMax": by(_position, "argmax", said="`x.argmax(1)`; the first one of equal values"),
    "ArgMin": by(_position, "argmin", said="`x.argmin(1)`; the first one of equal values"),
    "Bincount": "runtime.bincount({0:t}, {1:n}, {2:t})",
    "Cumprod": by(_running, "cumprod", said="`x.cumprod(1)`; also exclusive, and from the end"),
    "Cumsum": by(_running, "cumsum", said="`x.cumsum(1)`; also exclusive, and from the end"),
    "DenseBincount": dense_bincount,
    "EuclideanNorm": by(_general, "euclidean_norm", said="`torch.linalg.vector_norm(x, dim=1)`"),
    "InTopK": in_top_k,
    "InTopKV2": in_top_k,
    "L2Loss": "{0:t}.square().sum() / 2",
    "Max": by(_extreme, "amax", said="`x.amax(1)`; of nothing, the lowest value of the type"),
    "Mean": mean,
    "Min": by(_extreme, "amin", said="`x.amin(1)`; of nothing, the highest value of the type"),
    "Prod": product,
    "SegmentMax": "runtime.segment_max({0:t}, {1:t})",
    "SegmentMean": "runtime.segment_mean({0:t}, {1:t})",
    "SegmentMin": "runtime.segment_min({0:t}, {1:t})",
    "SegmentProd": "runtime.segment_prod({0:t}, {1:t})",
    "SegmentSum": "runtime.segment_sum({0:t}, {1:t})",
    "SparseSegmentMean": "runtime.sparse_segment_mean" + _PICKED,
    "SparseSegmentMeanWithNumSegments": "runtime.sparse_segment_mean" + _COUNTED,
    "SparseSegmentSqrtN": "runtime.sparse_segment_sqrt_n" + _PICKED,
    "SparseSegmentSqrtNWithNumSegments": "runtime.sparse_segment_sqrt_n" + _COUNTED,
    "SparseSegmentSum": "runtime.sparse_segment_sum" + _PICKED,
    "SparseSegmentSumWithNumSegments": "runtime.sparse_segment_sum" + _COUNTED,
    "Sum": total,
    "TopKV2": top_k,
    "UnsortedSegmentMax": "runtime.unsorted_segment_max({0:t}, {1:t}, {2:n})",
    "UnsortedSegmentMin": "runtime.unsorted_segment_min({0:t}, {1:t}, {2:n})",
    "UnsortedSegmentProd": "runtime.unsorted_segment_prod({0:t}, {1:t}, {2:n})",
    "UnsortedSegmentSum": "runtime.unsorted_segment_sum({0:t}, {1:t}, {2:n})",
}
