"""Ops whose gradient the job defines separately: whether it is the derivative of their formula,
which torch uses.

1. tf.custom_gradient computes y of x and hands both to an IdentityN, whose first output the loss
   depends on. Graph.gradient_override_map has an op that computes y of x itself.
2. The gradient, dx of dy, was traced when the graph was made: its ops are in the scope of the op's
   gradient. dy enters from other gradients; dx leaves, in the order of those x that depend on
   trained variables.
3. Both are written in torch. At values drawn from several ranges dx is compared with torch's
   derivative of y.

Source: tensorflow/python/ops/custom_gradient.py
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from graph_rewrite.graph.ops import VARIABLES
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.attributes import output_shape
from migrate.graph.changes import depends_on
from migrate.graph.find import MetaGraph
from migrate.graph.interface.inputs import DEFAULTED
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.coverage import unknown_ops
from migrate.model.ops.types import output_dtype
from migrate.model.training.cutting import Given, cut
from migrate.model.training.formulas import write_formula
from migrate.model.training.recipe import Recipe
from semisync.common.errors import BadInput, SemisyncError
from semisync.common.sentences import some_of, words_of

_RANGES = (1e-3, 0.1, 1.0, 10.0, 100.0, 1e4)  # of x
_SCALES = (1e-6, 1.0, 1e6)  # of dy
_DRAWS = 8  # values per range: a single one may be all rounding
_SIZE = 3  # size of a dimension that is unknown in the graph
_TOLERANCE = 1e-4  # of the largest gradient of a range, in float32
_UNFIT = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class _Parts(NamedTuple):
    """An op and its gradient, cut out of the graph.

    Attributes:
        x: the names of the arguments that `dx` are the gradients of.
    """

    graph: Graph
    given: List[Given]
    x: List[str]
    y: Edge
    dy: Given
    dx: List[Edge]


def refuse_custom_gradients(
    found: MetaGraph, checkpoint: Checkpoint, recipe: Recipe, loss: Edge
) -> None:
    """Raises BadInput if the graph trains through a gradient that is not torch's, or may not be."""
    graph = found.graph
    for node in graph.behind([loss[0]]):
        if "_gradient_op_type" not in node.attrs or not _trained(graph, recipe, (node.name, 0)):
            continue
        try:
            why = _difference(found, checkpoint, node, recipe)
        except (SemisyncError, *_UNFIT) as error:
            why = f"whether it is torch's cannot be told: {words_of(error)}"
            raise _refusal(graph, node, why) from error
        if why is not None:
            raise _refusal(graph, node, why)


def _refusal(graph: Graph, node: Node, why: str) -> BadInput:
    return BadInput(
        f"{graph.path}: the loss depends on {node.name!r}, whose gradient is defined apart from "
        f"its formula (tf.custom_gradient, gradient_override_map); {why}; it cannot be carried over"
    )


def _trained(graph: Graph, recipe: Recipe, edge: Edge) -> bool:
    return any(node.name in recipe.updates for node in graph.behind([edge[0]]))


def _difference(
    found: MetaGraph, checkpoint: Checkpoint, node: Node, recipe: Recipe
) -> Optional[str]:
    """How the gradients of `node` differ from torch's; None: they do not.

    Raises:
        SemisyncError, or one of _UNFIT: that cannot be determined.
    """
    scopes = {recipe.scopes.scope_of(one.values) for one in recipe.gradients.values()}
    # A graph with several losses has a gradient of the op for each.
    gradients = [recipe.scopes.gradient(scope, node.name) for scope in sorted(scopes)]
    if not any(gradients):
        raise BadInput("the graph has no ops of it, or it hands on what it gets")
    for names in filter(None, gradients):
        compared = _Compared(found, checkpoint, _cut_out(found.graph, recipe, node, names))
        for at, scale in itertools.product(_RANGES, _SCALES):
            if not compared.same(at, scale):
                return f"torch's, the formula's derivative, is another at values of about {at:g}"
        if not compared.finite:
            raise BadInput("torch's is not a number wherever it was asked for")
    return None


