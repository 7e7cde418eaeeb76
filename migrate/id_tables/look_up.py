"""The messages between processes in a look-up, and back to the owners in a step."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from migrate.id_tables.exchange import Parts, Processes
from migrate.id_tables.pooling import summed
from semisync.common.compiled.table import unique_integers


class Asked(NamedTuple):
    """This process's request to one table.

    Attributes:
        unique: the distinct ids.
        places: int64 [ids], the position of each id of the batch in `unique`.
        counts: how often each of `unique` occurs.
        order: the positions in `unique`, sorted by owner.
        sizes: how many of `unique` each process owns.
        dim: of the table.
    """

    unique: numpy.ndarray
    places: Tensor
    counts: numpy.ndarray
    order: numpy.ndarray
    sizes: List[int]
    dim: int


class Question(NamedTuple):
    """All processes' requests to this one of a table, one after the other.

    Attributes:
        ids, counts: int64 [n]; an id occurs at most once per process.
        given: how many ids each process asks for.
    """

    ids: numpy.ndarray
    counts: numpy.ndarray
    given: List[int]

    def once(self) -> Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """The distinct ids, how often all processes have each, and the number of each of `ids`."""
        unique, numbers, _ = unique_integers(self.ids)
        counts = numpy.zeros(len(unique), numpy.int64)
        # Not `counts[numbers] +=`, which adds once for an id that several processes have.
        numpy.add.at(counts, numbers, self.counts)
        return unique, counts, numbers


class Pending(NamedTuple):
    """A look-up whose gradient the next step needs.

    Attributes:
        leaf: the received vectors, [ids, dim].
        rows: the rows of this process that it sent, those for all processes in turn.
        given: how many of them each process got.
        done: [True] after the step; a list, which the leaf's hook shares.
    """

    asked: Asked
    leaf: Tensor
    rows: numpy.ndarray
    given: List[int]
    done: List[bool]


def ask(ids: Tensor, dim: int, processes: Processes) -> Asked:
    """Asks for int64 ids [n] of one table."""
    unique, places, counts = unique_integers(ids.numpy())
    if processes.ranks == 1:
        order, sizes = numpy.arange(len(unique)), [len(unique)]
    else:
        owners = processes.owners(unique)
        order = numpy.argsort(owners, kind="stable")
        sizes = numpy.bincount(owners, minlength=processes.ranks).tolist()
    return Asked(unique, torch.from_numpy(places), counts, order, sizes, dim)


def questions(asked: Sequence[Asked], processes: Processes) -> List[Question]:
    """Sends the requests of each table to the owners."""
    columns = [(one.unique[one.order], one.sizes) for one in asked]
    columns += [(one.counts[one.order], one.sizes) for one in asked]
    came = processes.exchange(_by_rank([(torch.from_numpy(of), sizes) for of, sizes in columns]))
    joined = [torch.cat(parts).numpy() for parts in zip(*came)]
    given = [[len(part) for part in parts] for parts in zip(*came)]
    return list(map(Question, joined, joined[len(asked) :], given))


def answers(
    values: Sequence[Tensor],
    asked: Sequence[Asked],
    given: Sequence[List[int]],
    processes: Processes,
) -> List[Tensor]:
    """Sends each question's vectors [n, dim], and returns those of this process's `unique` ids."""
    sent = [
        (of.reshape(-1), [size * one.dim for size in sizes])
        for of, one, sizes in zip(values, asked, given)
    ]
    wanted = [[one.sizes[rank] * one.dim for one in asked] for rank in range(processes.ranks)]
    came = processes.exchange(_by_rank(sent), wanted)
    found = []
    for one, parts in zip(asked, zip(*came)):
        rows = torch.cat(parts).reshape(-1, one.dim)
        if processes.ranks > 1:
            # The answers came by owner; back into the order of `unique`.
            rows = torch.empty_like(rows).index_copy_(0, torch.from_numpy(one.order), rows)
        found.append(rows)
    return found


def to_owners(
    rows: Sequence[Tensor],
    asked: Sequence[Asked],
    given: Sequence[List[int]],
    processes: Processes,
) -> List[Tensor]:
    """Sends a row [n, dim] per `unique` id of each table; returns those of each question's ids."""
    sent, wanted = [], [[0] * len(asked) for _ in range(processes.ranks)]
    for number, (of, one, sizes) in enumerate(zip(rows, asked, given)):
        if processes.ranks > 1:
            of = of.index_select(0, torch.from_numpy(one.order))
        sent.append((of.reshape(-1), [size * one.dim for size in one.sizes]))
        for rank, size in enumerate(sizes):
            wanted[rank][number] = size * one.dim
    came = processes.exchange(_by_rank(sent), wanted)
    return [torch.cat(parts).reshape(-1, one.dim) for one, parts in zip(asked, zip(*came))]


def gradients(pending: Sequence[Pending], processes: Processes) -> List[Tensor]:
    """Sends the gradient of each look-up to the owners; returns the gradient of its `rows`."""
    leaves = [one.leaf for one in pending]
    grads = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    asked, given = [one.asked for one in pending], [one.given for one in pending]
    return to_owners(grads, asked, given, processes)


def whole(pending: Sequence[Pending], grads: Sequence[Tensor], share: float) -> Tuple[Any, Tensor]:
    """(rows, each once, and their gradient) of all look-ups of one table, times `share`."""
    (rows, grad), given = (pending[0].rows, grads[0]), pending[0].given
    if len(pending) == len(given) == 1:  # in which each row is once
        return rows, grad
    rows, numbers, _ = unique_integers(numpy.concatenate([one.rows for one in pending]))
    return rows, summed(torch.cat(list(grads)), torch.from_numpy(numbers), len(rows)).mul_(share)


def _by_rank(columns: Any) -> Parts:
    """Each process's part, from pairs (tensor [n], how much of it each gets)."""
    split = [tensor.split(sizes) for tensor, sizes in columns]
    return [list(of) for of in zip(*split)]
