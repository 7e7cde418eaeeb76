"""The training of model.py, whose outputs go into the graph's loss.

1. The graph is cut where model.py computes inputs of the loss, see `taps`. Only the part between
   these and the loss is written from the graph: the loss's own formula, with the labels, weights
   and regularisation. Both together are one module, see `joined`.
2. Parts of the loss that model.py lacks, such as another task's tower, are taken from the graph,
   and `beside` reports them.
3. A loss that does not depend on model.py is refused, since nothing of model.py would be trained.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from migrate.behaviour import subject as subjects
from migrate.behaviour.in_torch import Converted
from migrate.behaviour.subject import Subject
from migrate.behaviour.tables_by_id import zeros_fed
from migrate.behaviour.trained.joined import Joined
from migrate.behaviour.trained.listening import DRAWS
from migrate.behaviour.trained.taps import Tap, name_taps, output_taps
from migrate.graph.attributes import output_shape
from migrate.graph.metagraph import Edge
from migrate.model.emitter import Emitter
from migrate.model.folding import RANDOM
from migrate.model.load import Written, build_module
from migrate.model.ops.types import output_dtype
from migrate.model.outputs import find_outputs
from migrate.model.parameters import Parameter
from migrate.model.training.cutting import Given, cut
from migrate.verification.carried import Carried, Lost
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.common.tensor_names import of_edge, split

_SAMPLER = "CandidateSampler"
_OF_SAMPLER = ("int64", "float32", "float32")  # the sampled classes, two expected counts


class Trained(NamedTuple):
    """The module that is trained.

    Attributes:
        module: returns the loss.
        emitters: of its parts as the conversion writes them; that of model.py first.
        drawn: {tensor: dtype} of TensorFlow's random tensors that the module takes.
        beside: sentences on the parts of the steps outside of model.py.
        rows: the number that the graph takes at a time; None: any.
    """

    module: Any
    emitters: List[Emitter]
    drawn: Dict[str, str]
    beside: List[str]
    rows: Optional[int]


def without_model(subject: Subject, converted: str, loss: Edge) -> Trained:
    """The loss written from the graph alone, for a conversion without a model.py."""
    written, drawn = write_loss(subject, loss)
    module = build_module(written, Carried(subject.checkpoint, converted))
    beside = f"model.py, which {converted} lacks: the steps are those of the graph's own formulas"
    return Trained(module, [written.emitter], drawn, [beside], written.freed.size)


def join(subject: Subject, model: Converted, loss: Edge) -> Trained:
    """The module of model.py and of the graph's loss of its outputs.

    Raises:
        Lost: the conversion or model.py lacks a variable.
        BadInput: the loss does not depend on model.py, or this cannot be determined.
    """
    graph = subject.found.graph
    outputs = find_outputs(graph, list(model.outputs))
    written = subject.write(outputs)
    carried = Carried(subject.checkpoint, model.directory)
    carried.refuse_lost(one.variable for one in written.parameters)
    nodes = _of_model(model, written)
    taps = output_taps(graph, outputs)
    rest, drawn = _write_rest(subject, loss, taps)
    # The loss reads features past the outputs: cut at model.py's local variables, too.
    if _features(rest, model):
        taps = {**name_taps(graph, written, model), **taps}
        rest, drawn = _write_rest(subject, loss, taps)
    names = {of_edge(edge): tap for edge, tap in taps.items()}
    used = {one.name: names[one.name] for one in rest.inputs if one.name in names}
    if not used:
        raise BadInput(
            f"{graph.path}: the loss {of_edge(loss)!r} does not depend on what {model.path} "
            f"computes, {', '.join(outputs)}, so that its steps cannot be compared; convert the "
            "model again with the --output that the loss is computed from"
        )
    # New rows of a table by raw id are not random, see `tables_by_id`.
    needed = subjects.upstream(subject.raw, [loss, *outputs.values()], zeros_fed(subject))
    told = subjects.drawn_by(subject, written.emitter).items()
    draws = {name: dtype for name, dtype in told if split(name)[0] in needed}
    module = Joined(
        model, nodes, used, _draws(subject, model, written, draws), build_module(rest, carried)
    )
    through = {edge for edge in taps if of_edge(edge) in used}
    beside = _beside(subject, model, nodes, rest, through)
    rows = written.freed.size or rest.freed.size
    return Trained(module, [written.emitter, rest.emitter], {**drawn, **draws}, beside, rows)


def write_loss(subject: Subject, loss: Edge) -> Tuple[Written, Dict[str, str]]:
    """The source of the loss with its whole model, and {tensor: dtype} of random tensors."""
    return _write_rest(subject, loss, {})


def _write_rest(
    subject: Subject, loss: Edge, taps: Mapping[Edge, Tap]
) -> Tuple[Written, Dict[str, str]]:
    """The source of the loss, from taps and random tensors, and {tensor: dtype} of all random
    tensors."""
    graph, drawn = subject.found.graph, _sampled(subject, loss)
    tapped = {
        edge: Given(of_edge(edge), dtype, output_shape(graph, graph.nodes[edge[0]], edge[1]))
        for edge in taps
        for dtype in [output_dtype(graph, graph.nodes[edge[0]], edge[1])]
        # model.py may return the loss itself: if that were given, nothing would be left to compute.
        if edge != loss and dtype is not None
    }
    while True:
        given = {split(name): Given(name, dtype) for name, dtype in drawn.items()}
        found = subject.found._replace(graph=cut(graph, {**given, **tapped}))
        written = subject._replace(found=found).write({of_edge(loss): loss})
        more = subjects.drawn_by(subject, written.emitter)
        if more.keys() <= drawn.keys():
            return written, drawn
        # Cut there, the source may read further random tensors.
        drawn.update(more)


def _sampled(subject: Subject, loss: Edge) -> Dict[str, str]:
    """The outputs of class samplers on which the loss depends, with their dtypes."""
    nodes = subject.found.graph.nodes
    needed = subjects.upstream(subject.found.graph, [loss])
    return {
        of_edge(edge): _OF_SAMPLER[edge[1]]
        for name in sorted(needed)
        for edge in nodes[name].inputs
        if nodes[edge[0]].op.endswith(_SAMPLER) and subject.has(edge)
    }


def _of_model(model: Converted, written: Written) -> Dict[str, Parameter]:
    """The variables of model.py by their nodes, with their attributes and layouts in it."""
    attributes = {(one.name, one.rows): name for name, one in model.variables.items()}
    state = model.module.state_dict()
    found: Dict[str, Parameter] = {}
    for node, one in written.by_node.items():
        attribute = attributes.get((one.variable, one.rows))
        if attribute is None or attribute not in state:
            raise Lost(f"{model.path} lacks the variable {one.variable!r} of the graph's model")
        axes = model.variables[attribute].axes
        found[node] = own = one._replace(attribute=attribute, axes=axes)
        if tuple(state[attribute].shape) != own.size and not one.grows:
            raise Lost(
                f"{model.path} keeps {one.variable!r} as {list(state[attribute].shape)}, expected "
                f"{list(own.size)}"
            )
    return found


def _features(rest: Written, model: Converted) -> List[str]:
    """The features of the model that the rest of the loss reads by itself."""
    return [
        name
        for name, own in model.inputs.items()
        if any(set(one.tensors) & set(own.tensors) for one in rest.inputs)
    ]


def _draws(
    subject: Subject, model: Converted, written: Written, told: Collection[str]
) -> List[Tuple[str, Optional[str]]]:
    """The model's random ops outside of branches and loops, in its order."""
    nodes = subject.found.graph.nodes
    computed = (edge for edge in written.emitter.computed() if edge[0] in nodes)
    drawn = [edge for edge in computed if nodes[edge[0]].op in RANDOM]
    for edge in drawn:
        if of_edge(edge) in told and nodes[edge[0]].op not in DRAWS:
            raise BadInput(
                f"{model.path} draws {of_edge(edge)!r} at random by {nodes[edge[0]].op}, and "
                "cannot be given what TensorFlow draws; its steps cannot be compared"
            )
    names = {edge: of_edge(edge) if of_edge(edge) in told else None for edge in drawn}
    return [(nodes[edge[0]].op, name) for edge, name in names.items()]


def _beside(
    subject: Subject,
    model: Converted,
    nodes: Mapping[str, Parameter],
    rest: Written,
    through: Set[Edge],
) -> List[str]:
    """Sentences on the parts of the loss outside of model.py, and on parts of model.py outside of
    the loss."""
    graph = subject.found.graph
    reached = {node.name for node in graph.behind([name for name, _ in through])}
    own = {
        one.variable
        for node, one in rest.by_node.items()
        if one.trainable and (node not in nodes or node not in reached)
    }
    features = _features(rest, model)
    known = {one.attribute for one in nodes.values()}
    new = [name for name, _ in model.module.named_parameters() if name not in known]
    told = []
    if own:
        told.append(f"how model.py trains {some_of(sorted(own))}, which the loss reads past it")
    if features:
        told.append(f"what the loss makes of {some_of(features)} past model.py")
    if new:
        told.append(f"how model.py trains {some_of(new)}, which the graph lacks")
    return told
