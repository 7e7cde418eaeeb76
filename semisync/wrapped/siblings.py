"""The optimizers of one graph, and what each has to know of those that were built before it."""

import collections

from semisync.common.per_graph import PerGraph

# `limited` says that a worker may have to wait for a ticket of it.
Sibling = collections.namedtuple("Sibling", "name global_step limited")

_siblings = PerGraph(list)  # of Sibling. No collection: those are saved with the graph.


def join(name, global_step, limited):
    """Adds an optimizer to those of the default graph.

    A worker takes the tickets of two optimizers that may have it wait in one order, or two workers
    could each hold the ticket that the other waits for: those of the first within its run, those
    of the others between runs, and the first tickets of all in the order in which they were built.

    Args:
      name: of the optimizer.
      global_step: a variable; None where an earlier optimizer counts global batches already.
      limited: see `Sibling`.

    Returns: its shared name, no other one's and the same in every process; its number among them;
      and True where its tickets are to be drawn between runs.
    """
    known = _siblings.of()
    draws_between_runs = limited and any(other.limited for other in known)
    known.append(Sibling(name, global_step, limited))
    count = [other.name for other in known].count(name)
    shared_name = name if count == 1 else "{}_{}".format(name, count)
    return shared_name, len(known) - 1, draws_between_runs


def counted_step():
    """The global step that an optimizer of the default graph counts, or None."""
    steps = [known.global_step for known in _siblings.of()]
    return next((step for step in steps if step is not None), None)
