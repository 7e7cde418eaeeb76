"""nn.LayerNorm: values less their mean along the last axis, over the root of their variance.

    by hand   gamma * (x - mean) / (variance + epsilon) ** 0.5 + beta, the factors in any order
    unfused   x * inv + (beta - mean * inv), inv = rsqrt(variance + epsilon) * gamma
              (tf.nn.batch_normalization, as tf.contrib.layers.layer_norm and BERT have it)

mean and variance are those of tf.nn.moments(x, [-1], keep_dims=True).
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from graph_rewrite.graph.ops import PLUS, VARIABLES
from migrate.graph.attributes import flag, output_dtype, shapes
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.batch_norm import Normalised, unfused
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters
from migrate.model.source.names import layer_scope

_OPERANDS = 3  # gamma, x - mean, the root


def find_layer_norm(subject: Subject, node: Node) -> Optional[Layer]:
    """The layer that ends at `node`."""
    if node.op not in PLUS or len(node.inputs) != 2:
        return None
    found = _by_hand(subject, node) or unfused(subject, node)
    if found is None or (len(found.gamma), len(found.beta)) != (1, 1):
        return None
    (gamma,), (beta,), epsilon = found.gamma, found.beta, found.epsilon
    shape = subject.shape(found.x)
    size = shape[-1] if shape is not None and len(shape) > 1 else None
    if size is None or not _are_moments(subject, found, len(shape or ())):
        return None
    for one in (gamma, beta):
        whole = [tuple(shape or ()) for shape in shapes(subject.graph, one, "shape")] == [(size,)]
        if not whole or output_dtype(subject.graph, one) != "float32":
            return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        if gamma.name not in parameters.by_node and beta.name not in parameters.by_node:
            attribute = parameters.layer(layer_scope(gamma.name))
            parameters.add(gamma, attribute + ".weight")
            parameters.add(beta, attribute + ".bias")
            modules[attribute] = f"nn.LayerNorm({size}, eps={epsilon!r})"
        weight, bias = parameters.add(gamma), parameters.add(beta)
        attribute = weight.attribute.rpartition(".")[0]
        made = modules.get(attribute) == f"nn.LayerNorm({size}, eps={epsilon!r})"
        if made and bias.attribute == f"{attribute}.bias":
            return f"self.{attribute}({values[0]})"
        given = f"{values[0]}, [{size}], {weight.expression}, {bias.expression}, {epsilon!r}"
        return f"F.layer_norm({given})"

    return Layer((found.x,), write, trained=True)


def _by_hand(subject: Subject, add: Node) -> Optional[Normalised]:
    """The sum of a variable and a product of another one, x - mean and 1 / root."""
    for scaled, shift in (add.inputs, add.inputs[::-1]):
        beta = subject.variable(shift)
        factors, divisors = _factors(subject, scaled)
        gammas = [node for node in factors if node.op in VARIABLES]
        others = [node for node in factors if node.op == "Sub"]
        if beta is None or (len(gammas), len(others), len(factors)) != (1, 1, 2):
            continue
        spread = _under_root(subject, divisors[0]) if len(divisors) == 1 else None
        if spread is not None:
            x, mean = others[0].inputs
            return Normalised(x, mean, spread[0], (gammas[0],), (beta,), spread[1])
    return None


def _factors(subject: Subject, edge: Edge) -> Tuple[List[Node], List[Node]]:
    """The factors, and the divisors, of a product; none if there are more than in a layer."""
    sides: Tuple[List[Node], List[Node]] = ([], [])
    pending = [(edge, 0)]
    while pending:
        source, side = pending.pop()
        node = subject.node(source)
        if node.op not in ("Mul", "RealDiv") or not subject.sole(node):
            sides[side].append(node)
            continue
        (first, second), other = node.inputs, side if node.op == "Mul" else 1 - side
        pending += [(second, other), (first, side)]
        if len(pending) + len(sides[0]) + len(sides[1]) > _OPERANDS:
            return [], []
    return sides


def _under_root(subject: Subject, node: Node) -> Optional[Tuple[Edge, float]]:
    """(variance, epsilon) of the root of their sum."""
    half = subject.constant(node.inputs[1]) if node.op == "Pow" else None
    if node.op != "Sqrt" and (half is None or half.ndim or half != 0.5):
        return None
    total = subject.node(node.inputs[0])
    epsilon = subject.constant(total.inputs[1]) if total.op in PLUS else None
    if epsilon is None or epsilon.ndim:
        return None
    return total.inputs[0], float(str(epsilon[()]))


def _are_moments(subject: Subject, found: Normalised, rank: int) -> bool:
    """Whether mean and variance are those of x along its last axis."""
    mean, variance = subject.node(found.mean), subject.node(found.variance)
    if not all(_is_mean(subject, one, rank) for one in (mean, variance)):
        return False
    x, squares = subject.beyond(found.x), subject.node(variance.inputs[0])
    if subject.beyond(mean.inputs[0]) != x or squares.op != "SquaredDifference":
        return False
    centre = subject.node(squares.inputs[1])
    centre = subject.node(centre.inputs[0]) if centre.op == "StopGradient" else centre
    return subject.beyond(squares.inputs[0]) == x and centre is mean


def _is_mean(subject: Subject, node: Node, rank: int) -> bool:
    axes = subject.constant(node.inputs[1]) if node.op == "Mean" else None
    if axes is None or not flag(subject.graph, node, "keep_dims"):
        return False
    return axes.reshape(-1).tolist() in ([-1], [rank - 1])
