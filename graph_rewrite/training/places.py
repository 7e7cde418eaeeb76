"""How a graph trains a variable, and where the gradient goes in."""

import collections

from graph_rewrite.graph.index import split

# How a variable is trained. `variable`: its NodeDef. `ops`: names of the ops that write it.
# `values`, `indices`: tensors of the batch's gradient; indices is None for a dense one. `places`:
# list of Place.
Update = collections.namedtuple("Update", "variable ops values indices places")

# The input `number` of `node` takes the gradient's "values" or its "indices".
Place = collections.namedtuple("Place", "node number what")


def gradients(updates):
    """The names of the ops that make the batch's gradients of a list of `Update`, a list."""
    tensors = [tensor for update in updates for tensor in (update.values, update.indices)]
    return [split(tensor)[0] for tensor in tensors if tensor]
