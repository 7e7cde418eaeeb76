"""runtime.BatchNorm: TensorFlow's BatchNorm in all its forms, which then follows the module's own
`training`.

    fused       FusedBatchNorm*; with `training` fed, the Merge of a training and an inference one;
                of two axes, contrib reshapes them to four and back
    unfused     by tf.nn.batch_normalization or by hand, in the forms of
                `graph_rewrite.patterns.normalization`; mean and variance are those of x, in the
                forms of `graph_rewrite.patterns.moments`, the moving ones, or a Merge of both

In a graph that trains unconditionally the output does not depend on the moving statistics: they are
the variables into which the batch's statistics are averaged, see `migrate.model.layers.moves`,
which also finds the decay. If nothing in the graph moves them, as in one for evaluation, the decay
is tf.layers' default, .99, and the source says that it is a guess. If something else moves them,
the layer is written op by op.

A layer in a branch, written by hand for evaluation, is written op by op too: the module would not
run in the branch for training, and its statistics would stay as they are.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.batch_norm.statistics import HOPS, MEAN, VARIANCE, Statistic, nearest
from graph_rewrite.graph.constants import number
from graph_rewrite.graph.ops import FUSED, PLUS, VARIABLES
from graph_rewrite.graph.passthrough import trace
from graph_rewrite.patterns.arithmetic import DIVIDE
from graph_rewrite.patterns.engine import Pattern
from graph_rewrite.patterns.language import match
from graph_rewrite.patterns.moments import of_rows
from graph_rewrite.patterns.normalization import NORMALIZATION
from migrate.graph.attributes import flag, float32, shapes, string
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Layer, Modules, Subject, asked_once
from migrate.model.layers.moves import averaged, find_moves, is_moved
from migrate.model.ops.values import Value, literal, torch_type
from migrate.model.parameters import Parameter, Parameters
from migrate.model.source.names import layer_scope
from semisync.common.tensor_names import of_edge, split
from semisync.common.walks import reachable

STATISTICS = FUSED | {"Mean"}  # ops that compute a batch's
_USUAL_DECAY = 0.99
_ENDS = PLUS.union(DIVIDE, ["BiasAdd", "Mul"])  # the last ops of normalisations, fused ones apart

_Affine = Tuple[Tuple[str, ...], Tuple[str, ...], float]  # names of gamma and beta, and epsilon
Parts = Tuple[Node, ...]  # of a variable: itself, or all of its partitions; none where it is absent


class _Norm(NamedTuple):
    """One BatchNorm: its input x, its variables and its settings."""

    x: Edge
    gamma: Parts
    beta: Parts
    mean: Node
    variance: Node
    epsilon: float
    axis: int
    unbiased: bool
    flag: Optional[str] = None


class Normalised(NamedTuple):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta."""

    x: Edge
    mean: Edge
    variance: Edge
    gamma: Parts
    beta: Parts
    epsilon: float


def find_batch_norm(subject: Subject, node: Node) -> Optional[Layer]:
    """The layer that ends at `node`."""
    found = None
    if node.op in FUSED or node.op == "Reshape":
        found = _fused(subject, node)
    elif node.op == "Merge":
        found = _either_fused(subject, node)
    else:
        found = _every_unfused(subject).get(node.name)
    if found is None or _moves_otherwise(subject, [found.mean, found.variance]):
        return None
    return _layer(subject, found)


def batch_statistics(subject: Subject, computed: Iterable[Edge]) -> Set[str]:
    """The `computed` nodes that are a batch's statistics: fused kernels in training mode, and
    values that are averaged into a variable."""
    nodes = {edge[0] for edge in computed}
    moves = [move for moves in find_moves(subject).values() for move in moves]
    averages = {subject.viewed(move.value)[0] for move in moves}
    training = {name for name in nodes if _takes_batch(subject, subject.graph.nodes[name])}
    return {name for name in training if not of_rows(subject.nodes, name)} | averages & nodes


def _takes_batch(subject: Subject, node: Node) -> bool:
    return node.op in FUSED and flag(subject.graph, node, "is_training")


def _moves_otherwise(subject: Subject, moving: List[Node]) -> bool:
    """Whether the graph moves statistics, but not as averages of one known rate."""
    rates = {_momentum(subject, node) for node in moving}
    # No known rate, as in a graph for evaluation: then nothing may move them at all.
    if rates == {None}:
        return any(is_moved(subject, node) for node in moving)
    return len(rates) > 1


