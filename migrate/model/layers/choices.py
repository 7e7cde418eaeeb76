"""torch.where with a number: a choice between values and a tensor filled with one number.

Select(c, Fill(Shape(x), n), x)       where(c, n, x): an identity column's default
Select(c, x, OnesLike(x) * n)         where(c, x, n): the padding of an attention

A Select of no rows has three tensors of one shape, whatever its sides are made of.
"""

from __future__ import annotations

from typing import List, Optional

import numpy

from migrate.graph.attributes import dtypes
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value, literal
from migrate.model.parameters import Parameters


def find_default(subject: Subject, node: Node) -> Optional[Layer]:
    """The choice between a number and a value that ends at `node`."""
    if node.op not in ("Select", "SelectV2"):
        return None
    for side in (1, 2):
        x = subject.beyond(node.inputs[3 - side])
        ranks = [subject.shape(edge) for edge in (node.inputs[0], x)]
        lengths = {None if one is None else len(one) for one in ranks}
        # A condition of one axis chooses rows, which torch.where does not do.
        of_rows = node.op == "Select" and (None in lengths or len(lengths) > 1)
        # SelectV2 broadcasts, so that a side of another shape would widen the result.
        like = None if node.op == "Select" else x
        number = None if of_rows else _repeated(subject, node.inputs[side], like)
        if number is not None:
            return _choice(node.inputs[0], number, x, side)
    return None


def _choice(condition: Edge, number: numpy.ndarray, x: Edge, side: int) -> Layer:
    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        sides = [literal(number), values[1].tensor]
        return f"torch.where({values[0].tensor}, {', '.join(sides if side == 1 else sides[::-1])})"

    return Layer((condition, x), write)


def _repeated(
    subject: Subject, edge: Edge, like: Optional[Edge], factors: int = 2
) -> Optional[numpy.ndarray]:
    """The number with which a tensor of the shape of `like`, or of any shape, is filled.

    Args:
        factors: how many a product has at most.
    """
    node = subject.node(edge)
    if node.op == "Mul":
        for one, other in (node.inputs, node.inputs[::-1]) if factors > 1 else ():
            number, factor = _repeated(subject, one, like, factors - 1), subject.constant(other)
            if number is not None and number == 1 and factor is not None and not factor.ndim:
                return factor
        return None
    if node.op in ("OnesLike", "ZerosLike"):
        dtype = dtypes(subject.graph, node, "T")[0]
        kind = object if dtype == "string" else dtype
        shaped, number = node, numpy.array(node.op == "OnesLike").astype(kind)
    else:
        shaped = subject.node(node.inputs[0]) if node.op == "Fill" else node
        number = subject.constant(node.inputs[1]) if shaped.op == "Shape" else None
    if number is None or number.dtype == object or number.ndim:
        return None
    return number if like is None or subject.beyond(shaped.inputs[0]) == like else None
