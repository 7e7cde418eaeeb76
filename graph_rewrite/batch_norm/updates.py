"""Finds every update of a variable: moving averages, counters, whatever is assigned.

Not among them: an initialiser (the Assign that the variable itself made, named after it), what a
Saver restores, and the Apply ops of optimizers.
"""

from graph_rewrite.batch_norm.statistics import HOPS
from graph_rewrite.batch_norm.update import Update
from graph_rewrite.graph.constants import number
from graph_rewrite.graph.index import split
from graph_rewrite.graph.partitions import number as part_number
from graph_rewrite.graph.partitions import unsplit
from graph_rewrite.graph.passthrough import CARRY, CAST, SHAPE, ends
from graph_rewrite.patterns.language import first, via
from graph_rewrite.patterns.moments import FROM_DEVIATION
from graph_rewrite.patterns.moving_average import (
    CHANGED,
    FUSED_AVERAGE,
    MOVING_AVERAGE,
    MOVING_PART,
    ZERO_DEBIASED,
)
from graph_rewrite.patterns.variables import ADD, ASSIGN, CHANGE, SCATTER, SCATTERED, SUBTRACT

_KINDS = dict(
    [(op, "add") for op in ADD]
    + [(op, "subtract") for op in SUBTRACT]
    + [(op, "assign") for op in ASSIGN]
    + [(op, "scatter") for op in SCATTER]
)
_RESTORES = ("RestoreV2", "Restore", "RestoreSlice")
IN_A_LOOP = "it lies in a loop"


def all_updates(view):
    """Every Update of a `View`, in the order of the graph."""
    found = [_update(view, node) for node in view.nodes.of_type(_KINDS.__contains__)]
    return [update for update in found if update]


def partners(view, update):
    """The variables that a "debiased" update needs beside its own: (the biased one, its steps).

    Either may be None where it is not found.
    """
    found = first(ZERO_DEBIASED, view.nodes, update.op)
    return tuple(_changed(view, found[name]) for name in ("debiased", "step"))


def deviation(view, update):
    """The variable of the standard deviation whose square, less epsilon, is assigned; or None."""
    found = first(via(HOPS, FROM_DEVIATION), view.nodes, update.source)
    return _changed(view, found["kept"]) if found else None


def _changed(view, tensor):
    found = first(CHANGED, view.nodes, tensor)
    return split(found["changed"])[0] if found else None


def _update(view, node):
    nodes = view.nodes
    found = first(SCATTERED if node.op in SCATTER else CHANGE, nodes, node.name)
    if not found:
        return None  # no variable of this graph: a TensorArray's, a function's that nobody calls
    variable = split(found["variable"])[0]
    if is_no_update(nodes, node, variable):
        return None
    kind, source, rate, reason = _read(nodes, node, variable, found["source"])
    return Update(
        variable=variable,
        source=source,
        rate=rate,
        op=node.name,
        in_branch=bool(view.guards.branches("^" + node.name)),
        dependents=view.users(node.name),
        kind=kind,
        left_alone=reason or (IN_A_LOOP if view.guards.looped(node.name) else ""),
    )


def _read(nodes, node, variable, source):
    """(kind, source, rate, reason) of an update; of a part the source is that of the whole."""
    part = part_number(variable)
    average = first(MOVING_AVERAGE, nodes, node.name)
    if part is not None and not average:
        average = first(MOVING_PART, nodes, node.name)
    if average:
        source = average["source"]
        source = source if part is None else unsplit(nodes, source, part)
        return "average", source, _rate(nodes, average), ""
    if first(ZERO_DEBIASED, nodes, node.name):
        return "debiased", source, None, "it is corrected for its start at zero"
    fused = first(FUSED_AVERAGE, nodes, node.name)
    if fused:
        maker = nodes.maker(fused["source"])
        factor = float(round(maker.attr["exponential_avg_factor"].f, 7))
        reason = "{} '{}' averages by itself".format(maker.op, maker.name)
        return "average", fused["source"], factor, reason
    return _KINDS[node.op], source, None, ""


def _rate(nodes, average):
    if "divisor" in average.bindings:
        return 1 / number(nodes, average["divisor"])
    rate = number(nodes, average["rate"])
    return average["rate"] if rate is None else rate


def is_no_update(nodes, node, variable):
    """Whether an op that writes a variable initialises or restores it."""
    if node.op not in ASSIGN:
        return False
    if node.name == variable + "/Assign":
        return True
    makers = {split(end)[0] for end in ends(nodes, node.input[1], CARRY | CAST | SHAPE)}
    return any(maker in nodes and nodes[maker].op in _RESTORES for maker in makers)
