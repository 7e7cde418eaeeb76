"""The optimizers of one graph, and what each has to know of those that were built before it."""

from typing import Any, NamedTuple

from semisync.common.per_graph import PerGraph


class Sibling(NamedTuple):
    """One optimizer of a graph.

    Attributes:
        name: of the optimizer.
        global_step: the variable that it counts; None where an earlier optimizer counts.
        limited: True when a worker may have to wait for a ticket of it.
    """

    name: str
    global_step: Any
    limited: bool


class Place(NamedTuple):
    """The place of an optimizer among those of its graph.

    Attributes:
        shared_name: the same in every process, and no other optimizer's.
        number: how many were built before it.
        draws_between_runs: True when its tickets are to be drawn between runs.
    """

    shared_name: str
    number: int
    draws_between_runs: bool


_siblings = PerGraph(list)  # of Sibling. No collection: those are saved with the graph.


def join(name, global_step, limited):
    """Adds an optimizer, a `Sibling`, to those of the default graph; returns its `Place`.

    A worker takes the tickets of two optimizers that may have it wait in one order, or two workers
    could each hold the ticket that the other waits for: those of the first within its run, those
    of the others between runs that train them, and of one run in the order in which the optimizers
    were built.
    """
    known = _siblings.of()
    draws_between_runs = limited and any(other.limited for other in known)
    known.append(Sibling(name, global_step, limited))
    count = [other.name for other in known].count(name)
    shared_name = name if count == 1 else "{}_{}".format(name, count)
    return Place(shared_name, len(known) - 1, draws_between_runs)


def counted_step():
    """The global step that an optimizer of the default graph counts, or None."""
    steps = [sibling.global_step for sibling in _siblings.of()]
    return next((step for step in steps if step is not None), None)
