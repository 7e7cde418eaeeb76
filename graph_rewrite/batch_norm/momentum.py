"""How much of itself a moving average keeps at an update: 1 - rate, while training."""

from graph_rewrite.graph.constants import complement, number
from graph_rewrite.graph.control_flow import opposite


def rate(view, update, guard):
    """The rate of an Update where `guard` holds: a float, the name of a tensor, or None."""
    if not isinstance(update.rate, str):
        return update.rate
    never = opposite(guard) if guard else None
    value = number(view.nodes, update.rate, lambda each: never not in view.guards.of(each))
    return update.rate if value is None else value


def momentum(view, found):
    """The momentum that belongs to a rate: a float, the name of a tensor at the top level, or None.

    None also where the rate is a tensor that is not made as 1 - momentum.
    """
    if not isinstance(found, str):
        return None if found is None else complement(found)
    node = view.nodes.maker(view.guards.root(found))
    if node.op == "Sub" and number(view.nodes, node.input[0]) == 1:
        return view.guards.lift(node.input[1])
    return None
