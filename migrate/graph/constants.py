"""The values of constants in a graph, and of numbers that are computed from constants alone.

A hyperparameter is a constant, or some arithmetic on constants: TensorFlow 2's Ftrl, for one, gives
its training op l2 + beta / (2 learning_rate).
"""

from __future__ import annotations

import itertools
import operator
from typing import Callable, Collection, Dict, List, Optional, Sequence

import numpy

from graph_rewrite.graph.ops import CAST, PASS
from migrate.encoding.wire import text
from migrate.graph.attributes import output_dtype
from migrate.graph.metagraph import Graph
from migrate.graph.tensors import constant_array, is_spread
from semisync.common.walks import in_order

_ARITHMETIC: Dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Maximum": max,
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Sub": operator.sub,
}
_ROUNDING = 1e-6  # rounding error of the sum of two float32 constants
_MOST_INTEGERS = 1 << 16  # a constant is evaluated only if it holds one value
_MOST_NODES = 64  # how deep the arithmetic between a hyperparameter and its constants may be


def make_one(one: Optional[float], other: Optional[float]) -> bool:
    """Whether two numbers are known and add up to 1, but for the rounding of float32."""
    return one is not None and other is not None and abs(one + other - 1) < _ROUNDING


def constant(graph: Graph, name: str) -> Optional[float]:
    """The number that node `name` computes; None if it depends on more than constants."""
    known: Dict[str, Optional[float]] = {}
    order = itertools.islice(in_order([name], lambda one: _operands(graph, one)), _MOST_NODES)
    for one in order:
        operands = [known.get(source) for source in _operands(graph, one)]
        if not operands:
            known[one] = constant_float(graph, one)
        elif None not in operands:
            known[one] = _computed(graph.nodes[one].op, [n for n in operands if n is not None])
    return known.get(name)


def _operands(graph: Graph, name: str) -> List[str]:
    """The nodes of a node's operands; none if its op is not one that can be evaluated."""
    node = graph.nodes.get(name)
    if node is None:
        return []
    if node.op in PASS | CAST:
        return [source for source, _ in node.inputs[:1]]
    known = node.op in _ARITHMETIC and len(node.inputs) == 2
    return [source for source, _ in node.inputs] if known else []


def _computed(op: str, numbers: Sequence[float]) -> Optional[float]:
    if op in PASS | CAST:
        return numbers[0]
    return None if op == "RealDiv" and not numbers[1] else _ARITHMETIC[op](*numbers)


def constant_strings(graph: Graph, name: str, count: int) -> Optional[List[str]]:
    """The first `count` values of the string constant `name`; None if it is not one."""
    array = _constant(graph, name, ("string",))
    if array is None or not array.size:
        return None
    strings = [text(memoryview(value), graph.path) for value in array.reshape(-1)[:count]]
    return (strings + strings[-1:] * count)[:count]


def constant_integers(graph: Graph, name: str) -> Optional[List[int]]:
    """The values of the integer constant `name`; None if it is not one."""
    array = _constant(graph, name, ("int32", "int64"))
    if array is None or (is_spread(array) and array.size > _MOST_INTEGERS):
        return None
    return array.reshape(-1).tolist()


def constant_integer(graph: Graph, name: str) -> Optional[int]:
    """The one value of the integer constant `name`; None if it is not one, or has several."""
    values = constant_integers(graph, name)
    return None if values is None or len(values) != 1 else values[0]


def constant_float(graph: Graph, name: str) -> Optional[float]:
    """The value of the float32 or float64 scalar constant `name`; None if it is not one."""
    array = _constant(graph, name, ("float32", "float64"))
    if array is None or array.ndim:
        return None
    # 0.05 rather than 0.05000000074505806: the shortest number that is the same float32
    return float(str(array[()]))


def _constant(graph: Graph, name: str, kinds: Collection[str]) -> Optional[numpy.ndarray]:
    """The value of the constant `name`; None if it is not one, or of another type."""
    node = graph.nodes.get(name)
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    return constant_array(graph, node) if output_dtype(graph, node) in kinds else None
