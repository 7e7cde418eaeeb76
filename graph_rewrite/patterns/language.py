"""A small language for subgraphs: declare one, then match it at a node.

    UPDATE = op(
        ("AssignSub", "AssignSubVariableOp"),
        via(CARRY, op(VARIABLES, name="variable")),
        op("Mul", op("Sub", via(READ | CARRY, "variable"), "source"), "rate", swap=True),
    )
    average = match(UPDATE, nodes, "bn/AssignMovingAvg")
    average["source"]                # "bn/moments/Squeeze"

A pattern is one of
    "name"          any tensor, bound to the name; a name that comes twice is the same tensor
    ANY             any tensor
    op(...)         a tensor that a node of some types makes, with patterns for its first inputs
    via(hops, p)    p, or a tensor that passes it on (see `graph_rewrite.graph.passthrough`)
    either(p, ...)  one of these
    both(p, q)      p and q at once, such as a name and a pattern for it
    given(p, f)     p, where f(nodes, bindings) holds

Matching tries every way, in the order written, so that a pattern need not care how two swapped
inputs, two alternatives and a repeated name go together.
"""

from graph_rewrite.patterns.engine import Anything, Both, Either, Given, Op, State, Via
from semisync.common.tensor_names import split

ANY = Anything()


class Match:
    """A subgraph that matches a pattern.

    Args:
        root: the name of the node it was matched at.
        state: the engine's bindings.

    Attributes:
        root: the name of the node it was matched at.
        bindings: {name: tensor}, tensors named as in a GraphDef.
        ops: the names of the nodes that the pattern's `op`s matched, from the root on.

    Examples:
        >>> from graph_rewrite.patterns.language import op
        >>> y = tf.nn.relu(tf.placeholder(tf.float32, [None], name="x"), name="y")
        >>> found = graph_rewrite.match(
        ...     op("Relu", "source"), graph_rewrite.Nodes.of(tf.get_default_graph()), "y"
        ... )
        >>> found["source"], found.root, found.get("other")
        ('x', 'y', None)
    """

    def __init__(self, root, state):
        self.root, self.bindings, self.ops = root, state.bound, state.ops

    def __getitem__(self, name):
        return self.bindings[name]

    def get(self, name, default=None):
        """The tensor that is bound to a name.

        Args:
            name: in the pattern.
            default: where it is not bound.

        Returns:
            The name of a tensor, or `default`.
        """
        return self.bindings.get(name, default)

    def __repr__(self):
        return "Match({!r}, {!r})".format(self.root, self.bindings)


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
    return Op(types, inputs, name=name, swap=swap, output=output, attributes=attributes)


def via(hops, pattern):
    """`pattern`, at the tensor or at any that it passes on through nodes of the op types `hops`."""
    return Via(hops, pattern)


def either(*patterns):
    """The alternatives, in this order."""
    return Either(patterns)


def both(first, second):
    """A tensor that matches both patterns."""
    return Both(first, second)


def given(pattern, holds):
    """`pattern` where `holds(nodes, bindings)`."""
    return Given(pattern, holds)


def ways(pattern, nodes, tensor):
    """Every `Match` of a pattern at a tensor, the first one first."""
    root = split(tensor)[0]
    node = nodes.get(root)
    # Most ops cannot match by their type alone.
    if pattern.roots is None or (node is not None and node.op in pattern.roots):
        for state in pattern.ways(nodes, tensor, State({}, ())):
            yield Match(root, state)


def match(pattern, nodes, tensor):
    """The first `Match` of a pattern at a tensor.

    Args:
        pattern: in the language of `graph_rewrite.patterns.language`.
        nodes: a `Nodes`.
        tensor: its name.

    Returns:
        A `Match`, or None.

    Examples:
        >>> from graph_rewrite.patterns.language import op
        >>> x = tf.placeholder(tf.float32, [None], name="x")
        >>> y = tf.nn.relu(x + 1.0, name="y")
        >>> nodes = graph_rewrite.Nodes.of(tf.get_default_graph())
        >>> graph_rewrite.match(op("Relu", op(("Add", "AddV2"), "x", "bias")), nodes, "y")
        Match('y', {'x': 'x', 'bias': 'add/y'})
    """
    return next(ways(pattern, nodes, tensor), None)
