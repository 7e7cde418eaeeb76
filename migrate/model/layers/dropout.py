"""tf.nn.dropout in one expression.

    2.x      where(uniform >= rate, x / (1 - rate), 0)
    1.15     x / (1 - rate) * cast(uniform >= rate)
    before   x / keep_prob * floor(keep_prob + uniform)

Here / s may be * (1 / s).

1. At a constant rate: F.dropout, which drops while the module trains. A graph that was built for
   training drops without a condition. With a noise_shape, F.dropout of ones of that shape makes the
   mask. A mask that a loop applies in every iteration, as DropoutWrapper's variational_recurrent
   does, is drawn once before it.
2. At a rate that is fed or computed the rate itself decides when to drop: the values are chosen by
   the graph's own random tensor.

Source: tensorflow/python/ops/nn_ops.py
"""

from __future__ import annotations

import math
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from graph_rewrite.graph.ops import PLUS
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Drops, Layer, Modules, Subject
from migrate.model.ops.arguments import sizes
from migrate.model.ops.values import Value, literal
from migrate.model.parameters import Parameters

_RANDOM = {"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"}
_INVERSES = {"Inv", "Reciprocal"}


class _Mask(NamedTuple):
    """The mask of the values that are kept.

    Attributes:
        share: the share of values that are dropped or, if `kept`, that of the others.
        number: the value of `share`, if that is a constant.
        drawn: the random values.
    """

    share: Edge
    kept: bool
    number: Optional[float]
    drawn: Edge

    @property
    def rate(self) -> Optional[float]:
        """The constant share of values that are dropped; None: it is fed or computed."""
        return round(1 - self.number, 7) if self.kept and self.number is not None else self.number


def find_dropout(subject: Subject, node: Node) -> Optional[Layer]:
    """The dropout that ends at `node`."""
    if node.op == "Mul":
        pairs = [node.inputs, node.inputs[::-1]]
    elif node.op == "SelectV2" and _is_zero(subject, node.inputs[2]):
        pairs = [node.inputs[:2]]
    else:
        return None
    for chosen, scaled in pairs:
        mask = _mask(subject, chosen)
        scale = subject.node(scaled)
        if mask is None or scale.op not in ("Mul", "RealDiv"):
            continue
        for source, factor in (scale.inputs, scale.inputs[::-1]):
            if _scales(subject, scale, factor, mask):
                return _layer(subject, node, source, mask, factor)
    return None


def fed_shares(subject: Subject, layers: Iterable[Layer]) -> Dict[Edge, float]:
    """The rates of dropouts at fed rates, tensors, with the value at which each drops nothing.
    tf.nn.dropout takes a scalar."""
    found: Dict[Edge, float] = {}
    for layer in layers:
        if layer.share is None:
            continue
        edge, off = subject.beyond(layer.share[0]), layer.share[1]
        node = subject.node(edge)
        if node.op == "Sub" and _is_number(subject, node.inputs[0], 1):  # rate = 1 - keep_prob
            edge, off = subject.beyond(node.inputs[1]), 1 - off
        found[edge] = off
    return found


def _is_zero(subject: Subject, edge: Edge) -> bool:
    value = subject.constant(edge)
    return value is not None and not value.any()


