"""An index over a graph: who makes a tensor, who uses it.

All of graph_rewrite reads graphs through it: `Nodes` those of TensorFlow, and migrate those that it
decodes itself. Tensors have their names in a GraphDef (`semisync.common.tensor_names`).
"""

import collections
import itertools
from typing import Any, Dict, List, Set

from graph_rewrite.graph.ops import DEFAULTS
from semisync.common.tensor_names import split

_BESIDE = "loc:@"  # in "_class", before the name of an op whose device a node shares

# One use of a tensor: the node that takes it, the number of its input, and the maker's output.
Use = collections.namedtuple("Use", "node input output")


def colocated_with(node):
    """The names of the ops whose device a node with "_class" shares, a list."""
    if "_class" not in node.attr:  # looking up a missing key would add it to a protobuf map
        return []
    classes = [name.decode() for name in node.attr["_class"].list.s]
    return [name[len(_BESIDE) :] for name in classes if name.startswith(_BESIDE)]


class Index:
    """The nodes of one graph, or of one function of its library.

    A subclass has `constant(node)`: the value of a Const, a NumPy array; None where it is large.

    Args:
        nodes: NodeDefs, or records with a `name`, `op` and `input`, in the graph's order.
        results: {tensor: [tensors]}, see below.

    Attributes:
        by_name: {name: NodeDef}, in the graph's order.
        results: {a tensor that a call makes: the tensors inside the called functions that it may
            be}; empty unless functions were opened, see `graph_rewrite.graph.functions`.
    """

    def __init__(self, nodes, results=None):
        self.results = results or {}
        self.by_name = collections.OrderedDict((node.name, node) for node in nodes)
        self._types: Any = None
        self._uses: Any = None
        self._controls: Dict[str, tuple] = {}  # node -> its control inputs
        self._known: Dict[tuple, tuple] = {}  # control edges -> the same without "^"
        self._alike: Any = None
        self._waiting: Any = None
        self._order: Dict[str, int] = {}

    def __getitem__(self, name):
        return self.by_name[name]

    def get(self, name):
        """The node of that name.

        Args:
            name: of a node.

        Returns:
            A NodeDef, or None.
        """
        return self.by_name.get(name)

    def __contains__(self, name):
        return name in self.by_name

    def __iter__(self):
        return iter(self.by_name.values())

    def __len__(self):
        return len(self.by_name)

    def of_type(self, holds):
        """The nodes of some types, in their order.

        Args:
            holds: function of an op's type, asked once for each.

        Returns:
            A list of NodeDefs.
        """
        if self._types is None:
            self._types = [node.op for node in self]
        wanted = {kind for kind in set(self._types) if holds(kind)}
        return [node for node, kind in zip(self, self._types) if kind in wanted] if wanted else []

    def ordered(self, names):
        """Sorts names by the graph's order.

        Args:
            names: of nodes.

        Returns:
            A list of names.
        """
        if not self._order:
            self._order = {name: number for number, name in enumerate(self.by_name)}
        return sorted(names, key=self._order.__getitem__)

    def maker(self, tensor):
        """The node that makes a tensor.

        Args:
            tensor: its name.

        Returns:
            A NodeDef.
        """
        return self.by_name[split(tensor)[0]]

    def inputs(self, node):
        """The tensors that a node takes; control edges are not among them.

        Args:
            node: a NodeDef.

        Returns:
            A list of names.
        """
        taken = []
        for name in node.input:
            if name[:1] == "^":
                break
            taken.append(name)
        return taken

    def makers(self, node):
        """The nodes that make a node's inputs.

        Args:
            node: a NodeDef.

        Returns:
            A list of names.
        """
        return [split(tensor)[0] for tensor in self.inputs(node)]

    def control_inputs(self, node):
        """The nodes that a node waits for.

        There may be thousands; all that wait for the same ones share one tuple.

        Args:
            node: a NodeDef.

        Returns:
            A tuple of names.
        """
        taken = node.input
        # A NodeDef lists its control edges last (node_def.proto).
        if not taken or taken[-1][:1] != "^":
            return ()
        if node.name not in self._controls:
            edges = tuple(taken[len(self.inputs(node)) :])
            # One tuple per distinct list, kept: callers tell lists apart by their id.
            if edges not in self._known:
                self._known[edges] = tuple(edge[1:] for edge in edges)
            self._controls[node.name] = self._known[edges]
        return self._controls[node.name]

    def uses(self, name):
        """Every use of a node's outputs.

        Args:
            name: of the node.

        Returns:
            A list of `Use`.
        """
        self._index()
        return self._uses.get(name, [])

    def waiting(self, name):
        """The nodes that wait for a node, by a control edge.

        There may be thousands; nodes that the same ones wait for share one tuple.

        Args:
            name: of the node.

        Returns:
            A tuple of names.
        """
        self._index()
        return self._waiting.get(name, ())

    def alike(self):
        """Groups the nodes by their control inputs.

        Returns:
            (control inputs, names of the nodes that have these) for each distinct tuple.
        """
        self._index()
        return self._alike.values()

    def following(self, name):
        """The nodes that take a node's outputs, then those that wait for it.

        Args:
            name: of the node.

        Returns:
            An iterator of names, which may repeat a name.
        """
        takers = (use.node.name for use in self.uses(name))
        return itertools.chain(takers, self.waiting(name))

    def users(self, name):
        """The nodes that take a node's outputs, or wait for it.

        Args:
            name: of the node.

        Returns:
            A set of names.
        """
        return set(self.following(name))

    def missing(self):
        """The nodes whose outputs others take or wait for, but that the graph lacks.

        Returns:
            Their names, sorted.
        """
        self._index()
        return sorted((self._uses.keys() | self._waiting.keys()) - self.by_name.keys())

    def _index(self):
        if self._uses is not None:
            return
        self._uses = collections.defaultdict(list)
        self._alike = collections.OrderedDict()  # id of control inputs -> (these, their nodes)
        for name, node in self.by_name.items():
            for number, tensor in enumerate(self.inputs(node)):
                maker, output = split(tensor)
                self._uses[maker].append(Use(node, number, output))
            controls = self.control_inputs(node)
            if controls:
                self._alike.setdefault(id(controls), (controls, []))[1].append(name)
        self._waiting = _waiting(list(self._alike.values()))

    def reachable(self, starts, follow, together=None, without=frozenset()):
        """All nodes that are reached from `starts`, and `starts` themselves.

        Args:
            starts: names.
            follow: NodeDef -> names to go on to.
            together: NodeDef -> a tuple of names to go on to as well, the same tuple where many
                nodes have the same names: each tuple is followed once.
            without: names of nodes at which to stop.

        Returns:
            A set of names.
        """
        reached: Set[str] = set()
        waiting: List[str] = []
        passed: Dict[int, tuple] = {}

        def reach(names):
            for name in names:
                if name not in reached and name in self.by_name and name not in without:
                    reached.add(name)
                    waiting.append(name)

        reach(starts)
        while waiting:
            node = self.by_name[waiting.pop()]
            reach(follow(node))
            names = together(node) if together else ()
            if id(names) not in passed:
                passed[id(names)] = names  # kept alive, so that no other tuple gets its id
                reach(names)
        return reached

    def ancestors(self, starts, without=frozenset()):
        """All nodes that `starts` need, by data or control, and `starts` themselves.

        Args:
            starts: names.
            without: see `reachable`.

        Returns:
            A set of names.
        """
        return self.reachable(starts, self.makers, self.control_inputs, without)

    def descendants(self, starts):
        """All nodes that need one of `starts`, and `starts` themselves.

        Args:
            starts: names.

        Returns:
            A set of names.
        """
        return self.reachable(starts, self._takers, lambda node: self.waiting(node.name))

    def _takers(self, node):
        return [use.node.name for use in self.uses(node.name)]


def _waiting(alike):
    """{node: names of the nodes that wait for it}, from the groups of `Index.alike`.

    There may be a control edge between almost any two nodes; but where there are millions, many
    nodes have the same ones.
    """
    lists = collections.defaultdict(list)  # node -> the numbers of the lists that wait for it
    for number, (makers, _) in enumerate(alike):
        for maker in set(makers):  # a node may wait for another twice
            lists[maker].append(number)
    joined = {}
    for numbers in set(map(tuple, lists.values())):  # joined once for all nodes of the same lists
        joined[numbers] = tuple(itertools.chain.from_iterable(alike[n][1] for n in numbers))
    return {maker: joined[tuple(numbers)] for maker, numbers in lists.items()}


def attribute(node, key):
    """The value of a NodeDef's attribute: bool, int, float, str or dtype number.

    Of one that the node lacks: its value in `ops.DEFAULTS`, else None.
    """
    if key not in node.attr:  # looking up a missing key would add it to a protobuf map
        return DEFAULTS.get(node.op, {}).get(key)
    kind = node.attr[key].WhichOneof("value")
    value = getattr(node.attr[key], kind)
    return value.decode() if isinstance(value, bytes) else value
