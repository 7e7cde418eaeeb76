"""The values of constants in a graph, and of numbers that are computed from constants alone.

    AttrValue     {8 tensor}
    TensorProto   {1 dtype, 2 shape, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val,
                   8 string_val, 10 int64_val}

A hyperparameter is a constant, or some arithmetic on constants: TensorFlow 2's Ftrl, for one, gives
its training op l2 + beta / (2 learning_rate).
Source: tensorflow/core/framework/tensor.proto
"""

from __future__ import annotations

import operator
import struct
from typing import Callable, Dict, List, Optional

import numpy

from migrate.encoding.wire import Value, fields, message, numbers, text
from migrate.graph.metagraph import Graph
from semisync.common.errors import BadInput

_FLOATS: Dict[Value, str] = {1: "<f", 2: "<d"}  # by the number of the data type
_PASS = {"Identity", "ReadVariableOp", "Cast"}
_ARITHMETIC: Dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Maximum": max,
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Sub": operator.sub,
}
_MAX_DEPTH = 16  # a damaged graph may be circular


def constant(graph: Graph, name: str, depth: int = _MAX_DEPTH) -> Optional[float]:
    """The number that node `name` computes; None if it depends on more than constants."""
    node = graph.nodes.get(name)
    if node is None or not depth:
        return None
    if node.op in _PASS and node.inputs:
        return constant(graph, node.inputs[0][0], depth - 1)
    if node.op in _ARITHMETIC and len(node.inputs) == 2:
        left, right = (constant(graph, edge[0], depth - 1) for edge in node.inputs)
        if left is None or right is None or (node.op == "RealDiv" and not right):
            return None
        return _ARITHMETIC[node.op](left, right)
    return constant_float(graph, name)


def constant_strings(graph: Graph, name: str, count: int) -> Optional[List[str]]:
    """The first `count` values of the string constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    strings = [text(value, graph.path) for field, value in fields(tensor, graph.path) if field == 8]
    if not strings:
        return None
    return (strings + strings[-1:] * count)[:count]  # a run of equal values may be stored once


def constant_integer(graph: Graph, name: str) -> Optional[int]:
    """The value of the integer scalar constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    for field, value in fields(tensor, graph.path):
        if field in (7, 10):
            integers = numbers(value, graph.path)
            return integers[0] if integers else None
        if field == 4:
            return int.from_bytes(message(value, graph.path), "little", signed=True)
    return 0


def constant_float(graph: Graph, name: str) -> Optional[float]:
    """The value of the float32 or float64 scalar constant `name`; None if it is not one."""
    tensor = _constant(graph, name)
    if tensor is None:
        return None
    parts = dict(fields(tensor, graph.path))
    shape = message(parts.get(2, memoryview(b"")), graph.path)
    if parts.get(1) not in _FLOATS or dict(fields(shape, graph.path)):
        return None
    form = _FLOATS[parts[1]]
    value = parts.get(4, parts.get(5, parts.get(6, 0)))
    if isinstance(value, int):
        data = value.to_bytes(struct.calcsize(form), "little")
    else:
        data = bytes(value)
    if len(data) != struct.calcsize(form):
        raise BadInput(f"{graph.path}: the constant {name!r} has {len(data)} bytes; it is damaged")
    value = struct.unpack(form, data)[0]
    # 0.05 rather than 0.05000000074505806: the shortest number that is the same float32
    return float(str(numpy.float32(value))) if form == "<f" else float(value)


def _constant(graph: Graph, name: str) -> Optional[memoryview]:
    node = graph.nodes.get(name)
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    for field, value in fields(memoryview(node.attrs["value"]), graph.path):
        if field == 8:
            return message(value, graph.path)
    return None
