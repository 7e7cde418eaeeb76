"""Constant folding: computing values that depend on constants alone during the conversion."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, List, Optional, Sequence

import numpy

from migrate.graph.metagraph import Edge, Graph, Node, explained
from migrate.graph.tensors import constant_array, is_spread
from migrate.model.control.order import sort
from migrate.model.ops import random, tensor_arrays
from migrate.model.ops.registry import OPS, write
from migrate.model.ops.types import output_dtype
from migrate.model.ops.values import STRINGS, TENSOR, Call, Many, Value, literal
from migrate.model.sizes import Room, TooMuch
from migrate.model.source.guard import checked_expression

RANDOM = frozenset(random.OPS)  # their values are drawn again in every call
_MAX_VALUES = 1 << 20  # of a result; a larger one is computed where the model uses it
_RESULTS = (STRINGS, TENSOR)


def fold(call: Call, room: Room, most: int = _MAX_VALUES) -> Optional[List[numpy.ndarray]]:
    """The outputs of an op whose arguments are constants, by the expression that would be emitted.

    Returns:
        None if an argument is not constant, or an output has more values than `most`.

    Raises:
        TooMuch: there is no room for its result.
    """
    if call.node.op in tensor_arrays.OPS:  # their Python lists are no constants
        return None
    if not call.args or any(arg.constant is None or arg.kind not in _RESULTS for arg in call.args):
        return None
    # A scalar stays the literal that the model would have; an array is a name in `_evaluate`.
    names = [f"x{number}" for number in range(len(call.args))]
    args = tuple(
        arg._replace(text=name) if arg.constant is not None and arg.constant.ndim else arg
        for arg, name in zip(call.args, names)
    )
    with room.of(call):
        written = write(dataclasses.replace(call, args=args))
        found = _evaluate(str(getattr(written, "text", written)), args)
    results = list(found) if isinstance(written, Many) else [found]
    types = (output_dtype(call.graph, call.node, number) for number in range(len(results)))
    arrays = [_array(result, dtype) for result, dtype in zip(results, types)]
    if any(array is None or array.size > most for array in arrays):
        return None
    return [array for array in arrays if array is not None]


class Known:
    """The values of a graph that depend on constants alone; each is computed once.

    Args:
        most: values of one.
    """

    def __init__(self, graph: Graph, most: int = _MAX_VALUES) -> None:
        self._graph, self._most, self._room = graph, most, Room()
        self._found: Dict[str, Optional[List[numpy.ndarray]]] = {}

    def value(self, edge: Edge) -> Optional[numpy.ndarray]:
        """The value of `edge`; None if it depends on more than constants."""
        if edge[0] not in self._found:
            for node in sort(self._graph, [edge[0]], _needed, self._found):
                with explained(self._graph, node):
                    self._found[node.name] = self._outputs(node)
        found = self._found[edge[0]]
        return None if found is None or edge[1] >= len(found) else found[edge[1]]

    def _outputs(self, node: Node) -> Optional[List[numpy.ndarray]]:
        if node.op == "Const":
            array = constant_array(self._graph, node)
            # The file holds one value of a spread constant: to fold it would make all of them.
            return [array] if array.size <= self._most or not is_spread(array) else None
        if not _needed(node):
            return None
        arrays = [self.value(edge) for edge in node.inputs]
        values = [_value(array) for array in arrays if array is not None]
        if len(values) < len(arrays):
            return None
        if node.op == "Identity":
            return [array for array in arrays if array is not None]
        try:
            return fold(Call(self._graph, node, tuple(values)), self._room, self._most)
        except TooMuch:
            return None


def _needed(node: Node) -> List[str]:
    """The nodes that must be known before `node` can be."""
    known = (node.op in OPS and node.op not in RANDOM) or node.op == "Identity"
    return [name for name, _ in node.inputs] if known else []


def _value(array: numpy.ndarray) -> Value:
    kind, dtype = (STRINGS, "string") if array.dtype == object else (TENSOR, array.dtype.name)
    return Value("" if array.ndim else literal(array), kind, dtype, array.shape, array)


def _evaluate(text: str, args: Sequence[Value]) -> Any:
    import torch
    from torch.nn import functional

    from migrate import runtime

    # The names that model.py imports; `checked_expression` accepts members of these alone.
    scope: Dict[str, Any] = {"F": functional, "math": math, "runtime": runtime, "torch": torch}
    for number, arg in enumerate(args):
        if arg.constant is not None and arg.constant.ndim:
            strings = arg.kind == STRINGS
            value = runtime.Strings.of(arg.constant) if strings else torch.tensor(arg.constant)
            scope[f"x{number}"] = value
    names = {f"x{number}" for number in range(len(args))}
    return eval(checked_expression(text, names), scope)


def _array(result: Any, dtype: Optional[str]) -> Optional[numpy.ndarray]:
    if isinstance(result, (int, tuple)):  # a size, as Python has it
        return numpy.array(result, dtype)
    numbers = getattr(result, "numpy", None)
    return None if numbers is None else numbers()