def _layer(subject: Subject, node: Node, source: Edge, mask: _Mask, factor: Edge) -> Layer:
    shape, once = _uniform(subject, mask.drawn).inputs[0], _is_once(subject, node, mask)

    def at_constant(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        x, rate = values[0].tensor, literal(mask.rate)
        if once:
            return f"runtime.dropout_where({x}, {values[1].tensor}, {rate}, self.training)"
        if len(values) > 1:
            return f"{x} * F.dropout(torch.ones({sizes(values[1])}), {rate}, self.training)"
        return f"F.dropout({x}, {rate}, self.training)"

    def at_fed(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        x, drawn, share = (value.operand for value in values)
        rate = f"1.0 - {share}" if mask.kept else share
        return f"runtime.dropout_where({x}, {drawn}, {rate})"

    if mask.rate is None:
        share = mask.share, float(mask.kept)
        return Layer((source, mask.drawn, mask.share), at_fed, share=share, again=False)
    # Fed these values, TensorFlow drops nothing and scales by 1.
    off, drops = {mask.share: float(mask.kept), factor: 1.0}, Drops(mask.rate, mask.drawn)
    inputs: Tuple[Edge, ...] = (source,)
    if once:
        inputs = (source, mask.drawn)
    elif not _is_shape_of(subject, shape, source):
        inputs = (source, shape)
    return Layer(inputs, at_constant, off=off, drops=drops, again=False)


def _is_once(subject: Subject, node: Node, mask: _Mask) -> bool:
    """Whether a loop around `node` applies the same mask in every iteration."""
    return subject.rounds(mask.drawn[0]) != subject.rounds(node.name)


def _scales(subject: Subject, scale: Node, factor: Edge, mask: _Mask) -> bool:
    """Whether scaling by `factor` divides by the share of values that are kept."""
    if scale.op == "RealDiv":
        return factor == scale.inputs[1] and _is_kept(subject, factor, mask)
    if mask.rate is not None and mask.rate < 1 and _is_number(subject, factor, 1 / (1 - mask.rate)):
        return True
    inverse = subject.node(factor)
    if inverse.op in _INVERSES:
        return _is_kept(subject, inverse.inputs[0], mask)
    return (
        inverse.op == "RealDiv"
        and _is_number(subject, inverse.inputs[0], 1)
        and _is_kept(subject, inverse.inputs[1], mask)
    )


def _is_kept(subject: Subject, edge: Edge, mask: _Mask) -> bool:
    """Whether `edge` is the share of values that are kept."""
    if mask.rate is not None:
        return _is_number(subject, edge, 1 - mask.rate)
    node, share = subject.node(edge), subject.beyond(mask.share)
    if mask.kept:
        return subject.beyond(edge) == share
    return (
        node.op == "Sub"
        and _is_number(subject, node.inputs[0], 1)
        and subject.beyond(node.inputs[1]) == share
    )


def _is_number(subject: Subject, edge: Edge, number: float) -> bool:
    value = subject.constant(edge)
    # The graph has 1 / (1 - rate) in float32.
    return value is not None and not value.ndim and math.isclose(value, number, rel_tol=1e-5)


def _is_shape_of(subject: Subject, shape: Edge, source: Edge) -> bool:
    node, constant = subject.node(shape), subject.constant(shape)
    if node.op == "Shape":
        return subject.beyond(node.inputs[0]) == subject.beyond(source)
    return constant is not None and subject.shape(source) == tuple(constant.tolist())


def _mask(subject: Subject, edge: Edge) -> Optional[_Mask]:
    """`edge` as a mask."""
    node = subject.node(edge)
    if node.op == "Cast":
        node = subject.node(node.inputs[0])
    if node.op == "GreaterEqual":
        return _drawn(subject, node.inputs[0], node.inputs[1], kept=False)
    if node.op == "Floor":
        total = subject.node(node.inputs[0])
        if total.op in PLUS:
            left, right = total.inputs
            return _drawn(subject, left, right, True) or _drawn(subject, right, left, True)
    return None


def _drawn(subject: Subject, uniform: Edge, share: Edge, kept: bool) -> Optional[_Mask]:
    """The mask of these values; None if they are not random, or scaled by several constants."""
    value = subject.constant(share)
    if _uniform(subject, uniform).op not in _RANDOM or (value is not None and value.ndim):
        return None
    # The shortest decimal of a float32: .1 rather than .10000000149.
    number = None if value is None else float(str(value[()]))
    return _Mask(share, kept, number, subject.beyond(uniform))


def _uniform(subject: Subject, edge: Edge) -> Node:
    """The node that draws, before minval and maxval are applied to its values."""
    return subject.graph.nodes[subject.past(edge, "Mul", *PLUS)[0]]
