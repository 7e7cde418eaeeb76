"""TensorArrays and TensorLists, which loops fill: Python lists of tensors.

TensorFlow chains what happens to a TensorArray by its `flow`, to a TensorList by the list itself:
this edge carries the Python list, and an op that changes it gives a new one. The handle of a
TensorArray carries nothing.
"""

from __future__ import annotations

from typing import Callable, Dict, Optional, Union

from migrate.graph import attributes
from migrate.graph.attributes import Shape
from migrate.model.ops.arguments import number, sizes
from migrate.model.ops.values import Call, Host, Many


def array(call: Call) -> Many:
    """`(None, [None] * 10)`: no handle, and the list"""
    return Many(f"(None, [None] * {number(call[0])})", 2)


def read(call: Call) -> str:
    """`runtime.read_list(x, i)`"""
    return f"runtime.read_list({call[2]}, {number(call[1])})"


def write(call: Call) -> str:
    """`runtime.write_list(x, i, value)`"""
    return f"runtime.write_list({call[3]}, {number(call[1])}, {call[2].tensor})"


def gather(call: Call) -> str:
    """`runtime.gather_list(x, indices)`"""
    return f"runtime.gather_list({call[2]}, {sizes(call[1])}{_of_nothing(call)})"


def scatter(call: Call) -> str:
    """`runtime.scatter_list(x, indices, values)`"""
    return f"runtime.scatter_list({call[3]}, {sizes(call[1])}, {call[2].tensor})"


def concat(call: Call) -> Many:
    """`runtime.concat_list(x)`: the rows of all, and how many each had"""
    return Many(f"runtime.concat_list({call[1]})", 2)


def split(call: Call) -> str:
    """`runtime.split_list(x, lengths)`"""
    return f"runtime.split_list({call[1].tensor}, {sizes(call[2])})"


def size(call: Call) -> Host:
    """`len(x)`"""
    return Host(f"len({call[1]})", ())


def reserve(call: Call) -> str:
    """`[None] * 10`"""
    return f"[None] * {number(call[1])}"


def get_item(call: Call) -> str:
    """`runtime.read_list(x, i)`"""
    return f"runtime.read_list({call[0]}, {number(call[1])})"


def set_item(call: Call) -> str:
    """`runtime.write_list(x, i, value)`"""
    return f"runtime.write_list({call[0]}, {number(call[1])}, {call[2].tensor})"


def stack(call: Call) -> str:
    """`runtime.stack_list(x)`"""
    shape = _known(call, 1)
    dtype = call.dtype("element_dtype")
    more = "" if shape is None else f", {sizes(call[1])}, dtype=torch.{dtype}"
    return f"runtime.stack_list({call[0]}{more})"


def gather_items(call: Call) -> str:
    """`runtime.gather_list(x, indices)`"""
    dtype = call.dtype("element_dtype")
    more = "" if _known(call, 2) is None else f", {sizes(call[2])}, dtype=torch.{dtype}"
    return f"runtime.gather_list({call[0]}, {sizes(call[1])}{more})"


def length(call: Call) -> Host:
    """`len(x)`"""
    return Host(f"len({call[0]})", ())


def pop(call: Call) -> Many:
    """`(x[:-1], x[-1])`"""
    return Many(f"({call[0]}[:-1], {call[0]}[-1])", 2)


def concat_items(call: Call) -> Many:
    """`runtime.concat_list(x)`: the rows of all, and how many each had"""
    return Many(f"runtime.concat_list({call[0]})", 2)


def split_items(call: Call) -> str:
    """`runtime.split_list(x, lengths)`"""
    return f"runtime.split_list({call[0].tensor}, {sizes(call[2])})"


def scatter_items(call: Call) -> str:
    """`runtime.scatter_list([None] * 10, indices, values)`"""
    count = number(call[3]) if len(call) > 3 else "0"
    start = "[]" if count in ("0", "-1") else f"[None] * {count}"
    return f"runtime.scatter_list({start}, {sizes(call[1])}, {call[0].tensor})"


def resize(call: Call) -> str:
    """`runtime.resize_list(x, 10)`"""
    return f"runtime.resize_list({call[0]}, {number(call[1])})"


def _known(call: Call, position: int) -> Optional[list]:
    """The shape of an element, where it is a constant and complete."""
    known = call[position].constant
    if known is None or not known.ndim or (known < 0).any():
        return None
    return known.tolist()


def _of_nothing(call: Call) -> str:
    """The shape and the type of an element, for the case that there is none."""
    listed = attributes.shapes(call.graph, call.node, "element_shape")
    shape: Shape = listed[0] if listed else None
    if shape is None or None in shape:
        return ""
    return f", {tuple(shape)}, dtype=torch.{call.dtype('dtype')}"


OPS: Dict[str, Union[str, Callable[[Call], Union[str, Host, Many]]]] = {
    "EmptyTensorList": "[]",
    "TensorArrayConcatV3": concat,
    "TensorArrayGatherV3": gather,
    "TensorArrayReadV3": read,
    "TensorArrayScatterV3": scatter,
    "TensorArraySizeV3": size,
    "TensorArraySplitV3": split,
    "TensorArrayV3": array,
    "TensorArrayWriteV3": write,
    "TensorListConcat": concat_items,
    "TensorListConcatV2": concat_items,
    "TensorListFromTensor": "runtime.unbind({0:t}, 0)",
    "TensorListGather": gather_items,
    "TensorListGetItem": get_item,
    "TensorListLength": length,
    "TensorListPopBack": pop,
    "TensorListPushBack": "[*{0}, {1:t}]",
    "TensorListReserve": reserve,
    "TensorListResize": resize,
    "TensorListScatter": scatter_items,
    "TensorListScatterV2": scatter_items,
    "TensorListSetItem": set_item,
    "TensorListSplit": split_items,
    "TensorListStack": stack,
}
