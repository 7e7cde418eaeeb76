"""How patterns match: each kind yields every way, and a `Search` keeps the furthest miss.

The language itself, and what it means, is `graph_rewrite.patterns.language`.
"""

from collections import namedtuple
from typing import FrozenSet, Optional

from graph_rewrite.graph.index import attribute, split
from graph_rewrite.graph.passthrough import back

# How far one way of matching has come: {name: tensor}, and the nodes it has recognised, a tuple.
State = namedtuple("State", "bound ops")


class Search:
    """One attempt: the graph, and the furthest miss so far."""

    def __init__(self, nodes):
        self.nodes = nodes
        self._progress, self._where, self._tensor, self._expected = -1, None, None, []

    def miss(self, state, where, tensor, expected):
        """Notes a miss; the last one counts among those that came equally far.

        Hops look for the same thing further and further upstream, so that the last one saw the
        maker itself. Of two things expected of one tensor both are said.
        """
        progress = len(state.ops)
        if progress < self._progress or (progress == self._progress and where != self._where):
            return  # of two inputs the first complaint is the one to tell
        if progress > self._progress or tensor != self._tensor:
            self._expected = []
        self._progress, self._where, self._tensor = progress, where, tensor
        if expected not in self._expected:
            self._expected.append(expected)

    def sentence(self):
        name = split(self._tensor)[0]
        known = name in self.nodes
        made = "'{}' ({})".format(name, self.nodes[name].op) if known else "'{}'".format(name)
        expected = " or ".join(self._expected)
        if self._where is None:
            return "{} is not {}".format(made, expected)
        user, number = self._where
        return "{} '{}': its input {} is made by {}, expected {}".format(
            self.nodes[user].op, user, number, made, expected
        )


class Pattern:
    """Base of all: `ways` yields a State for every way in which a tensor matches.

    Attributes:
      roots: the op types that the tensor's maker must be of, a frozenset; None: any.
    """

    roots: Optional[FrozenSet[str]] = None

    def ways(self, search, tensor, state, where):
        raise NotImplementedError


class Name(Pattern):
    """Any tensor; one that is bound already must be the same."""

    def __init__(self, name):
        self.name = name

    def ways(self, search, tensor, state, where):
        if self.name not in state.bound:
            yield State(dict(state.bound, **{self.name: tensor}), state.ops)
        elif state.bound[self.name] == tensor:
            yield state
        else:
            expected = "{} '{}'".format(self.name, state.bound[self.name])
            search.miss(state, where, tensor, expected)


class Op(Pattern):
    """See `graph_rewrite.patterns.language.op`."""

    def __init__(self, types, inputs, name, swap, output, attributes):
        self.types = frozenset([types] if isinstance(types, str) else types)
        self.expected = " or ".join(sorted(self.types))
        self.roots = self.types
        self.inputs = [as_pattern(each) for each in inputs]
        self.name, self.swap, self.output, self.attributes = name, swap, output, attributes

    def ways(self, search, tensor, state, where):
        maker, output = split(tensor)
        node = search.nodes.get(maker)
        if node is None or node.op not in self.types:
            search.miss(state, where, tensor, self.expected)
            return
        if self.output is not None and output != self.output:
            search.miss(state, where, tensor, "its output {}".format(self.output))
            return
        for key, value in self.attributes.items():
            if attribute(node, key) != value:
                search.miss(state, where, tensor, "{} = {}".format(key, value))
                return
        states = [State(state.bound, state.ops + (maker,))]
        if self.name is not None:
            states = Name(self.name).ways(search, tensor, states[0], where)
        taken = search.nodes.inputs(node)
        if len(taken) < len(self.inputs):
            search.miss(state, where, tensor, "{} inputs".format(len(self.inputs)))
            return
        for each in states:
            for way in self._inputs(search, maker, list(enumerate(taken)), each):
                yield way

    def _inputs(self, search, maker, taken, state):
        orders = [taken]
        if self.swap and len(taken) > 1:
            orders.append([taken[1], taken[0]] + taken[2:])
        for order in orders:
            states = [state]
            for pattern, (number, tensor) in zip(self.inputs, order):
                states = _each(search, pattern, tensor, states, (maker, number))
            for way in states:
                yield way


class Via(Pattern):
    """See `graph_rewrite.patterns.language.via`."""

    def __init__(self, hops, pattern):
        self.hops, self.pattern = frozenset(hops), as_pattern(pattern)

    def ways(self, search, tensor, state, where):
        seen, waiting = {tensor}, [tensor]
        for each in waiting:  # grows meanwhile
            for way in self.pattern.ways(search, each, state, where):
                yield way
            for behind in back(search.nodes, each, self.hops):
                if behind not in seen:
                    seen.add(behind)
                    waiting.append(behind)


class Either(Pattern):
    """See `graph_rewrite.patterns.language.either`."""

    def __init__(self, patterns):
        self.patterns = [as_pattern(each) for each in patterns]
        roots = [each.roots for each in self.patterns]
        self.roots = None if None in roots else frozenset().union(*roots)

    def ways(self, search, tensor, state, where):
        for pattern in self.patterns:
            for way in pattern.ways(search, tensor, state, where):
                yield way


class Both(Pattern):
    """See `graph_rewrite.patterns.language.both`."""

    def __init__(self, one, other):
        self.one, self.other = as_pattern(one), as_pattern(other)

    def ways(self, search, tensor, state, where):
        first = self.one.ways(search, tensor, state, where)
        return _each(search, self.other, tensor, first, where)


class Given(Pattern):
    """See `graph_rewrite.patterns.language.given`."""

    def __init__(self, pattern, holds, expected):
        self.pattern, self.holds, self.expected = as_pattern(pattern), holds, expected
        self.roots = self.pattern.roots

    def ways(self, search, tensor, state, where):
        for way in self.pattern.ways(search, tensor, state, where):
            if self.holds(search.nodes, way.bound):
                yield way
            else:
                search.miss(way, where, tensor, self.expected)


def as_pattern(each):
    """A Pattern, also from the name that one may be written as."""
    return Name(each) if isinstance(each, str) else each


def _each(search, pattern, tensor, states, where):
    for state in states:
        for way in pattern.ways(search, tensor, state, where):
            yield way
