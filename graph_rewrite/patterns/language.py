"""A small language for subgraphs: declare one, then match it at a node.

    UPDATE = op(
        ("AssignSub", "AssignSubVariableOp"),
        via(CARRY, op(VARIABLES, name="variable")),
        op("Mul", op("Sub", via(READ | CARRY, "variable"), "source"), "rate", swap=True),
    )
    found = match(UPDATE, nodes, "bn/AssignMovingAvg")
    found["source"]                  # "bn/moments/Squeeze"

A pattern is one of
    "name"          any tensor, bound to the name; a name that comes twice is the same tensor
    op(...)         a tensor that a node of some types makes, with patterns for its first inputs
    via(hops, p)    p, or something that hands it on (see `graph_rewrite.graph.passthrough`)
    either(p, ...)  one of these
    both(p, q)      p and q at once, such as a name and what it stands for
    given(p, f, s)  p, where f(nodes, bindings) holds; s says what that means

Matching tries every way, in the order written, so that a pattern need not care how two swapped
inputs, two alternatives and a repeated name go together.

What does not match is a `NearMiss`, false, whose sentence tells of the furthest that matching came:
"AssignSub 'bn/AssignMovingAvg': its input 1 is made by 'x' (AddV2), expected Mul".
"""

from graph_rewrite.graph.index import split
from graph_rewrite.patterns.engine import Both, Either, Given, Op, Search, State, Via


class Match:
    """A subgraph that was found.

    Attributes:
      root: the name of the node it was matched at.
      bindings: {name: tensor}, tensors named as in a GraphDef.
      ops: the names of the nodes that the pattern's `op`s stand for, from the root on.
    """

    def __init__(self, root, state):
        self.root, self.bindings, self.ops = root, state.bound, state.ops

    def __getitem__(self, name):
        return self.bindings[name]

    def get(self, name, default=None):
        return self.bindings.get(name, default)

    def __repr__(self):
        return "Match({!r}, {!r})".format(self.root, self.bindings)


class NearMiss:
    """False, and the sentence that says why."""

    def __init__(self, sentence):
        self.sentence = sentence

    def __bool__(self):
        return False

    def __repr__(self):
        return "NearMiss({!r})".format(self.sentence)


def op(types, *inputs, name=None, swap=False, output=None, **attributes):
    """A tensor that a node makes.

    Args:
      types: op types, one or several.
      *inputs: patterns for its first inputs; further ones may be anything.
      name: binds the tensor.
      swap: its first two inputs may stand either way round.
      output: the number of the output that it must be; None: any.
      **attributes: the values that attributes of the node must have.
    """
    return Op(types, inputs, name, swap, output, attributes)


def via(hops, pattern):
    """`pattern`, at the tensor or at any that it hands on over nodes of the op types `hops`."""
    return Via(hops, pattern)


def either(*patterns):
    """The alternatives, in this order."""
    return Either(patterns)


def both(one, other):
    """A tensor that matches both patterns."""
    return Both(one, other)


def given(pattern, holds, expected):
    """`pattern` where `holds(nodes, bindings)`; `expected` says in a few words what that asks."""
    return Given(pattern, holds, expected)


def ways(pattern, nodes, tensor):
    """Every `Match` of a pattern at a tensor, the first one first."""
    if not _may(pattern, nodes, tensor):
        return
    for state in pattern.ways(Search(nodes), tensor, State({}, ()), None):
        yield Match(split(tensor)[0], state)


def match(pattern, nodes, tensor):
    """The first `Match` of a pattern at a tensor, or a `NearMiss`."""
    search = Search(nodes)
    for state in pattern.ways(search, tensor, State({}, ()), None):
        return Match(split(tensor)[0], state)
    return NearMiss(search.sentence())


def first(pattern, nodes, tensor):
    """The first `Match` of a pattern at a tensor, or None."""
    return next(ways(pattern, nodes, tensor), None)


def find(pattern, nodes):
    """The first `Match` of a pattern at output 0 of every node where there is one."""
    for node in nodes:
        found = first(pattern, nodes, node.name)
        if found:
            yield found


def _may(pattern, nodes, tensor):
    """Whether the op of a tensor's maker lets it match at all: most do not."""
    node = nodes.get(split(tensor)[0])
    return pattern.roots is None or (node is not None and node.op in pattern.roots)
