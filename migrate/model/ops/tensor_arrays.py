"""TensorArrays and TensorLists, which loops fill: Python lists of tensors.

TensorFlow orders the ops on a TensorArray by its `flow`, those on a TensorList by the list itself:
this edge carries the Python list, and an op that changes it returns a new one. The handle of a
TensorArray carries nothing.
"""

from __future__ import annotations

from typing import Optional

from migrate.graph import attributes
from migrate.graph.attributes import Shape
from migrate.model.ops.arguments import number, sizes
from migrate.model.ops.values import Call, Host, Many, Ops, torch_type


def array(call: Call) -> Many:
    """`(None, [None] * 10)`: no handle, and the list"""
    return Many(f"(None, [None] * {number(call[0])})", 2)


def gather(call: Call) -> str:
    """`runtime.gather_list(x, indices)`"""
    return f"runtime.gather_list({call[2]}, {sizes(call[1])}{_of_nothing(call)})"


def concat(call: Call) -> Many:
    """`runtime.concat_list(x)`: the rows of all, and how many each had"""
    return Many(f"runtime.concat_list({call[1]})", 2)


def stack(call: Call) -> str:
    """`runtime.stack_list(x)`"""
    shape = _known(call, 1)
    dtype = call.dtype("element_dtype")
    more = "" if shape is None else f", {sizes(call[1])}, dtype={torch_type(dtype)}"
    return f"runtime.stack_list({call[0]}{more})"


def gather_items(call: Call) -> str:
    """`runtime.gather_list(x, indices)`"""
    dtype = call.dtype("element_dtype")
    more = "" if _known(call, 2) is None else f", {sizes(call[2])}, dtype={torch_type(dtype)}"
    return f"runtime.gather_list({call[0]}, {sizes(call[1])}{more})"


def pop(call: Call) -> Many:
    """`(x[:-1], x[-1])`"""
    return Many(f"({call[0]}[:-1], {call[0]}[-1])", 2)


def concat_items(call: Call) -> Many:
    """`runtime.concat_list(x)`: the rows of all, and how many each had"""
    return Many(f"runtime.concat_list({call[0]})", 2)


def scatter_items(call: Call) -> str:
    """`runtime.scatter_list([None] * 10, indices, values)`"""
    count = number(call[3]) if len(call) > 3 else "0"
    # -1: as many elements as the largest index requires.
    start = "[]" if count in ("0", "-1") else f"[None] * {count}"
    return f"runtime.scatter_list({start}, {sizes(call[1])}, {call[0].tensor})"


def _known(call: Call, position: int) -> Optional[list]:
    """The shape of an element, where it is a constant and complete."""
    known = call[position].constant
    # A scalar -1 is an unknown rank, a -1 among sizes an unknown size.
    if known is None or not known.ndim or (known < 0).any():
        return None
    return known.tolist()


def _of_nothing(call: Call) -> str:
    """The shape and the type of an element, for an empty list."""
    listed = attributes.shapes(call.graph, call.node, "element_shape")
    shape: Shape = listed[0] if listed else None
    if shape is None or None in shape:
        return ""
    return f", {tuple(shape)}, dtype={torch_type(call.dtype('dtype'))}"


OPS: Ops = {
    "EmptyTensorList": "[]",
    "TensorArrayConcatV3": concat,
    "TensorArrayGatherV3": gather,
    "TensorArrayReadV3": "runtime.read_list({2}, {1:n})",
    "TensorArrayScatterV3": "runtime.scatter_list({3}, {1:s}, {2:t})",
    "TensorArraySizeV3": Host("len({1})", ()),
    "TensorArraySplitV3": "runtime.split_list({1:t}, {2:s})",
    "TensorArrayV3": array,
    "TensorArrayWriteV3": "runtime.write_list({3}, {1:n}, {2:t})",
    "TensorListConcat": concat_items,
    "TensorListConcatV2": concat_items,
    "TensorListFromTensor": "runtime.unbind({0:t}, 0)",
    "TensorListGather": gather_items,
    "TensorListGetItem": "runtime.read_list({0}, {1:n})",
    "TensorListLength": Host("len({0})", ()),
    "TensorListPopBack": pop,
    "TensorListPushBack": "[*{0}, {1:t}]",
    "TensorListReserve": "[None] * {1:n}",
    "TensorListResize": "runtime.resize_list({0}, {1:n})",
    "TensorListScatter": scatter_items,
    "TensorListScatterV2": scatter_items,
    "TensorListSetItem": "runtime.write_list({0}, {1:n}, {2:t})",
    "TensorListSplit": "runtime.split_list({0:t}, {2:s})",
    "TensorListStack": stack,
}
