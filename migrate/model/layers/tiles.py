"""Tile coding: a value's bucket in each of several divisions, numbered from offsets of their own.

    Concat(Reshape(Bucketize(x, b)) + n, ..)    runtime.bucketize_each(x, bs) + ns

The divisions are shifted against each other. `n` is the number of a division's first bucket.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from graph_rewrite.graph.ops import PLUS
from migrate.graph.attributes import float32s
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters


class _Division(NamedTuple):
    """The bounds of one division, and the number from which its buckets count."""

    x: Edge
    boundaries: List[float]
    first: int


def find_tiles(subject: Subject, node: Node) -> Optional[Layer]:
    """The buckets of several divisions, joined at `node`."""
    if node.op != "ConcatV2" or len(node.inputs) < 3:
        return None
    axis = subject.constant(node.inputs[-1])
    found = [_division(subject, edge) for edge in node.inputs[:-1]]
    divisions = [one for one in found if one is not None]
    sizes = {(one.x, len(one.boundaries)) for one in divisions}
    if len(divisions) < len(found) or len(sizes) > 1 or axis is None or int(axis) not in (1, -1):
        return None
    x = divisions[0].x
    shape = subject.shape(x)
    if shape is None or len(shape) != 1:
        return None
    boundaries = numpy.array([one.boundaries for one in divisions], numpy.float32)
    first = numpy.array([one.first for one in divisions], numpy.int32)

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        counted = f"runtime.bucketize_each({values[0].tensor}, {values[1].tensor})"
        return f"{counted} + {values[2].tensor}" if first.any() else counted

    constants = (("boundaries", boundaries), ("first", first))
    return Layer((x,), write, constants=constants)


def _division(subject: Subject, edge: Edge) -> Optional[_Division]:
    node, first = subject.node(edge), 0
    if node.op in PLUS:
        number = subject.constant(node.inputs[1])
        if number is None or number.ndim or number.dtype != numpy.int32:
            return None
        node, first = subject.node(node.inputs[0]), int(number)
    column = subject.shape((node.name, 0))
    if node.op not in ("ExpandDims", "Reshape") or column is None or column[1:] != (1,):
        return None
    counted = subject.node(node.inputs[0])
    if counted.op != "Bucketize":
        return None
    boundaries = float32s(subject.graph, counted, "boundaries")
    return _Division(subject.beyond(counted.inputs[0]), boundaries, first)
