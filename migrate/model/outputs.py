"""The output tensors of a graph.

1. Those that the caller names: tensors, or outputs of a SavedModel's signatures.
2. Those of a SavedModel's signature, `serving_default` before others.
3. The one that `migrate.graph.interface.outputs` chooses. If it chooses several or none, the
   candidates are listed.
"""

from __future__ import annotations

from typing import Dict, Sequence, Union

from migrate.graph.interface import find_interface
from migrate.graph.interface.signatures import in_order
from migrate.graph.metagraph import Edge, Graph
from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import split

Outputs = Dict[str, Edge]


def find_outputs(graph: Graph, named: Union[str, Sequence[str], None]) -> Outputs:
    """The outputs by name.

    Raises:
        UsageError: a name that the graph does not have.
        BadInput: they cannot be determined.
    """
    if named is not None:
        names = [named] if isinstance(named, str) else list(named)
        return {name: _named(graph, name) for name in names}
    signature = next(iter(in_order(graph)), None)
    if signature is not None:
        return {name: tensor_edge(graph, told) for name, told in sorted(signature.outputs.items())}
    likely = find_interface(graph).outputs
    chosen = [output.tensor for output in likely if output.chosen]
    if len(chosen) == 1:
        return {chosen[0]: tensor_edge(graph, chosen[0])}
    candidates = [output.tensor for output in likely]
    more = f", such as {some_of(candidates, most=8)}"
    raise BadInput(
        f"{graph.path}: which tensors are the outputs cannot be told; name them with --output"
        + (more if candidates else ": the graph has no loss with labels and no end that is a score")
    )


def _named(graph: Graph, name: str) -> Edge:
    told = [signature.outputs.get(name) for signature in in_order(graph)]
    return tensor_edge(graph, next(filter(None, told), name))


def tensor_edge(graph: Graph, tensor: str) -> Edge:
    """The edge named "NODE:0" or "NODE"; raises UsageError if the graph does not have it."""
    name, output = split(tensor)
    if name not in graph.nodes:
        near = [other for other in graph.nodes if other.rpartition("/")[2] == name]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{graph.path} has no tensor {tensor!r}{hint}")
    return name, output