def _cut_out(graph: Graph, recipe: Recipe, node: Node, names: List[str]) -> _Parts:
    """The parts of `node` and of the ops `names` of its gradient."""
    own = dict(zip(names, itertools.count()))
    came = {edge for name in names for edge in graph.nodes[name].inputs if edge[0] not in own}
    came = {edge for edge in came if recipe.scopes.has(edge[0])}
    others = [one for one in graph.nodes.values() if one.name not in own]
    went = {edge for one in others for edge in one.inputs if edge[0] in own}
    forward = [one for one in others if not recipe.scopes.has(one.name)]
    results = {edge for one in forward for edge in one.inputs if edge[0] == node.name}
    # An IdentityN of tf.custom_gradient has y and then x.
    inputs = list(dict.fromkeys(node.inputs[1:] if node.op == "IdentityN" else node.inputs))
    x = [edge for edge in inputs if _trained(graph, recipe, edge)]
    y = (node.name, 0)
    # An autograd function of one result gets one gradient, and gives one for each argument.
    if len(came) != 1 or len(went) != len(x) or not results <= {y}:
        raise BadInput("it has several results, or not a gradient for each argument")
    given = {
        edge: _given(graph, f"{node.name}/x{number}", edge)
        for number, edge in enumerate(inputs)
        if depends_on(graph, edge)
    }
    dy = _given(graph, f"{node.name}/dy", y)
    apart = cut(graph, {**given, came.pop(): dy})
    # In the order in which the graph made them, which is that of x (2. above).
    dx = sorted(went, key=lambda edge: (own[edge[0]], edge[1]))
    nodes = {one.name: one for one in apart.behind([y[0], *(name for name, _ in dx)])}
    told = {one.name for one in (*given.values(), dy)}
    beside = [
        one.name
        for one in nodes.values()
        if (one.op in VARIABLES | DEFAULTED or not one.inputs) and one.op != "Const"
    ]
    # The emitted function sees its arguments alone: what it read beside them would get
    # no gradient.
    if not told.issuperset(beside):
        named = some_of(map(repr, sorted(set(beside) - told)))
        raise BadInput(f"it depends on {named} beside its arguments")
    unknown = unknown_ops(apart, [y, *dx])
    if unknown:
        raise BadInput(f"it has unknown ops, {some_of(unknown)}")
    # What a node waits for was cut off with the rest of the graph.
    nodes = {name: one._replace(controls=()) for name, one in nodes.items()}
    return _Parts(
        Graph(graph.path, nodes), list(given.values()), [given[edge].name for edge in x], y, dy, dx
    )


def _given(graph: Graph, name: str, edge: Edge) -> Given:
    node = graph.nodes[edge[0]]
    # A rank must be chosen to draw values: without a shape, that of a matrix.
    shape = output_shape(graph, node, edge[1])
    return Given(
        name, str(output_dtype(graph, node, edge[1])), (None, None) if shape is None else shape
    )


class _Compared:
    """The comparison of TensorFlow's gradient with torch's.

    Attributes:
        finite: whether any value was finite.
    """

    def __init__(self, found: MetaGraph, checkpoint: Checkpoint, parts: _Parts) -> None:
        self._parts, self.finite = parts, False
        self._random = torch.Generator().manual_seed(0)
        part = found._replace(graph=parts.graph)
        names = [one.name for one in (*parts.given, parts.dy)]
        what = "a gradient"
        self._y, self._dx = (
            write_formula(part, checkpoint, edges, names, {}, what)
            for edges in ([parts.y], parts.dx)
        )

    def same(self, at: float, scale: float) -> bool:
        """Whether they are the same at x of about `at` and dy of about `scale`."""
        draws = [self._gradients(at, scale) for _ in range(_DRAWS)]
        for ours, theirs in (map(torch.stack, zip(*draw)) for draw in zip(*draws)):
            numbers = ours.isfinite()
            self.finite = self.finite or bool(numbers.any())
            # Both may overflow, but then for the same values.
            if not numbers.equal(theirs.isfinite()):
                return False
            distance = (ours - theirs)[numbers].abs()
            if (distance > _TOLERANCE * ours[numbers].abs().amax()).any():
                return False
        return True

    def _gradients(self, at: float, scale: float) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """Torch's and TensorFlow's gradient of each x, in pairs."""
        parts = self._parts
        given: Dict[str, Any] = {one.name: self._drawn(one, at) for one in parts.given}
        x = [given[name].requires_grad_() for name in parts.x]
        y = self._y.values(given)[parts.y]
        dy = self._drawn(parts.dy._replace(shape=tuple(y.shape)), scale)
        none = (None,) * len(x)
        ours = torch.autograd.grad(y, x, dy, allow_unused=True) if y.requires_grad else none
        with torch.no_grad():
            theirs = self._dx.values({**given, parts.dy.name: dy})
        return [
            (torch.zeros_like(one) if own is None else own, theirs[edge].expand_as(one))
            for one, own, edge in zip(x, ours, parts.dx)
        ]

    def _drawn(self, one: Given, at: float) -> torch.Tensor:
        dtype: torch.dtype = getattr(torch, one.dtype)
        sizes = [_SIZE if size is None else size for size in one.shape or ()]
        drawn = torch.randn(sizes, generator=self._random)
        return (drawn * at if dtype.is_floating_point else drawn > 0).to(dtype)
