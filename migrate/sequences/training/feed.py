"""Histories as the data of `migrate.training.train`: shares of global batches, epoch by epoch.

The loss of a step is the mean over all events of the global batch that have one: a share's own mean
counts by how many it has of them. The processes average their gradients, so that the weights of all
shares of a batch add up to the number of processes.
"""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import numpy

from migrate.sequences.batches import plan, shares
from migrate.sequences.histories import Histories
from migrate.sequences.packed import Packed
from migrate.sequences.packing import Source, pack
from migrate.sequences.splits import Ends, moments
from migrate.sequences.training.settings import Training
from migrate.training.task import Batch, Epoch
from semisync.common.errors import BadInput, UsageError


class Share(NamedTuple):
    """A share of a batch: the weight of its loss, and the seed of draws common to all shares."""

    packed: Packed
    weight: float
    seed: int


class Feed:
    """Histories as a `migrate.training.task.Data`.

    It ends after the epochs, or after `patience` of them without a better one.

    Args:
        ends: of the training events.
        followed: whether the loss is of the items that follow another moment's, else of all.
        own: (this process, all of them).
    """

    def __init__(
        self,
        source: Source,
        ends: Ends,
        followed: bool,
        training: Training,
        own: Tuple[int, int] = (0, 1),
    ) -> None:
        self._source, self._training = source, training
        self._more = int(followed)  # a last event is only asked for
        self._rank, self._ranks = own
        lengths = numpy.minimum(ends.ends, source.length + self._more)
        counted = lengths
        if followed and source.first_user is None:
            counted = lengths - _first_moments(source.histories, ends, lengths)
        if not counted.any():
            raise BadInput(
                f"no history of the {len(counted)} has events of two moments to train on"
            )
        there = counted > 0
        self._ends, self._lengths, self._counted = ends.some(there), lengths[there], counted[there]
        more = f"{source[1:]} {training.tokens} {training.seed}"
        columns = (*source.histories[:4], *source.histories.labels.values(), *ends[:2])
        self._digest = digest(columns, more)
        self._epoch, self._taken = 0, 0
        self._best, self._since = 0.0, 0  # of the metric, and the epochs since

    def __iter__(self) -> Iterator[Batch]:
        training = self._training
        while self._epoch < training.epochs and not (0 < training.patience <= self._since):
            batches = plan(self._lengths, training.tokens, training.seed, self._epoch)
            for number in range(self._taken, len(batches)):
                batch = self._batch(batches[number], self._epoch, number)
                # Before the batch is given: the state is then the position after it.
                self._taken, last = number + 1, number + 1 == len(batches)
                if last:
                    self._epoch, self._taken = self._epoch + 1, 0
                yield batch._replace(last=last)

    def end_epoch(self, figures: Dict[str, Any]) -> Epoch:
        """Takes in the metrics of an epoch's end."""
        value = figures[str(self._training.metric)]
        best = value is not None and value > self._best
        self._best, self._since = (value, 0) if best else (self._best, self._since + 1)
        return Epoch({"epoch": self._epoch, **figures}, best)

    def state_dict(self) -> Dict[str, Any]:
        """The position, and the metrics so far."""
        return {
            "digest": self._digest,
            "position": [self._epoch, self._taken],
            "measured": [self._best, self._since],
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Raises UsageError if the state is of other data, or of batches of another size."""
        if state["digest"] != self._digest:
            raise UsageError(
                "the checkpoint is of other histories than the files hold now, or of another "
                "split, length, seed or number of tokens; train from scratch in another folder"
            )
        self._epoch, self._taken = state["position"]
        self._best, self._since = state["measured"]

    def _batch(self, batch: numpy.ndarray, epoch: int, number: int) -> Batch:
        dealt = shares(batch, self._lengths, self._ranks * self._training.accumulate)
        total = int(self._counted[batch].sum())
        seed = int(
            numpy.random.SeedSequence([self._training.seed, epoch, number]).generate_state(1)[0]
        )
        parts: List[Batch] = []
        for own in dealt[self._rank :: self._ranks]:
            weight = int(self._counted[own].sum()) / total * self._ranks
            chosen = own if len(own) else batch[:1]  # one that does not count
            packed = pack(self._source, self._ends.some(chosen), more=self._more)
            parts.append(Batch(Share(packed, weight, seed), size=int(self._lengths[own].sum())))
        return parts[0]._replace(parts=parts[1:])


def _first_moments(histories: Histories, ends: Ends, lengths: numpy.ndarray) -> numpy.ndarray:
    """How many of the last `lengths` events before each end are of the first one's moment."""
    starts = numpy.unique(moments(histories))
    stop = histories.offsets[ends.users] + ends.ends
    first = stop - lengths
    following = starts[numpy.searchsorted(starts, first, "right")]
    return numpy.minimum(following, stop) - first


def digest(columns: Iterable[Any], more: str) -> str:
    """16 hexadecimal digits of a hash of arrays, any of which may be None, and of `more`."""
    found = hashlib.sha256(more.encode())
    for column in columns:
        found.update(b"" if column is None else numpy.ascontiguousarray(column).data)
    return found.hexdigest()[:16]
