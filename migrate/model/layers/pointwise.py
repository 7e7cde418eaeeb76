"""x @ kernel: tf.layers.conv1d with a kernel of one step.

Squeeze(Conv2D(ExpandDims(x, 1), ExpandDims(kernel, 0)), [1])
"""

from __future__ import annotations

from typing import List, Optional

from migrate.graph.attributes import integers, string
from migrate.graph.metagraph import Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters


def find_pointwise(subject: Subject, node: Node) -> Optional[Layer]:
    """The product that ends at `node`."""
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
