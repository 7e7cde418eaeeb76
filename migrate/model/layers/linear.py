"""nn.Linear: a MatMul with a variable of float32, and the variable that is added to it, if any;
and x @ kernel, tf.layers.conv1d with a kernel of one step.

    tensordot   of more than two axes, the product along the last one, in the shape of the others:
                Reshape(MatMul(Reshape(x), kernel), [*x.shape[:-1], columns])

Source: tensordot, tensorflow/python/ops/math_ops.py
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

from graph_rewrite.graph.ops import GATHER, PLUS
from migrate.graph.attributes import flag, integers, output_dtype, string
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameter, Parameters
from migrate.model.source.names import layer_scope

_ADDS = PLUS | {"BiasAdd"}


class _Product(NamedTuple):
    """x times a matrix: its MatMul, and the node that returns it in the shape of x."""

    x: Edge
    node: Node
    end: Node


def find_linear(subject: Subject, node: Node) -> Optional[Layer]:
    """The layer that ends at `node`."""
    if node.op in _ADDS and len(node.inputs) == 2:
        product = _product(subject, subject.graph.nodes[node.inputs[0][0]])
        bias = subject.variable(node.inputs[1])
        if product is None or bias is None:
            return None
        # The product is needed without the bias, too, if anything else reads it.
        alone = subject.sole(product.end) and subject.sole(product.node)
        return _linear(subject, product, bias) if alone else None
    product = _product(subject, node)
    return None if product is None else _linear(subject, product, None)


def _product(subject: Subject, end: Node) -> Optional[_Product]:
    if end.op == "MatMul":
        return _Product(end.inputs[0], end, end)
    product = subject.graph.nodes[end.inputs[0][0]] if end.op == "Reshape" else end
    if product.op != "MatMul" or not subject.sole(product):
        return None
    flat = subject.node(product.inputs[0])
    if flat.op != "Reshape":
        return None
    x = subject.beyond(flat.inputs[0])
    has, gives = subject.shape(x), subject.shape((end.name, 0))
    kernel = subject.shape(product.inputs[1])
    if has is None or gives is None or kernel is None or None in kernel or len(has) < 3:
        return None
    same = len(has) == len(gives) and [has[-1], gives[-1]] == list(kernel)
    return _Product(x, product, end) if same and _keeps(subject, end.inputs[1], x) else None


def _keeps(subject: Subject, shape: Edge, x: Edge) -> bool:
    """Whether a shape is x's except for the last axis."""
    joined = subject.node(shape)
    if joined.op != "ConcatV2" or len(joined.inputs) != 3:
        return False
    gathered, last = subject.node(joined.inputs[0]), subject.constant(joined.inputs[1])
    if gathered.op not in GATHER or last is None or last.size != 1:
        return False
    whole, places = subject.node(gathered.inputs[0]), subject.constant(gathered.inputs[1])
    axes = list(range(len(subject.shape(x) or ()) - 1))
    return (
        whole.op == "Shape"
        and subject.beyond(whole.inputs[0]) == x
        and places is not None
        and places.tolist() == axes
    )


def _linear(subject: Subject, product: _Product, bias: Optional[Node]) -> Optional[Layer]:
    graph = subject.graph
    kernel = subject.variable(product.node.inputs[1])
    # nn.Linear keeps [out, in] of TensorFlow's [in, out]; a transposed operand is another formula.
    turned = any(flag(graph, product.node, name) for name in ("transpose_a", "transpose_b"))
    if kernel is None or turned or output_dtype(graph, kernel) != "float32":
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        known = parameters.by_node.get(kernel.name)
        if known is not None:
            return _again(parameters, known, bias, str(values[0]))
        attribute = parameters.layer(layer_scope(kernel.name))
        weight = parameters.add(kernel, attribute + ".weight", (1, 0))
        # A bias that another layer owns, or of another size, is added by itself.
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

    return Layer((product.x,), write, kernel=kernel.name, trained=True)


def _again(parameters: Parameters, kernel: Parameter, bias: Optional[Node], value: str) -> str:
    """The expression for a kernel that the model already has: another call of its layer, if the
    bias is the same."""
    layer = kernel.attribute.rpartition(".")[0]
    known = None if bias is None else parameters.by_node.get(bias.name)
    bias_of_layer = [p for p in parameters.by_node.values() if p.attribute == layer + ".bias"]
    of_layer = kernel.axes is not None  # as nn.Linear keeps it, and nothing else
    if of_layer and ([known] == bias_of_layer or (bias is None and not bias_of_layer)):
        return f"self.{layer}({value})"
    text = f"{value} @ {kernel.expression}"
    return text if bias is None else f"{text} + {parameters.add(bias).expression}"


def find_pointwise(subject: Subject, node: Node) -> Optional[Layer]:
    """The product that ends at `node`: Squeeze(Conv2D(ExpandDims(x, 1), ExpandDims(kernel, 0)))."""
    if node.op != "Squeeze" or integers(subject.graph, node, "squeeze_dims") not in ([1], [-3]):
        return None
    product = subject.node(node.inputs[0])
    if product.op != "Conv2D" or not subject.sole(product):
        return None
    x, kernel = (subject.node(edge) for edge in product.inputs)
    if x.op != "ExpandDims" or kernel.op != "ExpandDims":
        return None
    axes = [subject.constant(one.inputs[1]) for one in (x, kernel)]
    shape, rank = subject.shape(kernel.inputs[0]), len(subject.shape(x.inputs[0]) or ())
    strides = integers(subject.graph, product, "strides")
    if axes[0] not in (1, -3) or axes[1] != 0 or rank != 3 or shape is None or shape[0] != 1:
        return None
    if set(strides) != {1} or string(subject.graph, product, "data_format") == b"NCHW":
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"{values[0].tensor} @ {values[1].tensor}[0]"

    return Layer((x.inputs[0], kernel.inputs[0]), write)
