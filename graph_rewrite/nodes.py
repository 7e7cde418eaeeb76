"""An index over a GraphDef: who makes a tensor, who uses it.

All of graph_rewrite reads graphs through it, those of a MetaGraph and those being built alike
(`Nodes.of`). A tensor is named as in a GraphDef: "op" is its output 0, "op:1" its output 1, "^op" a
control edge.
"""

import collections
import functools
import itertools
from typing import Any

CONTROL = -1  # the output of a control edge

# One use of a tensor: the node that takes it, the number of its input, and the maker's output.
Use = collections.namedtuple("Use", "node input output")


@functools.lru_cache(maxsize=1 << 18)
def split(tensor):
    """("op", output) of a tensor's name; the output of "^op" is CONTROL."""
    if tensor.startswith("^"):
        return tensor[1:], CONTROL
    name, _, output = tensor.partition(":")
    return name, int(output or 0)


def join(name, output=0):
    """The name of a tensor, as it stands in a GraphDef."""
    if output == CONTROL:
        return "^" + name
    return "{}:{}".format(name, output) if output else name


class Nodes:
    """The nodes of one GraphDef, or of one function of its library.

    Args:
      nodes: NodeDefs, in their order.
      results: {tensor: [tensors]}, see below.

    Attributes:
      by_name: {name: NodeDef}, in that order.
      results: {a tensor that a call makes: the tensors inside the called functions that it may
        be}; empty unless functions were opened, see `graph_rewrite.opened`.
    """

    def __init__(self, nodes, results=None):
        self.results = results or {}
        self.by_name = collections.OrderedDict((node.name, node) for node in nodes)
        self._types: Any = None
        self._uses: Any = None
        self._waiting: Any = None

    @classmethod
    def of(cls, graph):
        """Of a GraphDef, a MetaGraphDef or a tf.Graph."""
        graph = graph.as_graph_def() if hasattr(graph, "as_graph_def") else graph
        return cls(getattr(graph, "graph_def", graph).node)

    def __getitem__(self, name):
        return self.by_name[name]

    def get(self, name):
        """The NodeDef of that name, or None."""
        return self.by_name.get(name)

    def __contains__(self, name):
        return name in self.by_name

    def __iter__(self):
        return iter(self.by_name.values())

    def __len__(self):
        return len(self.by_name)

    def of_type(self, holds):
        """The NodeDefs of some types, a list in their order.

        Args:
          holds: function of an op's type, asked once for each.
        """
        if self._types is None:
            self._types = [node.op for node in self]
        wanted = {kind for kind in set(self._types) if holds(kind)}
        return [node for node, kind in zip(self, self._types) if kind in wanted] if wanted else []

    def maker(self, tensor):
        """The NodeDef that makes a tensor."""
        return self.by_name[split(tensor)[0]]

    def inputs(self, node):
        """The names of the tensors that a NodeDef takes, without control edges."""
        return [name for name in node.input if not name.startswith("^")]

    def makers(self, node):
        """The names of the nodes that make what a NodeDef takes, a list."""
        return [split(tensor)[0] for tensor in self.inputs(node)]

    def control_inputs(self, node):
        """The names of the nodes that a NodeDef waits for."""
        return [name[1:] for name in node.input if name.startswith("^")]

    def uses(self, name):
        """Every `Use` of what a node makes, a list."""
        self._index()
        return self._uses.get(name, [])

    def waiting(self, name):
        """The names of the nodes that wait for a node, by a control edge, a tuple.

        There may be thousands; all for which the same ones wait have one and the same tuple.
        """
        self._index()
        return self._waiting.get(name, ())

    def following(self, name):
        """The names of the nodes that take what a node makes, then of those that wait for it.

        An iterator; it may give a name several times.
        """
        takers = (use.node.name for use in self.uses(name))
        return itertools.chain(takers, self.waiting(name))

    def users(self, name):
        """The names of the nodes that take what a node makes, or wait for it, a set."""
        return set(self.following(name))

    def missing(self):
        """The names of the nodes that others take or wait for, and that are not there, sorted."""
        self._index()
        return sorted((self._uses.keys() | self._waiting.keys()) - self.by_name.keys())

    def _index(self):
        if self._uses is not None:
            return
        self._uses = collections.defaultdict(list)
        alike = collections.defaultdict(list)  # control edges of a node -> those that have the same
        for name, node in self.by_name.items():
            inputs = list(node.input)
            for number, tensor in enumerate(inputs):
                if tensor[0] == "^":  # the rest are, too
                    alike[tuple(inputs[number:])].append(name)
                    break
                maker, output = split(tensor)
                self._uses[maker].append(Use(node, number, output))
        self._waiting = _waiting(alike)

    def reachable(self, starts, follow):
        """The names of all nodes that are reached from `starts`, these too.

        Args:
          starts: names.
          follow: NodeDef -> names to go on to.
        """
        found, waiting = set(starts), list(starts)
        while waiting:
            for name in follow(self.by_name[waiting.pop()]):
                if name not in found and name in self.by_name:
                    found.add(name)
                    waiting.append(name)
        return found

    def ancestors(self, starts):
        """The names of all nodes that `starts` need, by data or control, these too."""
        return self.reachable(starts, lambda node: [split(tensor)[0] for tensor in node.input])

    def descendants(self, starts):
        """The names of all nodes that need one of `starts`, these too."""
        return self.reachable(starts, lambda node: self.users(node.name))


def _waiting(alike):
    """{node: names of those that wait for it}, of {control edges: names of who has them}.

    There may be a control edge between any two nodes, nearly; but where there are millions, many
    nodes have the same ones.
    """
    lists = collections.defaultdict(list)  # edge -> which lists of names
    for number, edges in enumerate(alike):
        for edge in set(edges):
            lists[edge].append(number)
    names, joined = list(alike.values()), {}
    for numbers in set(map(tuple, lists.values())):
        joined[numbers] = tuple(itertools.chain.from_iterable(names[n] for n in numbers))
    return {edge[1:]: joined[tuple(numbers)] for edge, numbers in lists.items()}
