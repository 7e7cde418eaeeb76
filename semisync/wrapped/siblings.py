"""The optimizers of one graph, and the data that each needs of those built before it."""

from typing import Any, List, NamedTuple

from semisync.common.per_graph import PerGraph


class Joined(NamedTuple):
    """One optimizer of a graph, before it is built.

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


class Sibling(NamedTuple):
    """An optimizer of a graph, once it is built, as the others see it.

    Attributes:
        name, number: see `Place`.
        paced: the option.
        variables: the variables that it trains, a list.
        gradients: tensors of a batch.
        job_state, state: its `JobState` and `WorkerState`.
        train_op: of a worker.
        global_step: the op of the variable that counts its global batches.
        trained, applied, counted: the ops after a global batch, see `semisync.builder`.
    """

    name: str
    number: int
    paced: Any
    variables: List[Any]
    gradients: List[Any]
    job_state: Any
    state: Any
    train_op: Any
    global_step: Any
    trained: Any
    applied: Any
    counted: Any


# No collections: those are saved with the graph.
_siblings = PerGraph(list)  # of Joined
_built = PerGraph(list)  # of Sibling


def join(name, global_step, limited):
    """Adds an optimizer, a `Joined`, to those of the default graph; returns its `Place`.

    Where several optimizers may have a worker wait for a ticket, every worker takes these tickets
    in one order, or two workers could each hold the ticket that the other waits for: those of the
    first optimizer within its run, those of the others between runs that train them, and those of
    one run in the order in which the optimizers were built.
    """
    known = _siblings.of()
    draws_between_runs = limited and any(other.limited for other in known)
    known.append(Joined(name, global_step, limited))
    count = [other.name for other in known].count(name)
    shared_name = name if count == 1 else "{}_{}".format(name, count)
    return Place(shared_name, len(known) - 1, draws_between_runs)


def counted_step():
    """The global step that an optimizer of the default graph counts, or None."""
    steps = [sibling.global_step for sibling in _siblings.of()]
    return next((step for step in steps if step is not None), None)


def built():
    """The `Sibling`s of the default graph, a list in the order of building, to add to."""
    return _built.of()
