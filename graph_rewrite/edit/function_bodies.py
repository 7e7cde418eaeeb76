"""Runs the functions of a graph without some of their ops.

A function may have other callers, so it is not changed: the call runs a copy instead.
"""

from graph_rewrite.graph.functions import home, top
from graph_rewrite.graph.ops import CALLS
from semisync.common.tensor_names import split


def can_do_without(nodes, name):
    """Whether `run_without` can remove an op, named as in `graph_rewrite.graph.functions`."""
    while home(name):
        name = home(name)[0]
        if nodes[name].op not in CALLS:
            return False  # the op is the function, by its name
    return True


def run_without(calls, library, names):
    """Has calls run copies of their functions without some ops.

    Args:
        calls: {name: NodeDef} of the top level; those that run the ops are changed.
        library: the FunctionDefLibrary of the graph; the copies are added.
        names: of assign-like ops inside functions, which have no output.

    Returns:
        {call: {attribute: [names of the functions that it runs now]}}, the changed ones.
    """
    functions = {function.signature.name: function for function in library.function}
    before = set(functions)
    changed = {}
    for call in sorted({top(name) for name in names}):
        changed[call] = _run_without(calls[call], functions, names)
    library.function.extend(functions[name] for name in sorted(functions.keys() - before))
    return changed


def _run_without(node, library, names):
    changed = {}
    for attribute in CALLS[node.op][1]:
        value = node.attr[attribute]
        functions = value.list.func or [value.func]
        for number, function in enumerate(functions):
            label = attribute if value.HasField("func") else str(number)
            prefix = "{}[{}]/".format(node.name, label)
            inside = {name[len(prefix) :] for name in names if name.startswith(prefix)}
            if inside:
                function.name = _copy_without(library, function.name, inside)
                changed[attribute] = [called.name for called in functions]
    return changed


def _copy_without(library, name, dead):
    """Adds a copy of a function to the library; returns its name."""
    function = type(library[name])()
    function.CopyFrom(library[name])
    # Several calls of one function may each lose other ops of it.
    number = sum(known.startswith(name + "_without_updates") for known in library)
    function.signature.name = "{}_without_updates_{}".format(name, number)
    del function.node_def[:]
    for node in library[name].node_def:
        if node.name not in dead:
            copy = function.node_def.add()
            copy.CopyFrom(node)
            kept = [t for t in node.input if not (t.startswith("^") and split(t)[0] in dead)]
            del copy.input[:]
            copy.input.extend(kept)
            if node.op in CALLS:
                _run_without(copy, library, dead)
    # control_ret lists the ops that the function runs although nothing takes their outputs.
    for output, op in library[name].control_ret.items():
        if op in dead:
            del function.control_ret[output]
            function.signature.control_output.remove(output)
    library[function.signature.name] = function
    return function.signature.name
