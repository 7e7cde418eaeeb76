"""The names of nodes' values in a method.

1. The ids of a look-up are named after its feature: `city_ids`, and their mask in a dense feature
   `city_present`.
2. A value that is the only one to leave a scope has the scope's name:
   input_layer/city_indicator/Sum, the only value read from input_layer/city_indicator, is
   `city_indicator`. If nothing reads it, it is an output, and named after the innermost scope; else
   after the outermost one that it leaves.
3. A value computed from a single input, without a variable, has that input's name.
4. Any other value is named by its node and its scope, see `source.names.local_name`.
"""

from __future__ import annotations

from collections import Counter
from typing import Container, Dict, FrozenSet, List, Mapping, Optional, Sequence

from graph_rewrite.graph.ops import MERGE, VARIABLES
from migrate.graph.interface.inputs import Inputs, is_input
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.control.regions import Regions
from migrate.model.layers.layer import SAME, Subject
from migrate.model.source.names import Names, local_name
from semisync.common.walks import reachable

_OF_SHAPES = {"Rank", "Shape", "ShapeN", "Size"}


class LocalNames:
    """The names in one method.

    Args:
        regions: in their last order.
        ids: names for the ids of look-ups, by their edges.
        trained: the nodes at which look-ups and layers with parameters end.
    """

    def __init__(
        self,
        subject: Subject,
        regions: Regions,
        inputs: Inputs,
        ids: Mapping[Edge, str],
        trained: Container[str],
    ) -> None:
        self._subject, self._inputs = subject, inputs
        self._names = Names()
        self._ids: Dict[str, str] = {}
        for edge, wish in ids.items():
            self._ids.setdefault(subject.beyond(edge)[0], wish)
        self._made_of: Dict[str, FrozenSet[str]] = {}
        for node in regions.order:
            sources = (self._source(edge) for edge in regions.read_by(node))
            made_of = frozenset[str]().union(*sources)
            has_values = node.op in VARIABLES or node.name in trained
            self._made_of[node.name] = made_of | {""} if has_values else made_of
        self._readers = regions.readers()
        left = {node.name: self._left(node) for node in regions.order if self._is_value(node)}
        count = Counter(left.values())
        self._scopes = {name: scope for name, scope in left.items() if scope and count[scope] == 1}

    def of(self, node: Node) -> str:
        """A name for the value of `node`, a new one each time."""
        if node.name in self._ids:
            return self.fresh(self._ids[node.name])
        scope = self._scopes.get(node.name)
        if scope is None:
            # Named after its input only if that is a single one and no variable, "", takes part.
            *more, source = self._made_of.get(node.name) or [""]
            own = node.name.rpartition("/")[2]
            return self.fresh(local_name(f"{source}/{own}" if source and not more else node.name))
        name = scope.rpartition("/")[2]
        return self.fresh(name if self._names.is_free(name) else local_name(scope))

    def fresh(self, wish: str) -> str:
        """As `Names.fresh`."""
        return self._names.fresh(wish)

    def _source(self, edge: Edge) -> FrozenSet[str]:
        """The names of the inputs that `edge` is computed from, and "" for variables."""
        node = self._subject.graph.nodes[edge[0]]
        found = self._inputs.of(edge) if is_input(node) else None
        return self._made_of.get(edge[0], frozenset()) if found is None else frozenset([found.name])

    def _is_value(self, node: Node) -> bool:
        # Neither a node that passes its input on nor a size or constant gets a scope's name.
        handed_on = node.op in SAME or node.name in self._subject.unchanged
        known = node.op in _OF_SHAPES or self._subject.constant((node.name, 0)) is not None
        return not handed_on and not known

    def _left(self, node: Node) -> Optional[str]:
        """The outermost scope that the value of `node` leaves; the innermost if it is not read."""
        scopes = node.name.split("/")[:-1]
        readers = self._readers_of(node)
        if not readers:
            return "/".join(scopes) or None
        paths = [reader.name.split("/") for reader in readers]
        for depth in range(1, len(scopes) + 1):
            if all(path[:depth] != scopes[:depth] for path in paths):
                return "/".join(scopes[:depth])
        return None

    def _readers_of(self, node: Node) -> List[Node]:
        """The nodes that compute with the value of `node`."""
        nodes = self._subject.graph.nodes

        def handed_on(name: str) -> bool:
            return nodes[name].op in SAME or name in self._subject.unchanged

        def following(name: str) -> List[str]:
            goes_on = name == node.name or handed_on(name)
            return [reader.name for reader in self._readers.get(name, [])] if goes_on else []

        found = set(reachable([node.name], following)) - {node.name}
        return [nodes[name] for name in found if not handed_on(name)]


def only_input(graph: Graph, inputs: Inputs, edge: Edge) -> Optional[str]:
    """The name of the one input that `edge` is computed from; None if it has several or no name."""

    def before(one: Edge) -> Sequence[Edge]:
        node = graph.nodes[one[0]]
        known = is_input(node) and inputs.of(one) is not None
        return () if known or node.op in MERGE else node.inputs

    read = [one for one in reachable([edge], before) if is_input(graph.nodes[one[0]])]
    names = {found.name for found in map(inputs.of, read) if found is not None}
    # A colon stands in a tensor's own name, "NODE:0", which says nothing of the feature.
    name = names.pop() if len(names) == 1 else ":"
    return local_name(name) if ":" not in name else None
