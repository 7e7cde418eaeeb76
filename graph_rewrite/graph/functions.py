"""A graph whose called functions are opened: the bodies of If, While and calls are added to it.

Control flow of version 2 hides its branches in the library. Opened, they read like version 1:

1. The body of the branch `then_branch` of the node "bn/cond" becomes nodes that are named
   "bn/cond[then_branch]/...". No op of a graph can have such a name, so none is ever mistaken.
2. Each of its arguments is a node of op `ARGUMENT` whose input is the call's: a hop, as Switch is.
3. The call itself stays, and so do the names of its outputs. `Nodes.results` says which tensors of
   the bodies an output may be: a hop, as Merge is.

Bodies are opened again wherever they are called, at any depth; a function that calls itself is
opened once.
"""

from typing import Any, Dict, List, Tuple

from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.ops import ARGUMENT, CALLS, LOOPS
from semisync.common.budget import Budget
from semisync.common.compat import op_def, tf
from semisync.common.tensor_names import join

# Bounds on an opened graph: its size doubles with every function that calls the next one twice.
_MOST_OPENED = 20000
_MOST_TIMES = 10  # plus this many times the graph's own ops
_MOST_BYTES = 1 << 28


def open_functions(graph):
    """The `Nodes` of a GraphDef, MetaGraphDef or tf.Graph with every called function opened."""
    graph = graph.as_graph_def() if hasattr(graph, "as_graph_def") else graph
    graph = getattr(graph, "graph_def", graph)
    library = library_of(graph)
    nodes = list(graph.node)
    results: Dict[str, List[str]] = {}
    written = sum(len(function.node_def) for function in library.values()) + len(nodes)
    most = _MOST_OPENED + _MOST_TIMES * written
    calling = "the graph's functions call each other to more than {} {}"
    room = Budget(most, calling.format(most, "ops"))
    letters = Budget(_MOST_BYTES, calling.format(_MOST_BYTES, "bytes"))
    if library:
        waiting: List[Tuple[Any, tuple]] = [(node, ()) for node in nodes]
        while waiting:
            call, within = waiting.pop()
            for label, function in _called(call, library):
                if function.signature.name not in within:
                    # Before the body is built: every copied name repeats the call's own.
                    room.take(len(function.node_def) + len(function.signature.input_arg))
                    letters.take(function.ByteSize() + len(function.node_def) * len(call.name))
                    body = _body(call, label, function, library, results)
                    nodes += body
                    waiting += [(node, within + (function.signature.name,)) for node in body]
    return Nodes(nodes, results)


def home(name):
    """The call and the attribute whose function a node lies in; None at the top level.

    home("a[f]/b[then_branch]/c") is ("a[f]/b", "then_branch").
    """
    inside, bracket, _ = name.rpartition("]/")
    if not bracket:
        return None
    call, _, label = inside.rpartition("[")
    return call, label


def top(name):
    """The node of the top level that runs a node: its outermost call, or itself."""
    return name.partition("[")[0]


def library_of(graph_def):
    """{name: FunctionDef} of a GraphDef."""
    return {function.signature.name: function for function in graph_def.library.function}


def called_by(node, library):
    """The names of the functions that a NodeDef calls, a list."""
    return [function.signature.name for _, function in _called(node, library)]


def _called(call, library):
    if call.op in library:  # version 1: the function's name is the op
        yield "f", library[call.op]
    elif call.op in CALLS:
        for attribute in CALLS[call.op][1]:
            value = call.attr[attribute]
            functions = value.list.func or [value.func]
            for number, function in enumerate(functions):
                if function.name in library:
                    label = attribute if value.HasField("func") else str(number)
                    yield label, library[function.name]


def _body(call, label, function, library, results):
    """The NodeDefs of a call's function; records its outputs in `results`."""
    prefix = "{}[{}]/".format(call.name, label)
    taken = [tensor for tensor in call.input if not tensor.startswith("^")]
    taken = taken[CALLS.get(call.op, (0,))[0] :]  # without the predicate or the branch's index
    made, body = {}, []
    for argument, tensor in zip(function.signature.input_arg, taken):
        made[argument.name] = prefix + argument.name
        body.append(tf.NodeDef(name=prefix + argument.name, op=ARGUMENT, input=[tensor]))
    outputs = {node.name: _outputs(node, library) for node in function.node_def}

    def outside(tensor):
        """The name of a body's tensor in the opened graph."""
        if tensor.startswith("^"):
            return "^" + prefix + tensor[1:]
        if tensor in made:
            return made[tensor]
        parts = tensor.split(":")  # node, its output's name, number within that output
        first = outputs[parts[0]].get(parts[1], 0) if len(parts) > 1 else 0
        return join(prefix + parts[0], first + int(parts[2] if len(parts) > 2 else 0))

    for node in function.node_def:
        copy = tf.NodeDef()
        copy.CopyFrom(node)
        copy.name = prefix + node.name
        del copy.input[:]
        copy.input.extend(outside(tensor) for tensor in node.input)
        body.append(copy)
    for number, argument in enumerate(function.signature.output_arg):
        ends = results.setdefault(join(call.name, number), [])
        ends.append(outside(function.ret[argument.name]))
        if call.op in LOOPS:
            ends.append(taken[number])  # a loop that never turns
    return body


def _outputs(node, library):
    """{name of an output: its number} of a NodeDef.

    An op that this TensorFlow does not know counts as having a single output: no pattern has it.
    """
    function = library.get(node.op)
    signature = function.signature if function is not None else op_def(node.op)
    numbers, number = {}, 0
    for argument in signature.output_arg if signature is not None else ():
        # An argument may stand for several outputs: N of a type, or one per type of a list.
        numbers[argument.name] = number
        if argument.number_attr:
            number += node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            number += len(node.attr[argument.type_list_attr].list.type)
        else:
            number += 1
    return numbers
