"""The subject of a comparison: a checkpoint's graph, as TensorFlow's and as a module's source.

TensorFlow must be fed more than the rows:

1. the flags for training, with the value of the module's `training`
2. the constants of `Setting.feeds`, which the module gets too if it takes them
3. for each dropout at a constant rate a value with which it drops nothing, see `Layer.off`

Any other placeholder that the outputs depend on is refused, by name.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Set

from migrate.behaviour.setting import Setting
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.attributes import dtypes
from migrate.graph.find import MetaGraph, find_meta_graph, frozen_file, lowered, still_there
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.manifest.manifest import read_manifest
from migrate.model.emitter import Emitter
from migrate.model.folding import RANDOM
from migrate.model.load import Written, write_source
from migrate.model.named_inputs import as_converted
from migrate.model.outputs import Outputs
from migrate.scoring.module_inputs import input_called
from semisync.common.errors import BadInput, Findings, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import of_edge
from semisync.common.walks import reachable

_PLACEHOLDERS = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"}
_DRAWS = re.compile(
    "(Stateless)?(Random|Multinomial|(Parameterized)?TruncatedNormal).*|.*CandidateSampler"
)


class Subject(NamedTuple):
    """A checkpoint and its graph.

    Attributes:
        raw: the graph of TensorFlow.
        found: the graph that is converted, without function calls, and its variables' places.
    """

    checkpoint: Checkpoint
    raw: Graph
    found: MetaGraph

    def write(self, outputs: Outputs) -> Written:
        """The source of a module of these outputs."""
        return write_source(self.found, self.checkpoint, outputs)

    def has(self, edge: Edge) -> bool:
        """Whether it is a tensor of TensorFlow's graph, too."""
        return edge[0] in self.raw.nodes


def open_subject(
    checkpoint: Checkpoint, converted: str, setting: Setting, inputs: Mapping[str, Any] = {}
) -> Subject:
    """Opens the graph of a checkpoint as its conversion reads it.

    Args:
        inputs: INPUTS of the conversion's model.py, if that is compared.

    Raises:
        BadInput: there is no graph, or it is another model's.
    """
    meta = setting.meta
    if meta is None and frozen_file(checkpoint) is None:  # of which there is no manifest
        meta = still_there(read_manifest(converted).meta, checkpoint.prefix, converted)
    found = find_meta_graph(checkpoint, meta)
    if found is None:
        raise BadInput(f"there is no graph beside {checkpoint.prefix}; name one with --meta")
    taken = {name: one.tensors for name, one in inputs.items()}
    whole = lowered(found, setting.assets)
    graph = as_converted(whole.graph, taken)
    return Subject(checkpoint, found.graph, whole._replace(graph=graph))


def training_feeds(emitter: Emitter, setting: Setting, training: bool) -> Dict[str, Any]:
    """{tensor: value} of the flags that switch training on; the caller's own values win."""
    told = {flag: setting.feed(flag) for flag in emitter.flags}
    return {flag: training if value is None else bool(value) for flag, value in told.items()}


def no_dropout(subject: Subject, emitter: Emitter) -> Dict[str, float]:
    """The feeds with which each recognised dropout drops nothing: {tensor: value}.

    Dropouts in a function or a loop are left out: their tensors cannot be fed.
    """
    off: Dict[str, float] = {}
    for layer in emitter.layers.values():
        if all(subject.has(edge) and not emitter.in_loop(edge[0]) for edge in layer.off):
            off.update((of_edge(edge), value) for edge, value in layer.off.items())
    return off


def drawn_by(subject: Subject, emitter: Emitter) -> Dict[str, str]:
    """The tensors that a module would draw at random, with their dtypes, in their order; without
    recognised dropout, and those in branches, loops and functions, where nothing can be fed."""
    nodes = subject.found.graph.nodes
    return {
        of_edge(edge): str(value.dtype)
        for edge, value in emitter.computed().items()
        if subject.has(edge) and nodes[edge[0]].op in RANDOM
    }


def refuse_unfed(subject: Subject, outputs: Iterable[Edge], fed: Iterable[str]) -> None:
    """Raises UsageError, or Several, if an output depends on a placeholder without a value."""
    findings = Findings()
    for name in sorted(upstream(subject.raw, outputs, fed)):
        node = subject.raw.nodes[name]
        if node.op in _PLACEHOLDERS and node.op != "PlaceholderWithDefault":
            kind = (dtypes(subject.raw, node, "dtype") or ["a value"])[0]
            findings.note(
                UsageError(
                    f"{subject.raw.path}: what is compared depends on the placeholder {name!r} "
                    f"({kind}), which the converted model does not take; give TensorFlow a value "
                    f"with --feed {name}=VALUE"
                )
            )
    findings.end()


def drawing(subject: Subject, outputs: Iterable[Edge], fed: Iterable[str]) -> str:
    """A listing of the nodes before the outputs that draw at random."""
    nodes = [subject.found.graph.nodes[n] for n in upstream(subject.found.graph, outputs, fed)]
    return some_of(map(repr, _drawing(nodes))) or "an op that is not known"


def draws(subject: Subject, outputs: Iterable[Edge]) -> bool:
    """Whether tensors of TensorFlow's graph depend on random values."""
    return bool(_drawing(subject.raw.nodes[name] for name in upstream(subject.raw, outputs)))


def _drawing(nodes: Iterable[Node]) -> List[str]:
    return sorted(node.name for node in nodes if _DRAWS.fullmatch(node.op))


def upstream(
    graph: Graph, outputs: Iterable[Edge], fed: Iterable[str] = (), controls: bool = True
) -> Set[str]:
    """Names of the nodes that the outputs depend on, other than through fed tensors.

    Args:
        controls: whether control inputs count.
    """
    ends = set(fed)

    def names(edges: Iterable[Edge]) -> List[str]:
        known = (edge for edge in edges if edge[0] in graph.nodes)
        return [edge[0] for edge in known if of_edge(edge) not in ends]

    def before(name: str) -> List[str]:
        node = graph.nodes[name]
        return names([*node.inputs, *((one, 0) for one in node.controls if controls)])

    return set(reachable(names(outputs), before))


def session_feeds(
    setting: Setting, taken: Mapping[str, Any], constants: Mapping[str, Any]
) -> Dict[str, Any]:
    """The caller's constants for a session: those of `told_feeds` under the tensors of the module's
    inputs, the others under their own names."""
    others = {name: value for name, value in setting.feeds.items() if name not in constants}
    return {**others, **{taken[name].tensors[0]: value for name, value in constants.items()}}


def told_feeds(setting: Setting, taken: Mapping[str, Any]) -> Dict[str, Any]:
    """The caller's constants that a module takes, by its names."""
    named = ((input_called(name, taken), value) for name, value in setting.feeds.items())
    return {name: value for name, value in named if name is not None}
