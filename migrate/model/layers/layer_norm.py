"""nn.LayerNorm: (x - mean) / sqrt(variance + epsilon) * gamma + beta, along the last axis.

The forms are those of `graph_rewrite.patterns.normalization`: by hand, and those of
tf.nn.batch_normalization, as tf.contrib.layers.layer_norm and BERT have it. mean and variance are
those of tf.nn.moments(x, [-1], keep_dims=True).
"""

from __future__ import annotations

from typing import List, Optional

from graph_rewrite.graph.ops import PLUS
from graph_rewrite.patterns.normalization import NORMALIZATION
from migrate.graph.attributes import flag, output_dtype, shapes
from migrate.graph.metagraph import Node
from migrate.model.layers.batch_norm import Normalised, normalised
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters
from migrate.model.source.names import layer_scope


def find_layer_norm(subject: Subject, node: Node) -> Optional[Layer]:
    """The layer that ends at `node`."""
    if node.op not in PLUS or len(node.inputs) != 2:
        return None
    found = normalised(subject, node, NORMALIZATION)
    if found is None or (len(found.gamma), len(found.beta)) != (1, 1):
        return None
    (gamma,), (beta,), epsilon = found.gamma, found.beta, found.epsilon
    shape = subject.shape(found.x)
    size = shape[-1] if shape is not None and len(shape) > 1 else None
    if size is None or not _are_moments(subject, found, len(shape or ())):
        return None
    if any(shapes(subject.graph, one, "shape") != [(size,)] for one in (gamma, beta)):
        return None
    if any(output_dtype(subject.graph, one) != "float32" for one in (node, gamma, beta)):
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
        # gamma or beta is shared with another layer: the function takes them as they are.
        given = f"{values[0]}, [{size}], {weight.expression}, {bias.expression}, {epsilon!r}"
        return f"F.layer_norm({given})"

    return Layer((found.x,), write, trained=True)


def _are_moments(subject: Subject, found: Normalised, rank: int) -> bool:
    """Whether mean and variance are those of x along its last axis."""
    mean, variance = subject.node(found.mean), subject.node(found.variance)
    if not all(_is_mean(subject, one, rank) for one in (mean, variance)):
        return False
    x, squares = subject.beyond(found.x), subject.node(variance.inputs[0])
    if subject.beyond(mean.inputs[0]) != x or squares.op != "SquaredDifference":
        return False
    centre = subject.node(squares.inputs[1])
    # tf.nn.moments stops the gradient of the mean there, where it is 0 in any case.
    centre = subject.node(centre.inputs[0]) if centre.op == "StopGradient" else centre
    return subject.beyond(squares.inputs[0]) == x and centre is mean


def _is_mean(subject: Subject, node: Node, rank: int) -> bool:
    axes = subject.constant(node.inputs[1]) if node.op == "Mean" else None
    if axes is None or not flag(subject.graph, node, "keep_dims"):
        return False
    return axes.reshape(-1).tolist() in ([-1], [rank - 1])
