"""Finds every update of a variable: moving averages, counters, any assignment.

Not among them: an initialiser (the variable's own Assign, named after it), the restores of a Saver,
and the Apply ops of optimizers.
"""

import collections
from typing import Dict, List, Set

from graph_rewrite.batch_norm.found import Debias, Update
from graph_rewrite.graph.constants import number
from graph_rewrite.graph.control_flow import opposite
from graph_rewrite.graph.folding import complement
from graph_rewrite.graph.ops import SCATTER, WHOLE
from graph_rewrite.graph.partitions import number as part_number
from graph_rewrite.graph.partitions import unsplit
from graph_rewrite.patterns.language import match
from graph_rewrite.patterns.moving_average import MOVING_AVERAGE, MOVING_PART, ZERO_DEBIASED
from graph_rewrite.patterns.variables import CHANGE, SCATTERED, initialises
from semisync.common.tensor_names import split

IN_A_LOOP = "it lies in a loop"
_CORRECTED = "it is corrected for its start at zero in a way that is not known"


def all_updates(view):
    """Every Update of a `View`, in the order of the graph."""
    updates = [
        _update(view, node) for node in view.nodes.of_type(SCATTER.union(WHOLE).__contains__)
    ]
    return _corrected(view, [update for update in updates if update])


def rate_in_training(view, update, guard):
    """The rate of an Update where `guard` holds: a float, the name of a tensor, or None."""
    if not isinstance(update.rate, str):
        return update.rate
    never = opposite(guard) if guard else None  # the branch that does not run in training
    value = number(view.nodes, update.rate, lambda tensor: never not in view.guards.of(tensor))
    return update.rate if value is None else value


def momentum(view, rate):
    """The momentum that belongs to a rate: a float, the name of a tensor at the top level, or None.

    None also where the rate is a tensor that is not made as 1 - momentum.
    """
    if not isinstance(rate, str):
        return None if rate is None else complement(rate)
    node = view.nodes.maker(view.guards.root(rate))
    if node.op == "Sub" and number(view.nodes, node.input[0]) == 1:
        return view.guards.lift(node.input[1])
    return None


def _update(view, node):
    nodes = view.nodes
    change = match(SCATTERED if node.op in SCATTER else CHANGE, nodes, node.name)
    if not change:
        return None  # no variable of this graph: a TensorArray's, a function's that nothing calls
    variable = split(change["variable"])[0]
    if initialises(nodes, node, variable):
        return None
    kind, source, rate = _read(nodes, node, variable, change["source"])
    return Update(
        variable=variable,
        source=source,
        rate=rate,
        op=node.name,
        in_branch=bool(view.guards.branches("^" + node.name)),
        dependents=view.users(node.name),
        kind=kind,
        left_alone=IN_A_LOOP if view.guards.looped(node.name) else "",
    )


def _read(nodes, node, variable, source):
    """(kind, source, rate) of an update; the source of a part is that of the whole."""
    part = part_number(variable)
    average = match(MOVING_AVERAGE, nodes, node.name)
    # A part may be averaged alone, like a whole variable, or as a slice of the whole's average.
    if part is not None and not average:
        average = match(MOVING_PART, nodes, node.name)
    if not average:
        return WHOLE.get(node.op, "scatter"), source, None
    source = average["source"]
    source = source if part is None else unsplit(nodes, source, part)
    if "divisor" in average.bindings:
        return "average", source, 1 / number(nodes, average["divisor"])
    rate = number(nodes, average["rate"])
    return "average", source, average["rate"] if rate is None else rate


def _corrected(view, updates):
    """The updates, with one in place of the three of an average that is corrected.

    Where the three are not TensorFlow's, all stay, and the average is left alone.
    """
    by_variable: Dict[str, List[Update]] = collections.defaultdict(list)
    for update in updates:
        by_variable[update.variable].append(update)
    corrected: Dict[str, Update] = {}
    parts: Set[str] = set()
    for update in [update for update in updates if update.kind != "average"]:
        # The corrected value is assigned; the average itself is of another variable, "biased".
        correction = match(ZERO_DEBIASED, view.nodes, update.op)
        if not correction:
            continue
        biased, step = (split(correction[name])[0] for name in ("biased", "step"))
        averages, counters = by_variable[biased], by_variable[step]
        if not averages or averages[0].kind != "average":
            continue
        rate = averages[0].rate
        merged = update._replace(kind="average", source=averages[0].source, rate=rate)
        # Another writer of the biased average or of its counter would break the correction.
        alone = len(averages) == len(counters) == 1
        if alone and _counts(view, counters[0]) and _keeps(view, correction["kept"], rate):
            debias = Debias(biased, step, (averages[0].op, counters[0].op))
            corrected[update.op] = merged._replace(debias=debias)
            parts.update(debias.ops)
        else:
            corrected[update.op] = merged._replace(left_alone=_CORRECTED)
    return [corrected.get(update.op, update) for update in updates if update.op not in parts]


def _counts(view, update):
    return update.kind == "add" and number(view.nodes, update.source) == 1


def _keeps(view, kept, rate):
    """Whether a tensor is the constant 1 - rate, but for the rounding of float32."""
    value = number(view.nodes, kept)
    return isinstance(rate, float) and value is not None and abs(value + rate - 1) < 1e-6
