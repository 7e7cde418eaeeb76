"""Graphs that crash or hang TensorFlow's own import, refused before it is called.

Unpack(num=10**9)           a billion outputs, each with a shape to be inferred
f(x) = f(x)                 a function that calls itself, whose shapes TensorFlow looks for
                            until the stack ends; likewise thousands that call one another
"""

from typing import Dict

from graph_rewrite.graph.functions import called_by, library_of
from semisync.common.compat import op_def
from semisync.common.errors import BadInput
from semisync.common.walks import in_order

MOST_OUTPUTS = 1 << 16  # of an op
_DEEPEST = 256  # functions that call one another


def refuse_deadly(graph_def):
    """Raises BadInput for a GraphDef that would crash TensorFlow, or take it hours."""
    library = library_of(graph_def)
    for nodes in (graph_def.node, *(function.node_def for function in library.values())):
        for node in nodes:
            _refuse_outputs(node)
    called = {
        name: [inner for node in function.node_def for inner in called_by(node, library)]
        for name, function in library.items()
    }
    depths: Dict[str, int] = {}
    for name in in_order(called, called.__getitem__, where="the graph's functions"):
        depths[name] = 1 + max((depths[inner] for inner in called[name]), default=0)
        if depths[name] > _DEEPEST:
            raise BadInput(
                "the graph's function {!r} calls another, which calls another, {} deep: expected "
                "at most {}".format(name, depths[name], _DEEPEST)
            )


def _refuse_outputs(node):
    definition = op_def(node.op)  # None of a call by name, or of an op that is not known
    for argument in definition.output_arg if definition is not None else ():
        count = node.attr[argument.number_attr].i if argument.number_attr else 1
        if count > MOST_OUTPUTS:
            raise BadInput(
                "{} ({}) has {} outputs, expected at most {}: the graph is damaged".format(
                    node.name, node.op, count, MOST_OUTPUTS
                )
            )
