"""The tensors of a graph that are likely scores, and those that a model of it returns.

1. In a frozen graph, which was cut at its outputs: the tensors that nothing reads.
2. Else the tensors that losses compare with fed ones, and their logits; then sigmoids and softmaxes
   that end the model, with theirs. Left out, since they serve training alone: scores of a softmax
   within the batch, tensors that depend on sampled classes or on variables alone, and the inputs of
   a loss without labels, such as the difference of two scores in log(sigmoid(better - worse)).
3. If the graph trains by an unknown loss, the tensor that it predicts with, see `prediction`.
4. If there are none, every float tensor of more than one number that nothing reads and that depends
   on a feed and on a variable.

The model returns the logits of the losses; if there are none, other logits; if none, the
probabilities or predictions of the losses; then those of 3, or those of 4 for a graph that does not
train. The joint probability of two tasks is an output beside those of the losses. If there are
several, none is chosen.
"""

from __future__ import annotations

from typing import (
    AbstractSet,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from graph_rewrite.graph.ops import VARIABLES
from migrate.graph.attributes import Shape, output_dtype, output_shape
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.gradient_scopes import GradientScopes
from migrate.graph.interface.losses import SQUASHING, Loss, is_joint, losses
from migrate.graph.interface.prediction import prediction
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Node
from semisync.common.tensor_names import of_edge
from semisync.common.walks import reachable

_FLOATS = {"float16", "float32", "float64", "bfloat16"}
_UPDATES = ("Apply", "Assign", "Resource", "Scatter", "SparseApply")  # how such ops' names begin
_SAMPLERS = "CandidateSampler"  # how the names of ops that sample classes end
_SILENT = {"Assert", "NoOp", "Print", "PrintV2"}  # have no output


class Output(NamedTuple):
    """A tensor that may be a model's output.

    Attributes:
        what: "logits", "probability", "prediction" or "end".
        why: the evidence for that.
        chosen: a model of the graph returns it by default.
    """

    tensor: str
    dtype: Optional[str]
    shape: Shape
    what: str
    why: str
    chosen: bool = False


def outputs(walks: Walks, feeds: List[Feed]) -> List[Output]:
    """The likely outputs: chosen ones first, then those of losses, in the order of the graph."""
    # Frozen: its variables are constants, and it was cut at its outputs.
    if not any(node.op in VARIABLES for node in walks.graph.nodes.values()):
        ends = ((node, (node.name, 0)) for node in _ends(walks, feeds))
        return [_output(walks, node, edge, "end", "nothing reads it", True) for node, edge in ends]
    given, sampled, within = _given(walks, feeds)
    likely = {
        edge: out
        for edge, out in _of_losses_and_ends(walks, given).items()
        if edge[0] not in sampled and edge not in within
    }
    trained = sorted(set(GradientScopes(walks.graph).losses()))
    likely = _of_rows(walks, feeds, likely, given, trained)
    of_losses = {loss.scores for loss in given if loss.what == "logits"}
    logits = {edge for edge, out in likely.items() if out.what == "logits"}
    of_losses, others = of_losses & set(likely), {loss.scores for loss in given} & set(likely)
    # A product of probabilities (pCTR x pCVR) is the score; its factors' logits are not.
    joint = any(is_joint(walks, walks.graph.nodes[name]) for name, _ in others)
    tiers = [others] if joint else [of_losses, logits, others]
    chosen: Set[Edge] = next(filter(None, tiers), set())
    if not chosen:
        told = [edge for edge in (prediction(walks, feeds, loss) for loss in trained) if edge]
        for edge in told:
            node = walks.graph.nodes[edge[0]]
            why = "all of the model goes through it to the loss"
            likely.setdefault(edge, _output(walks, node, edge, "prediction", why))
        if not likely:
            likely = dict(_unread(walks, feeds))
        chosen = set(told) if trained else set(likely)
    found = [(edge, out._replace(chosen=edge in chosen)) for edge, out in likely.items()]
    return [out for _, out in sorted(found, key=lambda one: not one[1].chosen)]


def _given(
    walks: Walks, feeds: Sequence[Feed]
) -> Tuple[List[Loss], AbstractSet[str], AbstractSet[Edge]]:
    """The losses that identify scores, the nodes that depend on sampled classes, and the scores of
    losses whose labels depend on no fed value, but on the batch's size alone, as the row numbers in
    a softmax within the batch do."""
    samplers = [node.name for node in walks.graph.nodes.values() if node.op.endswith(_SAMPLERS)]
    sampled = walks.downstream(edge for name in samplers for edge in walks.outputs(name))
    given = [loss for loss in losses(walks) if loss.scores[0] not in sampled]
    edges = [edge for feed in feeds for edge in feed.edges]
    reached = walks.downstream_of_values(edges)
    told = [(loss.scores, loss.labels) for loss in given if loss.labels is not None]
    within = {scores for scores, at in told if at not in edges and at[0] not in reached}
    return [loss for loss in given if loss.scores not in within], sampled, within


def _of_rows(
    walks: Walks,
    feeds: Sequence[Feed],
    likely: Dict[Edge, Output],
    given: Sequence[Loss],
    trained: Sequence[Edge],
) -> Dict[Edge, Output]:
    """The likely outputs that depend on rows, not on variables and constants alone.

    Without the sigmoids, and their logits, of a trained loss that depends on no more inputs than
    they do, and so on no labels; unless its labels are known, or lie within whole Examples that are
    fed.
    """
    likely = {edge: out for edge, out in likely.items() if _is_computed(walks, edge)}
    scores = [loss.scores for loss in given if loss.labels is not None]
    sigmoids = {edge for edge in likely if walks.graph.nodes[edge[0]].op == "Sigmoid"}
    compared = _with_logits(walks, sigmoids) - _with_logits(walks, scores)
    whole = any(feed.kind == "serialized" for feed in feeds)
    # A parser's labels lie within the Examples that everything depends on.
    later = {} if whole else {edge: walks.downstream([edge]) for edge in compared}
    open_to = {
        edge: [name for name, _ in trained if name in names] for edge, names in later.items()
    }
    if not any(open_to.values()):
        return likely
    reached = [walks.downstream_of_values(feed.edges) for feed in feeds]

    def has_labels(edge: Edge) -> bool:
        others = [names for names in reached if edge[0] not in names]
        return all(any(end in names for names in others) for end in open_to.get(edge, ()))

    return {edge: out for edge, out in likely.items() if has_labels(edge)}


def _is_computed(walks: Walks, edge: Edge) -> bool:
    """Whether a tensor depends on rows, directly or through an assignment that it waits for."""
    nodes, still = walks.graph.nodes, {"Const", *VARIABLES}
    behind = reachable(
        [edge[0]], lambda name: [*(one for one, _ in nodes[name].inputs), *nodes[name].controls]
    )
    return any(not nodes[name].inputs and nodes[name].op not in still for name in behind)


def _with_logits(walks: Walks, edges: Iterable[Edge]) -> Set[Edge]:
    return {one for edge in edges for one in (edge, _below(walks, edge))}


def _below(walks: Walks, edge: Edge) -> Edge:
    """The logits of a sigmoid or softmax; any other edge itself."""
    node = walks.graph.nodes[edge[0]]
    return walks.named(node.inputs[0]) if node.op in SQUASHING else edge


def _of_losses_and_ends(walks: Walks, given: Sequence[Loss]) -> Dict[Edge, Output]:
    found: Dict[Edge, Output] = {}

    def add(edge: Edge, what: str, why: str) -> None:
        node = walks.graph.nodes.get(edge[0])
        if node is not None:
            found.setdefault(edge, _output(walks, node, edge, what, why))

    for loss in given:
        add(loss.scores, loss.what, f"of the loss {loss.name}")
        for node in walks.consumers.get(loss.scores, ()):
            if node.op in SQUASHING and loss.what == "logits":
                add((node.name, 0), "probability", f"{node.op.lower()} of these logits")
        below = _below(walks, loss.scores)
        if loss.what == "probability" and below != loss.scores:
            add(below, "logits", f"input of {loss.scores[0]}")
    for node in walks.nodes.values():
        if node.op in SQUASHING and node.inputs and walks.ends(node):
            add((node.name, 0), "probability", f"a {node.op.lower()} that ends the model")
            add(_below(walks, (node.name, 0)), "logits", f"input of {node.name}")
    return found


def _unread(walks: Walks, feeds: Sequence[Feed]) -> Iterator[Tuple[Edge, Output]]:
    fed = walks.downstream(edge for feed in feeds for edge in feed.edges)
    for name, node in walks.nodes.items():
        if name in fed & walks.trained and not walks.outputs(name) and not _updates(node):
            out = _output(walks, node, (name, 0), "end", "nothing reads it")
            if out.dtype in _FLOATS and out.shape != ():
                yield (name, 0), out


def _ends(walks: Walks, feeds: Sequence[Feed]) -> List[Node]:
    """The nodes that depend on a feed and that nothing reads.

    Nodes that others wait for, such as a tf.cond's pivots, count only if there are no others.
    """
    fed = walks.downstream(edge for feed in feeds for edge in feed.edges)
    ends = [node for node in walks.nodes.values() if not walks.outputs(node.name)]
    ends = [node for node in ends if node.name in fed and node.op not in _SILENT]
    awaited = {name for node in walks.nodes.values() for name in node.controls}
    return [node for node in ends if node.name not in awaited] or ends


def _updates(node: Node) -> bool:
    return node.op.startswith(_UPDATES)


def _output(
    walks: Walks, node: Node, edge: Edge, what: str, why: str, chosen: bool = False
) -> Output:
    dtype, shape = output_dtype(walks.graph, node), output_shape(walks.graph, node, edge[1])
    return Output(of_edge(edge), dtype, shape, what, why, chosen)
