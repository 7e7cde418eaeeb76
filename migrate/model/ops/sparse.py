"""Sparse and ragged tensors, each several values; and lookup tables: vocabularies.

Of a sparse tensor they are its indices [n, rank], values [n] and dense_shape [rank], of a ragged
one its values and the splits of its rows.
"""

from __future__ import annotations

from typing import Callable

from migrate.graph import attributes
from migrate.model.ops.arguments import plain, stacked
from migrate.model.ops.arithmetic import quotient
from migrate.model.ops.values import STRINGS, Call, Many, Ops

LOOKUP_TABLES: Ops = {
    "LookupTableFind": "{0}.find({1:t}, {2})",
    "LookupTableFindV2": "{0}.find({1:t}, {2})",
    "LookupTableSize": "torch.tensor(len({0}))",
    "LookupTableSizeV2": "torch.tensor(len({0}))",
}


def to_dense(call: Call) -> str:
    """`runtime.sparse_to_dense(indices, shape, values, default)`"""
    given = ", ".join(plain(value) for value in call.args)
    more = "" if call.flag("validate_indices", True) else ", validate=False"
    return f"runtime.sparse_to_dense({given}{more})"


def matmul(call: Call) -> str:
    """`runtime.sparse_matmul(indices, values, shape, y)`"""
    given = ", ".join(plain(value) for value in call.args)
    names = ("adjoint_a", "adjoint_b")
    more = "".join(f", {name}=True" for name in names if call.flag(name))
    return f"runtime.sparse_matmul({given}{more})"


def divide_by_dense(call: Call) -> str:
    """`values / runtime.dense_at(indices, shape, y)`; of integers without the fraction"""
    indices, values, shape, dense = (value.tensor for value in call.args)
    return quotient(call, values, f"runtime.dense_at({indices}, {shape}, {dense})")


def concat(call: Call) -> Many:
    """`runtime.sparse_concat([i, j], [x, y], [shape, shape], 1)`"""
    count = call.integer("N")
    lists = [call.args[first : first + count] for first in (0, count, 2 * count)]
    given = ", ".join(stacked(values) for values in lists)
    return Many(f"runtime.sparse_concat({given}, {call.integer('concat_dim')})", 3)


def split(call: Call) -> Many:
    """`runtime.sparse_split(axis, indices, values, shape, 2)`"""
    count = call.integer("num_split")
    given = ", ".join(plain(value) for value in call.args)
    return Many(f"runtime.sparse_split({given}, {count})", 3 * count)


def parts(call: Call) -> Many:
    """`x`: the three parts, which a feature that a data set delivers already has"""
    if call.dtype("dtype") == "string":
        text = call[0].text
        return Many(f"({text}[0], runtime.Strings.of({text}[1]), {text}[2])", 3)
    return Many(call[0].text, 3)


def reduction(name: str) -> Callable[[Call], str]:
    """A reduction to a dense tensor."""

    def write(call: Call) -> str:
        given = ", ".join(plain(value) for value in call.args)
        more = ", keepdim=True" if call.flag("keep_dims") else ""
        return f"runtime.{name}({given}{more})"

    write.__doc__ = f"`runtime.{name}(indices, values, shape, axes)`"
    return write


def sets(name: str, parts: str) -> Callable[[Call], Many]:
    """An operation of two sets per row."""

    def write(call: Call) -> Many:
        if call.dtype("T") == "string":
            raise call.refusal("it is of sets of strings")
        operation = call.text("set_operation")
        given = ", ".join(plain(value) for value in call.args)
        return Many(f"runtime.{name}({given}, {operation!r})", 3)

    write.__doc__ = f"`runtime.{name}({parts}, 'union')`: of integers"
    return write


def several(name: str, count: int, parts: str) -> Callable[[Call], Many]:
    """A function that returns several values."""

    def write(call: Call) -> Many:
        return Many(f"runtime.{name}({', '.join(plain(value) for value in call.args)})", count)

    write.__doc__ = f"`runtime.{name}({parts})`"
    return write


OPS: Ops = {
    "DenseToDenseSetOperation": sets("dense_sets", "x, y"),
    "DenseToSparseSetOperation": sets("dense_and_sparse_sets", "x, indices, values, shape"),
    "DeserializeSparse": parts,
    "SparseAdd": several("sparse_add", 3, "indices, values, shape, indices, values, shape, least"),
    "SparseConcat": concat,
    "SparseDenseCwiseAdd": "{1:t} + runtime.dense_at({0:t}, {2:t}, {3:t})",
    "SparseDenseCwiseDiv": divide_by_dense,
    "SparseDenseCwiseMul": "{1:t} * runtime.dense_at({0:t}, {2:t}, {3:t})",
    "SparseFillEmptyRows": several("sparse_fill_empty_rows", 4, "indices, values, shape, default"),
    "SparseReduceMax": reduction("sparse_reduce_max"),
    "SparseReduceSum": reduction("sparse_reduce_sum"),
    "SparseReorder": several("sparse_reorder", 2, "indices, values, shape"),
    "SparseReshape": several("sparse_reshape", 2, "indices, shape, new_shape"),
    "SparseSlice": several("sparse_slice", 3, "indices, values, shape, start, size"),
    "SparseSoftmax": "runtime.sparse_softmax({0:t}, {1:t}, {2:t})",
    "SparseSplit": split,
    "SparseTensorDenseAdd": "runtime.tensor_scatter_add({3:t}, {0:t}, {1:t})",
    "SparseTensorDenseMatMul": matmul,
    "SparseToDense": to_dense,
    "SparseToSparseSetOperation": sets(
        "sparse_sets", "indices, values, shape, indices, values, shape"
    ),
}


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


def ragged_to_dense(call: Call) -> str:
    """`runtime.ragged_to_dense(shape, values, default, [splits], ["ROW_SPLITS"])`"""
    kinds = attributes.strings(call.graph, call.node, "row_partition_types")
    default = call[2].tensor if call[2].kind == STRINGS else plain(call[2])
    given = f"{plain(call[0])}, {call[1].tensor}, {default}, {stacked(call.args[3:])}"
    return f"runtime.ragged_to_dense({given}, {kinds!r})"


RAGGED: Ops = {
    "RaggedGather": gather,
    "RaggedRange": ranges,
    "RaggedTensorToSparse": to_sparse,
    "RaggedTensorToTensor": ragged_to_dense,
}