def _layer(subject: Subject, norm: _Norm) -> Layer:
    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        known = parameters.by_node.get(norm.mean.name)
        if known is not None:
            return f"self.{known.attribute.rpartition('.')[0]}({values[0]})"
        attribute = parameters.layer(layer_scope(norm.mean.name))
        mean = parameters.add(norm.mean, attribute + ".running_mean")
        parameters.add(norm.variance, attribute + ".running_var")
        for parts, name in ((norm.gamma, "weight"), (norm.beta, "bias")):
            if parts:
                parameters.joined(parts, f"{attribute}.{name}")
        modules[attribute] = _constructor(norm, mean, _momentum(subject, norm.mean))
        return f"self.{attribute}({values[0]})"

    return Layer((norm.x,), write, norm.flag, trained=True)


def _constructor(norm: _Norm, mean: Parameter, momentum: Optional[float]) -> str:
    told = 1 - _USUAL_DECAY if momentum is None else momentum
    more = [
        "" if norm.axis == -1 else f"axis={norm.axis}",
        "" if norm.gamma else "scale=False",
        "" if norm.beta else "center=False",
        "unbiased=True" if norm.unbiased else "",
        "" if mean.dtype == "float32" else f"dtype={torch_type(mean.dtype)}",
    ]
    # Seven digits: the rate is 1 - decay, computed in float32.
    arguments = [str(mean.shape[0]), f"eps={literal(norm.epsilon)}", f"momentum={round(told, 7)}"]
    text = f"runtime.BatchNorm({', '.join(arguments + [word for word in more if word])})"
    return text if momentum is not None else text + "  # the graph does not say its momentum"


def _kernel(subject: Subject, end: Node) -> Optional[Tuple[Node, Edge]]:
    """The fused kernel whose output `end` is, and the tensor that it normalises."""
    if end.op != "Reshape":
        return (end, end.inputs[0]) if end.op in FUSED else None
    node = subject.node(end.inputs[0])
    spread = subject.node(node.inputs[0]) if node.op in FUSED and subject.sole(node) else end
    shape, x = subject.node(end.inputs[1]), subject.beyond(spread.inputs[0])
    if spread is end or spread.op != "Reshape" or shape.op != "Shape":
        return None
    channels = [(subject.shape(edge) or (None,))[-1] for edge in (x, (spread.name, 0))]
    same = None not in channels and channels[0] == channels[1]
    first = string(subject.graph, node, "data_format") == b"NCHW"
    return (node, x) if same and not first and subject.beyond(shape.inputs[0]) == x else None


def _fused(subject: Subject, end: Node) -> Optional[_Norm]:
    graph, found = subject.graph, _kernel(subject, end)
    if found is None:
        return None
    node, x = found
    gamma, beta, mean, variance = node.inputs[1:5]
    scale, offset = _unviewed(subject, gamma), _unviewed(subject, beta)
    # With scale=False the kernel is given a constant of ones for gamma.
    ones = subject.constant(gamma)
    if not offset or (not scale and (ones is None or not (ones == 1).all())):
        return None
    if _takes_batch(subject, node):
        # In training mode the kernel does not use the moving statistics: its outputs 1 and 2, the
        # batch's, move them.
        moving = [averaged(subject, (node.name, output)) for output in (1, 2)]
    else:
        moving = [subject.variable(mean), subject.variable(variance)]
    if moving[0] is None or moving[1] is None:
        return None
    # -1 is the last axis, TensorFlow's default.
    axis = 1 if string(graph, node, "data_format") == b"NCHW" else -1
    epsilon = float32(graph, node, "epsilon")
    # The fused kernel corrects the variance that it returns (Bessel, n / (n - 1)); others do not.
    return _Norm(x, scale, offset, moving[0], moving[1], epsilon, axis, True)


def _either_fused(subject: Subject, merge: Node) -> Optional[_Norm]:
    """A Merge of the fused kernel's two modes."""
    sides = [subject.node(edge) for edge in merge.inputs]
    kernels = [kernel for kernel in (_kernel(subject, side) for side in sides) if kernel]
    modes = [flag(subject.graph, node, "is_training") for node, _ in kernels]
    if len(sides) != 2 or sorted(modes) != [False, True]:
        return None
    norm = _fused(subject, sides[modes.index(False)])
    sources = [subject.beyond(x) for _, x in kernels]
    if norm is None or sources[0] != sources[1]:
        return None
    training = merge.inputs[modes.index(True)]
    return norm._replace(x=sources[0], flag=subject.flag(merge, training))


