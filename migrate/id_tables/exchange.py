"""The exchange between processes: arrays for each of them, all at once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence

import numpy
import torch
import torch.distributed as dist

from migrate.ids.hashing import murmur
from semisync.common.errors import SemisyncError, UsageError

Parts = List[List[torch.Tensor]]  # for each process several one-dimensional tensors


class Processes:
    """The processes of `group` or all; one without torch.distributed. All call every method."""

    def __init__(self, group: Any = None) -> None:
        self._group = group
        several = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank(group) if several else 0
        self.ranks = dist.get_world_size(group) if several else 1

    def __deepcopy__(self, _: Any) -> Processes:
        """Itself: a copy of a table belongs to the same processes."""
        return self

    def owners(self, ids: numpy.ndarray) -> numpy.ndarray:
        """The process [n] to which each of `ids` [n] int64 belongs: murmur(id) % ranks."""
        return (murmur(ids) % numpy.uint64(self.ranks)).astype(numpy.int64)

    def own(self, ids: numpy.ndarray) -> numpy.ndarray:
        """Whether each of `ids` [n] belongs to this process: bool [n]."""
        return numpy.ones(len(ids), bool) if self.ranks == 1 else self.owners(ids) == self.rank

    def exchange(self, parts: Parts, sizes: Optional[Sequence[Sequence[int]]] = None) -> Parts:
        """Sends parts[r] to process r, and receives the parts sent here, all of one type.

        Args:
            sizes: of the received parts; exchanged first by default.
        """
        if self.ranks == 1:
            return parts
        if sizes is None:
            # [processes, parts of each]; all_to_all_single deals out the rows.
            counts = torch.tensor([[len(one) for one in of] for of in parts])
            coming = torch.empty_like(counts)
            dist.all_to_all_single(coming, counts, group=self._group)
            sizes = coming.tolist()
        sent = torch.cat([one for of in parts for one in of])
        given = [sum(len(one) for one in of) for of in parts]
        wanted = [sum(of) for of in sizes]
        received = sent.new_empty(sum(wanted))
        dist.all_to_all_single(received, sent, wanted, given, group=self._group)
        pieces = iter(received.split([size for of in sizes for size in of]))
        return [[next(pieces) for _ in of] for of in sizes]

    def total(self, numbers: Sequence[int], largest: bool = False) -> List[int]:
        """The sums over the processes, or the largest."""
        if self.ranks == 1:
            return list(numbers)
        counts = torch.tensor(list(numbers), dtype=torch.int64)
        operation = dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM
        dist.all_reduce(counts, operation, group=self._group)
        return [int(one) for one in counts]

    def norm(self, values: Sequence[torch.Tensor], order: float) -> torch.Tensor:
        """The norm of all values of all processes, a float64 scalar."""
        norms = [torch.linalg.vector_norm(one, order, dtype=torch.float64) for one in values]
        own = torch.stack([torch.zeros((), dtype=torch.float64), *norms])
        if self.ranks > 1:
            every = [torch.zeros((), dtype=torch.float64) for _ in range(self.ranks)]
            dist.all_gather(every, torch.linalg.vector_norm(own, order), group=self._group)
            own = torch.stack(every)
        return torch.linalg.vector_norm(own, order)

    def agree(self, what: Sequence[str]) -> None:
        """Raises UsageError unless `what` is the same in all processes."""
        if self.ranks == 1:
            return
        every: List[Any] = [None] * self.ranks
        dist.all_gather_object(every, list(what), group=self._group)
        for number, of in enumerate(every):
            if of != every[0]:
                raise UsageError(
                    f"the processes' tables differ: process 0 has {every[0]}, process {number} {of}"
                )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raises an error in all processes if the block fails in any, once all have run it."""
        try:
            yield
        except Exception:
            # The others are at the `total` below, or on their way to it.
            self.total([1])
            raise
        failed = self.total([0])[0]
        if failed:
            raise SemisyncError(
                f"{failed} of {self.ranks} processes failed; their messages say why"
            )
