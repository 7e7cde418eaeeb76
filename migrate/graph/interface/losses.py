"""The losses of a graph, and the scores that each compares with labels.

The ops that compute them identify them:

    softmax cross-entropy   one op: logits, labels
    sigmoid cross-entropy   tf.nn.sigmoid_cross_entropy_with_logits:
                            max(x, 0) - x * labels + log1p(exp(-|x|)), in which x are the logits
    logistic loss           log(1 + exp(-y x)), log1p(exp(-y x)), softplus(-y x), y the labels
    log loss                log(p), log(p + epsilon), log of a clipped p or of p / sum(p), p a
                            sigmoid or softmax, or a product of such: a probability of both, as
                            ESMM's of a conversion
    squared difference      of a prediction, which depends on variables, and labels, which do not;
                            one op, or the square or absolute value of a subtraction that ends
                            the model, with one number a row (a distance of vectors is a score)
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional

from graph_rewrite.graph.ops import PLUS
from migrate.graph.attributes import output_shape
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Node

SQUASHING = {"Sigmoid", "Softmax"}
_CROSS_ENTROPY = {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"}
_CLIPPING = PLUS | {"ClipByValue", "Maximum", "Minimum", "Log", "Sub"}


class Loss(NamedTuple):
    """A loss, its scores and its labels.

    Attributes:
        name: of the node that computes it.
        what: the scores are "logits", "probability" or "prediction".
        labels: None if they cannot be distinguished from weights.
    """

    name: str
    what: str
    scores: Edge
    labels: Optional[Edge]


def losses(walks: Walks) -> List[Loss]:
    """The losses, in the order of the graph."""
    return [loss for node in walks.nodes.values() for loss in _of(walks, node)]


def _of(walks: Walks, node: Node) -> Iterator[Loss]:
    if node.op in _CROSS_ENTROPY and len(node.inputs) == 2:
        logits, classes = node.inputs
        yield Loss(node.name, "logits", walks.named(logits), walks.origin(classes)[1])
    elif node.op in ("Log", "Log1p", "Softplus"):
        yield from _of_logarithm(walks, node)
    elif node.op == "SquaredDifference" and len(node.inputs) == 2:
        yield from _of_difference(walks, node, node)
    elif node.op in ("Abs", "Square"):
        difference = _input(walks, node, 0, {"Sub"})
        if difference is not None and len(difference.inputs) == 2:
            for loss in _of_difference(walks, node, difference):
                # With several numbers a row it may be a distance of vectors, which is a score.
                if _one_a_row(walks, loss.scores) and walks.ends(node):
                    yield loss


def _of_difference(walks: Walks, node: Node, difference: Node) -> Iterator[Loss]:
    """The loss that `node` computes from the operands of the subtraction `difference`."""
    # The prediction depends on variables, so that it comes first.
    scores, labels = sorted(difference.inputs, key=lambda edge: edge[0] not in walks.trained)
    if scores[0] in walks.trained and labels[0] not in walks.trained:
        origin, start = walks.origin(scores)
        known = origin is not None and origin.op in SQUASHING
        what = "probability" if known else "prediction"
        yield Loss(node.name, what, start if known else scores, walks.origin(labels)[1])


def _one_a_row(walks: Walks, edge: Edge) -> bool:
    node = walks.graph.nodes.get(edge[0])
    shape = None if node is None else output_shape(walks.graph, node, edge[1])
    return shape is not None and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1))


def _of_logarithm(walks: Walks, node: Node) -> Iterator[Loss]:
    logits = _logits_of(walks, node) if node.op == "Log1p" else None
    squashed = _clipped(walks, node) if node.op == "Log" else None
    if logits is not None:
        labels = _multiplied(walks, node, logits)
        yield Loss(node.name, "logits", walks.named(logits), labels)
    elif squashed is not None:
        yield Loss(node.name, "probability", (squashed.name, 0), _weighing(walks, node))
    else:
        yield from _logistic(walks, node)


def _logits_of(walks: Walks, log1p: Node) -> Optional[Edge]:
    """x of log1p(exp(select(x >= 0, -x, x)))."""
    select = _input(walks, _input(walks, log1p, 0, {"Exp"}), 0, {"Select", "SelectV2"})
    if _input(walks, select, 0, {"GreaterEqual"}) is None or select is None:
        return None
    return select.inputs[2] if len(select.inputs) == 3 else None


def _logistic(walks: Walks, node: Node) -> Iterator[Loss]:
    """The loss log(1 + exp(-y x)) in its forms: x depends on a variable, y does not."""
    inner: Optional[Node] = node
    for ops in (PLUS, {"Exp"}, {"Neg"}, {"Mul"}):
        sources = [] if inner is None else [walks.origin(edge)[0] for edge in inner.inputs]
        inner = next((source for source in sources if source and source.op in ops), inner)
    for _ in range(2):  # -1 * (y x)
        if inner is None or inner.op != "Mul":
            return
        trained = [edge for edge in inner.inputs if edge[0] in walks.trained]
        others = [edge for edge in inner.inputs if edge[0] not in walks.trained]
        if len(trained) != 1 or len(others) != 1:
            return
        source, factor = walks.origin(others[0])
        if source is not None and source.op != "Const":
            yield Loss(node.name, "logits", walks.named(trained[0]), factor)
            return
        inner = walks.origin(trained[0])[0]


def _weighing(walks: Walks, log: Node) -> Optional[Edge]:
    """The labels y of y * log(p), or of (1 - y) * log(1 - p)."""
    for node in walks.consumers.get((log.name, 0), ()):
        if node.op == "Mul" and len(node.inputs) == 2:
            source, edge = walks.origin(node.inputs[1 - node.inputs.index((log.name, 0))])
            if source is not None and source.op == "Sub" and len(source.inputs) == 2:
                source, edge = walks.origin(source.inputs[1])
            if source is not None and source.op not in ("Const", "Neg"):
                return edge
    return None


def _multiplied(walks: Walks, log1p: Node, logits: Edge) -> Optional[Edge]:
    """The labels of x * labels, in the scope of the loss."""
    # Outside of the scope a product with the logits is another computation than the loss.
    scope = log1p.name.rpartition("/")[0]
    for node in walks.consumers.get(logits, ()):
        if node.op == "Mul" and node.name.rpartition("/")[0] == scope and len(node.inputs) == 2:
            return walks.origin(node.inputs[1 - node.inputs.index(logits)])[1]
    return None


def _clipped(walks: Walks, log: Node) -> Optional[Node]:
    """The sigmoid or softmax, or the product of several, below a logarithm."""
    waiting, steps = [log], 0
    # Bounded: visited nodes are not remembered, and a graph may have cycles.
    while waiting and steps < 16:
        node, steps = waiting.pop(), steps + 1
        for edge in node.inputs:
            source = walks.origin(edge)[0]
            if source is not None and (source.op in SQUASHING or is_joint(walks, source)):
                return source
            if source is not None and (source.op in _CLIPPING or _is_share(walks, source)):
                waiting.append(source)
    return None


def _is_share(walks: Walks, node: Node) -> bool:
    """Whether a node divides its input by that input's sum, as Keras' categorical cross-entropy
    does."""
    total = _input(walks, node, 1, {"Sum"}) if node.op == "RealDiv" else None
    return total is not None and total.inputs[0] == node.inputs[0]


def is_of_softmax(walks: Walks, edge: Edge) -> bool:
    """Whether a tensor is the logits of several classes, which no sigmoid turns into scores."""
    read = [node.op for node in walks.consumers.get(edge, ())]
    read += [walks.nodes[loss.name].op for loss in losses(walks) if loss.scores == edge]
    return any("Softmax" in op for op in read)


def is_joint(walks: Walks, node: Node) -> bool:
    """Whether a node multiplies probabilities."""
    factors = [walks.origin(edge)[0] for edge in node.inputs] if node.op == "Mul" else []
    return bool(factors) and all(one is not None and one.op in SQUASHING for one in factors)


def _input(walks: Walks, node: Optional[Node], place: int, ops: "set[str]") -> Optional[Node]:
    """An input of the node, if one of the ops computes it."""
    if node is None or place >= len(node.inputs):
        return None
    source = walks.graph.nodes.get(node.inputs[place][0])
    return source if source is not None and source.op in ops else None