@asked_once
def _every_unfused(subject: Subject) -> Dict[str, _Norm]:
    """The BatchNorms that are not fused, by the needed nodes that they end with."""
    found: Dict[str, _Norm] = {}
    within: Set[str] = set()
    for end in subject.nodes.of_type(_ENDS.__contains__):
        if len(end.inputs) == 2 and (subject.used(end) or end.name in subject.outputs):
            made = _unfused(subject, end)
            if made is not None:
                found[end.name], inner = made
                within |= inner
    # (x - mean) / root is one by itself only where it is needed without gamma and beta.
    ends = {name: norm for name, norm in found.items() if name not in within}
    affines: Dict[str, Set[_Affine]] = {}
    for norm in ends.values():
        affines.setdefault(norm.mean.name, set()).add(_affine(norm))
    # A module has one gamma and beta; statistics that several share stay ops, as those of domains.
    return {name: norm for name, norm in ends.items() if len(affines[norm.mean.name]) == 1}


def _unfused(subject: Subject, end: Node) -> Optional[Tuple[_Norm, Set[str]]]:
    """The BatchNorm that ends here, if it is one, and the nodes within it."""
    found = normalised(subject, end, NORMALIZATION)
    if found is None:
        return None
    bound = {found.x[0], found.mean[0], found.variance[0]}

    def makers(name: str) -> List[str]:
        return [edge[0] for edge in subject.graph.nodes[name].inputs if edge[0] not in bound]

    whole = set(reachable([end.name], makers))
    inner = whole - {end.name}
    for one in (subject.graph.nodes[name] for name in inner):
        needed = one.name in subject.outputs or any(
            user.name not in whole for user in subject.users(one)
        )
        # A smaller normalisation within this one is read by other nodes too: the module would hide
        # it.
        if needed and one.op in _ENDS and normalised(subject, one, NORMALIZATION) is not None:
            return None
    mean, flag, axis = _moving(subject, found.mean, found.x, MEAN)
    variance, *same = _moving(subject, found.variance, found.x, VARIANCE)
    # Mean and variance must be chosen by one flag and be of one axis.
    if mean is None or variance is None or same != [flag, axis]:
        return None
    variables = [(mean,), (variance,), *filter(None, (found.gamma, found.beta))]
    sizes = {_channels_of(subject, parts) for parts in variables}
    if len(sizes) > 1 or None in sizes:
        return None
    more = (found.epsilon, axis, False, flag)
    return _Norm(found.x, found.gamma, found.beta, mean, variance, *more), inner


def _affine(norm: _Norm) -> _Affine:
    names = [tuple(part.name for part in parts) for parts in (norm.gamma, norm.beta)]
    return names[0], names[1], norm.epsilon


def _channels_of(subject: Subject, parts: Parts) -> Optional[int]:
    """How many channels a variable has values for; None where it has other axes, too."""
    found = [shape for part in parts for shape in shapes(subject.graph, part, "shape")]
    if len(found) < len(parts) or any(shape is None or len(shape) != 1 for shape in found):
        return None
    sizes = [size for shape in found for size in shape or ()]
    return None if None in sizes else sum(size or 0 for size in sizes)


def normalised(subject: Subject, add: Node, form: Pattern) -> Optional[Normalised]:
    """The normalisation whose last Add this is, in a form of `graph_rewrite.patterns`."""
    found = match(form, subject.nodes, of_edge((add.name, 0)))
    if found is None:
        return None
    names = [name for name in ("gamma", "beta") if name in found.bindings]
    parts = {name: subject.parts(split(found[name])) for name in names}
    if not all(parts.values()):
        return None
    x, mean, variance = (split(found[name]) for name in ("x", "mean", "variance"))
    epsilon = number(subject.nodes, found["epsilon"])
    return Normalised(x, mean, variance, parts.get("gamma", ()), parts.get("beta", ()), epsilon)


def _unviewed(subject: Subject, edge: Edge) -> Parts:
    """As `Subject.parts`, but without reshaped variables."""
    return subject.parts(edge) if subject.beyond(edge) == subject.viewed(edge) else ()


