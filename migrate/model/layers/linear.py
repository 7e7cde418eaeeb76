"""nn.Linear: a MatMul with a variable of float32, and the variable that is added to it, if any."""

from __future__ import annotations

from typing import List, Optional

from migrate.graph.attributes import flag, output_dtype
from migrate.graph.metagraph import Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameter, Parameters
from migrate.model.source.names import layer_scope

_ADDS = {"Add", "AddV2", "BiasAdd"}


def find_linear(subject: Subject, node: Node) -> Optional[Layer]:
    """The layer that ends at `node`."""
    if node.op == "MatMul":
        return _linear(subject, node, None)
    if node.op in _ADDS and len(node.inputs) == 2:
        product = subject.graph.nodes[node.inputs[0][0]]
        bias = subject.variable(node.inputs[1])
        if product.op == "MatMul" and bias is not None and subject.sole(product):
            return _linear(subject, product, bias)
    return None


def _linear(subject: Subject, product: Node, bias: Optional[Node]) -> Optional[Layer]:
    graph = subject.graph
    kernel = subject.variable(product.inputs[1])
    turned = any(flag(graph, product, name) for name in ("transpose_a", "transpose_b"))
    if kernel is None or turned or output_dtype(graph, kernel) != "float32":
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        known = parameters.by_node.get(kernel.name)
        if known is not None:
            return _again(parameters, known, bias, str(values[0]))
        attribute = parameters.layer(layer_scope(kernel.name))
        weight = parameters.add(kernel, attribute + ".weight", (1, 0))
        fits = bias is not None and bias.name not in parameters.by_node
        if fits and bias is not None:
            shape = parameters.shape(bias)
            fits = shape == (weight.shape[1],)
        if fits and bias is not None:
            parameters.add(bias, attribute + ".bias")
        rows, columns = weight.shape
        more = "" if fits else ", bias=False"
        modules[attribute] = f"nn.Linear({rows}, {columns}{more})"
        text = f"self.{attribute}({values[0]})"
        if bias is None or fits:
            return text
        return f"{text} + {parameters.add(bias).expression}"

    return Layer((product.inputs[0],), write, kernel=kernel.name)


def _again(parameters: Parameters, kernel: Parameter, bias: Optional[Node], value: str) -> str:
    """A kernel that the model has already: its layer once more, if that has the bias too."""
    layer = kernel.attribute.rpartition(".")[0]
    known = None if bias is None else parameters.by_node.get(bias.name)
    bias_of_layer = [p for p in parameters.by_node.values() if p.attribute == layer + ".bias"]
    of_layer = kernel.axes is not None  # as nn.Linear keeps it, and nothing else
    if of_layer and ([known] == bias_of_layer or (bias is None and not bias_of_layer)):
        return f"self.{layer}({value})"
    text = f"{value} @ {kernel.expression}"
    return text if bias is None else f"{text} + {parameters.add(bias).expression}"
