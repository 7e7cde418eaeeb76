"""Patterns of a variable: as an op changes it, and as arithmetic reads it; ref and resource."""

from graph_rewrite.graph.ops import (
    ADD,
    ASSIGN,
    CARRY,
    CAST,
    READ,
    RESTORES,
    SCATTER,
    SHAPE,
    SUBTRACT,
    VARIABLES,
)
from graph_rewrite.graph.passthrough import ends
from graph_rewrite.patterns.language import op, via
from semisync.common.tensor_names import split


def variable(name="variable"):
    """The variable itself: a ref, or a resource's handle."""
    return via(CARRY, op(VARIABLES, name=name))


def read(name="variable"):
    """The value of a variable."""
    return via(CARRY | READ | CAST, op(VARIABLES, name=name))


def shaped(name="variable"):
    """The value of a variable, reshaped to broadcast."""
    return via(CARRY | READ | CAST | SHAPE, op(VARIABLES, name=name))


# Any op that changes a whole variable; binds "source", the value that is assigned or added.
CHANGE = op(ASSIGN | ADD | SUBTRACT, variable(), "source")
# Any op that changes some rows of a variable.
SCATTERED = op(SCATTER, variable(), "rows", "source")


def initializer(name):
    """The name of the node that gives a variable its first value: its own Assign."""
    return "{}/Assign".format(name)


def initialises(nodes, node, variable):
    """Whether a NodeDef that writes a variable, by its name, initialises or restores it."""
    if node.op not in ASSIGN:
        return False
    if node.name == initializer(variable):
        return True
    makers = {split(end)[0] for end in ends(nodes, node.input[1], CARRY | CAST | SHAPE)}
    return any(maker in nodes and nodes[maker].op in RESTORES for maker in makers)