def _moving(
    subject: Subject, edge: Edge, x: Edge, kind: str
) -> Tuple[Optional[Node], Optional[str], int]:
    """(moving statistic, flag, axis of the channels).

    The statistic is the variable that `edge` is, or into which `edge` is averaged; None if it is of
    another kind, or moves by statistics of another tensor than x. The flag chooses between the
    batch's statistic and the moving one.
    """
    node, flag = subject.node(subject.viewed(edge)), None
    # Torch's module differentiates the statistics: they come with their gradient.
    found = _batch_statistics(subject, edge, HOPS - {"StopGradient"})
    axis = _channels(subject, found, x, kind)
    if node.op in VARIABLES:
        # A reshaped variable may belong to another axis than the last, which only a batch's
        # statistics show.
        reshaped = not found and subject.beyond(edge) != subject.viewed(edge)
        variable = None if subject.switched(edge) or reshaped else node
    elif node.op == "Merge":
        sides = [_viewed_variable(subject, side) for side in node.inputs]
        known = [one for one in sides if one is not None]
        variable = known[0] if len(known) == 1 and len(sides) == 2 else None
        flag = subject.flag(node, node.inputs[sides.index(None)]) if variable else None
    else:
        variable = averaged(subject, subject.viewed(edge))
        # Read otherwise, it belongs to the other branch, which is written op by op.
        variable = None if variable is None or subject.used(variable) else variable
    if variable is not None and (found or node.op not in VARIABLES):
        moves = find_moves(subject).get(variable.name, ())
        towards = [_batch_statistics(subject, move.value, HOPS) for move in moves]
        # Those of other towers, which share the layer, among them.
        others = any(_channels(subject, one, None, kind) is None for one in towards)
        if axis is None or (towards and (others or found not in towards)):
            variable = None
    return variable, flag, -1 if axis is None else axis


def _batch_statistics(subject: Subject, edge: Edge, hops: FrozenSet[str]) -> Set[Statistic]:
    """The statistics of a batch that `edge` may be, past the ops in `hops`: all that its Merges
    choose from."""
    passed = trace(subject.nodes, of_edge(edge), hops)
    found = (nearest(subject.nodes, one) for one in passed)
    return {one for one in found if one is not None}


def _channels(
    subject: Subject, found: Set[Statistic], x: Optional[Edge], kind: str
) -> Optional[int]:
    """The only axis that a batch's mean or variance keeps; None if that is not one axis, or the
    statistic is not x's."""
    one = next(iter(found)) if len(found) == 1 else None
    if one is None or one.kind != kind or one.reason or one.axes is None:
        return None
    if x is None:
        x = split(one.x)
    elif subject.past(split(one.x), "Cast") != subject.past(x, "Cast"):
        return None
    shape = subject.shape(x)
    rank = len(one.axes) + 1 if shape is None else len(shape)
    kept = set(range(rank)) - {axis % rank for axis in one.axes}
    # Without a shape the rank follows from the axes, which then must leave the last one.
    if len(kept) != 1 or (shape is None and kept != {rank - 1}):
        return None
    return kept.pop() if kept != {rank - 1} else -1


def _viewed_variable(subject: Subject, edge: Edge) -> Optional[Node]:
    node = subject.graph.nodes[subject.viewed(edge)[0]]
    return node if node.op in VARIABLES else None


def _momentum(subject: Subject, moving: Node) -> Optional[float]:
    """The rate of a moving statistic; None if the graph does not average it by a constant."""
    for move in find_moves(subject).get(moving.name, ()):
        value = _scalar(subject, move.rate)
        if value is not None and (value or not move.divides):
            return 1 / value if move.divides else value
        # contrib's with a fed mode: 1 - cond(training, decay, 1)
        rest = subject.node(move.rate)
        kept = subject.node(rest.inputs[1]) if rest.op == "Sub" else rest
        if kept.op == "Merge" and len(kept.inputs) == 2:
            decays = {_scalar(subject, side) for side in kept.inputs} - {1.0}
            decay = decays.pop() if len(decays) == 1 else None
            if decay is not None and _scalar(subject, rest.inputs[0]) == 1.0:
                return 1 - decay
    return None


def _scalar(subject: Subject, edge: Edge) -> Optional[float]:
    value = subject.constant(edge)
    # The shortest decimal of a float32: .99 rather than .9900000095.
    return None if value is None or value.ndim else float(str(value[()]))
