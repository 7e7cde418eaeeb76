"""F.dropout: what tf.nn.dropout computes, which depends on the module's own `training`.

    2.x      where(uniform >= rate, x * (1 / (1 - rate)), 0)
    1.15     x * (1 / (1 - rate)) * cast(uniform >= rate)
    before   x / keep_prob * floor(keep_prob + uniform)

A mask that a loop applies in every round, as DropoutWrapper's variational_recurrent does, is drawn
once before it.
A graph that was built for training has it without a condition; the module drops while it trains
alone. Where the rate is fed or computed, the graph says itself when it drops, and nothing is
recognised.
Source: tensorflow/python/ops/nn_ops.py
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

from migrate.graph.lookups import ADDS
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value, literal
from migrate.model.parameters import Parameters

_RANDOM = {"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"}
_SCALES = {"Mul", "RealDiv"}


class _Mask(NamedTuple):
    """What says which values are kept.

    Attributes:
        rate: of those that are not.
        edge: what says it in the graph.
        none: its value where all are kept.
        drawn: the random values.
    """

    rate: float
    edge: Edge
    none: float
    drawn: Edge


def find_dropout(subject: Subject, node: Node) -> Optional[Layer]:
    """The dropout that ends at `node`."""
    if node.op == "Mul":
        pairs = [node.inputs, node.inputs[::-1]]
    elif node.op == "SelectV2" and _is_zero(subject, node.inputs[2]):
        pairs = [node.inputs[:2]]
    else:
        return None
    for kept, scaled in pairs:
        mask = _mask(subject, kept)
        scale = subject.node(scaled)
        if mask is None or scale.op not in _SCALES:
            continue
        for position in (0, 1):
            factor = subject.constant(scale.inputs[1 - position])
            if factor is not None and not factor.ndim:
                source, factored = scale.inputs[position], scale.inputs[1 - position]
                once = subject.rounds(mask.drawn[0]) != subject.rounds(node.name)
                return _layer(source, mask, factored, once)
    return None


def _is_zero(subject: Subject, edge: Edge) -> bool:
    value = subject.constant(edge)
    return value is not None and not value.any()


def _layer(source: Edge, mask: _Mask, factor: Edge, once: bool) -> Layer:
    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        name = "runtime.dropout_where" if once else "F.dropout"
        given = ", ".join(value.tensor for value in values)
        return f"{name}({given}, {literal(mask.rate)}, self.training)"

    off = {mask.edge: mask.none, factor: 1.0}
    return Layer((source, mask.drawn) if once else (source,), write, off=off)


def _mask(subject: Subject, edge: Edge) -> Optional[_Mask]:
    """What `edge` is as a mask; None if it is not a mask of a constant rate."""
    node = subject.node(edge)
    if node.op == "Cast":
        node = subject.node(node.inputs[0])
    if node.op == "GreaterEqual":
        rate = _uniform_and_constant(subject, node.inputs[0], node.inputs[1])
        return (
            None
            if rate is None
            else _Mask(rate, node.inputs[1], 0.0, subject.beyond(node.inputs[0]))
        )
    if node.op == "Floor":
        total = subject.node(node.inputs[0])
        if total.op in ADDS:
            for uniform, constant in (total.inputs, total.inputs[::-1]):
                keep = _uniform_and_constant(subject, uniform, constant)
                if keep is not None:
                    return _Mask(round(1 - keep, 7), constant, 1.0, subject.beyond(uniform))
    return None


def _uniform_and_constant(subject: Subject, uniform: Edge, constant: Edge) -> Optional[float]:
    node = subject.node(uniform)
    while node.op in ADDS | {"Mul"} and len(node.inputs) == 2:  # minval and maxval
        node = subject.node(node.inputs[0])
    value = subject.constant(constant)
    if node.op not in _RANDOM or value is None or value.ndim:
        return None
    return float(str(value[()]))
