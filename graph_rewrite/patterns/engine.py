"""The kinds of patterns; each yields every way in which a tensor matches.

The language itself, with its semantics, is `graph_rewrite.patterns.language`.
"""

from typing import Any, Dict, FrozenSet, NamedTuple, Optional, Tuple

from graph_rewrite.graph.index import attribute
from graph_rewrite.graph.passthrough import trace
from semisync.common.tensor_names import split


class State(NamedTuple):
    """The progress of one match: {name: tensor}, and the names of the nodes recognised so far."""

    bound: Dict[str, str]
    ops: Tuple[str, ...]


class Pattern:
    """Base of all: `ways` yields a State for every way in which a tensor matches.

    Attributes:
        roots: the op types that the tensor's maker must be of, a frozenset; None: any.
    """

    roots: Optional[FrozenSet[str]] = None

    def ways(self, nodes, tensor, state):
        raise NotImplementedError


class Name(Pattern):
    """Any tensor; one that is bound already must be the same."""

    def __init__(self, name):
        self.name = name

    def ways(self, nodes, tensor, state):
        if self.name not in state.bound:
            yield State(dict(state.bound, **{self.name: tensor}), state.ops)
        elif state.bound[self.name] == tensor:
            yield state


class Anything(Pattern):
    """See `graph_rewrite.patterns.language.ANY`."""

    def ways(self, nodes, tensor, state):
        yield state


class Op(Pattern):
    """See `graph_rewrite.patterns.language.op`."""

    def __init__(self, types, inputs, name, swap, output, attributes):
        self.types = self.roots = frozenset([types] if isinstance(types, str) else types)
        self.inputs = list(map(as_pattern, inputs))
        self.name, self.swap, self.output, self.attributes = name, swap, output, attributes

    def ways(self, nodes, tensor, state):
        maker, output = split(tensor)
        node: Any = nodes.get(maker)
        if node is None or node.op not in self.types:
            return
        if self.output is not None and output != self.output:
            return
        if any(attribute(node, key) != value for key, value in self.attributes.items()):
            return
        taken = nodes.inputs(node)
        if len(taken) < len(self.inputs):  # further inputs may be anything, missing ones may not
            return
        states = [State(state.bound, state.ops + (maker,))]
        if self.name is not None:
            states = Name(self.name).ways(nodes, tensor, states[0])
        for named in states:
            for way in self._inputs(nodes, taken, named):
                yield way

    def _inputs(self, nodes, taken, state):
        orders = [taken]
        if self.swap and len(taken) > 1:
            orders.append([taken[1], taken[0]] + taken[2:])
        for order in orders:
            states = [state]
            for pattern, tensor in zip(self.inputs, order):
                states = _of_all(pattern, nodes, tensor, states)
            for way in states:
                yield way


class Via(Pattern):
    """See `graph_rewrite.patterns.language.via`."""

    def __init__(self, hops, pattern):
        self.hops, self.pattern = frozenset(hops), as_pattern(pattern)

    def ways(self, nodes, tensor, state):
        for passed in trace(nodes, tensor, self.hops):
            for way in self.pattern.ways(nodes, passed, state):
                yield way


class Either(Pattern):
    """See `graph_rewrite.patterns.language.either`."""

    def __init__(self, patterns):
        self.patterns = list(map(as_pattern, patterns))
        roots = [pattern.roots for pattern in self.patterns]
        # One alternative that may start at any op leaves the whole without a restriction.
        self.roots = None if None in roots else frozenset().union(*roots)

    def ways(self, nodes, tensor, state):
        for pattern in self.patterns:
            for way in pattern.ways(nodes, tensor, state):
                yield way


class Both(Pattern):
    """See `graph_rewrite.patterns.language.both`."""

    def __init__(self, first, second):
        self.first, self.second = as_pattern(first), as_pattern(second)

    def ways(self, nodes, tensor, state):
        return _of_all(self.second, nodes, tensor, self.first.ways(nodes, tensor, state))


class Given(Pattern):
    """See `graph_rewrite.patterns.language.given`."""

    def __init__(self, pattern, holds):
        self.pattern, self.holds = as_pattern(pattern), holds
        self.roots = self.pattern.roots

    def ways(self, nodes, tensor, state):
        for way in self.pattern.ways(nodes, tensor, state):
            if self.holds(nodes, way.bound):
                yield way


def as_pattern(pattern):
    """A Pattern; a string stands for the `Name` of a tensor."""
    return Name(pattern) if isinstance(pattern, str) else pattern


def _of_all(pattern, nodes, tensor, states):
    for state in states:
        for way in pattern.ways(nodes, tensor, state):
            yield way
