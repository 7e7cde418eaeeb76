"""x.clamp(low, high), for tf.clip_by_value: maximum(minimum(x, high), low).

runtime.clip_by_norm, for tf.clip_by_norm, as in embeddings with a max_norm:

    since 1.13   x * n / maximum(where(s > 0, sqrt(where(s > 0, s, 1)), s), n), s = sum(x * x)
    before       x * n / maximum(sqrt(s), n)

Source: tensorflow/python/ops/clip_ops.py
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from migrate.graph.attributes import flag
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value, literal
from migrate.model.parameters import Parameters

_SELECTS = {"Select", "SelectV2"}


class Clip(NamedTuple):
    """x, scaled down where its norm along the axes is above the limit."""

    x: Edge
    limit: numpy.ndarray
    axes: List[int]

    def of(self, x: str) -> str:
        """The expression for the value of x."""
        return f"runtime.clip_by_norm({x}, {literal(self.limit)}, {self.axes})"


def clip(subject: Subject, node: Node) -> Optional[Clip]:
    """The clipping at `node`; None where it is another op, or form."""
    if node.op != "RealDiv":
        return None
    most = subject.node(node.inputs[1])
    limit = subject.constant(most.inputs[1]) if most.op == "Maximum" else None
    if limit is None or limit.ndim:
        return None
    total = _squared_norm(subject, subject.node(most.inputs[0]))
    squares = subject.node(total.inputs[0]) if total is not None else node
    axes = None if total is None else subject.constant(total.inputs[1])
    if squares.op not in ("Mul", "Square") or axes is None:
        return None
    x = subject.beyond(squares.inputs[0])
    # x * x or square(x), of the same x.
    if any(subject.beyond(edge) != x for edge in squares.inputs):
        return None
    scaled = subject.beyond(node.inputs[0])
    # x * 1 is x already, see `migrate.model.unchanged`.
    if scaled != x or limit != 1:
        product = subject.graph.nodes[scaled[0]]
        factors = product.inputs if product.op == "Mul" else ()
        values = [edge for edge in factors if subject.beyond(edge) == x]
        others = [subject.constant(edge) for edge in factors if subject.beyond(edge) != x]
        if len(values) != 1 or others[0] is None or others[0].ndim or others[0] != limit:
            return None
    return Clip(x, limit, axes.reshape(-1).tolist())


def find_clip(subject: Subject, node: Node) -> Optional[Layer]:
    """The clipping that ends at `node`."""
    if node.op == "Maximum":
        return _between(subject, node)
    found = clip(subject, node)
    if found is None:
        return None
    clipped = found

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return clipped.of(values[0].tensor)

    return Layer((clipped.x,), write)


def _between(subject: Subject, most: Node) -> Optional[Layer]:
    least = subject.node(most.inputs[0])
    if least.op != "Minimum" or not subject.sole(least):
        return None
    low, high = (subject.constant(one.inputs[1]) for one in (most, least))
    # Where low is above high, torch's clamp gives high, and maximum(minimum(x, high), low) gives
    # low.
    if low is None or high is None or low.ndim or high.ndim or not low <= high:
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"{values[0].tensor}.clamp({literal(low)}, {literal(high)})"

    return Layer((least.inputs[0],), write)


def _squared_norm(subject: Subject, norm: Node) -> Optional[Node]:
    """The Sum whose square root `norm` is, in either of the forms above."""
    if norm.op in _SELECTS:
        root, total = (subject.node(edge) for edge in norm.inputs[1:])
        safe = subject.node(root.inputs[0]) if root.op == "Sqrt" else root
        if safe.op not in _SELECTS or subject.node(safe.inputs[1]) is not total:
            return None
        above_0 = [subject.node(one.inputs[0]) for one in (norm, safe)]
        if above_0[0] is not above_0[1] or above_0[0].op != "Greater":
            return None
        zero = subject.constant(above_0[0].inputs[1])
        if subject.node(above_0[0].inputs[0]) is not total or zero is None or zero.any():
            return None
    else:
        total = subject.node(norm.inputs[0]) if norm.op == "Sqrt" else norm
    return total if total.op == "Sum" and flag(subject.graph, total, "keep_dims") else None
