"""Histories as the batches of a model: items by the rows of its table, the last ones of each."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

import numpy
import torch

from migrate.sequences.histories import Histories
from migrate.sequences.packed import Packed
from migrate.sequences.splits import Ends
from semisync.common.errors import BadInput


def in_catalog(histories: Histories, catalog: numpy.ndarray) -> Tuple[Histories, float]:
    """Histories with rows of the catalog as items, and the share of the events that were of other
    items, which are left out, with users of no others.

    Args:
        catalog: raw ids, ascending.

    Raises:
        BadInput: no event is left.
    """
    rows = numpy.searchsorted(catalog, histories.items).clip(max=len(catalog) - 1)
    known = catalog[rows] == histories.items
    if known.all():
        return histories._replace(items=rows), 0.0
    if not known.any():
        raise BadInput(f"none of the {len(rows)} events is of one of the model's items")
    ends = numpy.append(0, numpy.cumsum(known))[histories.offsets]
    kept = numpy.diff(ends) > 0
    left = histories._replace(
        users=histories.users[kept],
        offsets=numpy.append(0, ends[1:][kept]),
        items=rows[known],
        times=None if histories.times is None else histories.times[known],
        labels={name: values[known] for name, values in histories.labels.items()},
    )
    return left, 1 - float(known.mean())


class Asked(NamedTuple):
    """Sequences: the next row of each, int64 [B], and all rows before it, as (rows, offsets)."""

    packed: Packed
    targets: torch.Tensor
    seen: Tuple[torch.Tensor, torch.Tensor]

    def to(self, device: torch.device) -> Asked:
        """The same on another device."""
        rows, offsets = self.seen
        seen = rows.to(device), offsets.to(device)
        return Asked(self.packed.to(device), self.targets.to(device), seen)


class Source(NamedTuple):
    """Histories, whose items are rows, as a model takes them.

    Attributes:
        length: the events of a sequence, the last ones of a history.
        first_user: the row of the first user; each sequence begins with its own user's, at the
            time of its first event. None: with its first event.
    """

    histories: Histories
    length: int
    first_user: Optional[int] = None


def pack(
    source: Source, ends: Ends, asked: bool = False, more: int = 0, candidates: int = 0
) -> Packed:
    """What is known at each end.

    Args:
        asked: for the event there, whose time is known.
        more: events, beyond the source's length.
        candidates: how many of the last events are.
    """
    histories = source.histories
    starts = numpy.maximum(ends.ends - source.length - more, 0)
    at, offsets = places(histories, ends.users, starts, ends.ends)
    items, times = histories.items[at], histories.times
    own = None if times is None else times[at]
    when = None
    if asked and times is not None:
        when = torch.from_numpy(times[histories.offsets[ends.users] + ends.ends])
    if source.first_user is not None:
        items = numpy.insert(items, offsets[:-1], ends.users + source.first_user)
        own = None if own is None else numpy.insert(own, offsets[:-1], own[offsets[:-1]])
        offsets = offsets + numpy.arange(len(offsets))
    return Packed(
        torch.from_numpy(items),
        torch.from_numpy(offsets),
        None if own is None else torch.from_numpy(own),
        {name: torch.from_numpy(values[at]) for name, values in histories.labels.items()}
        if source.first_user is None
        else {},
        when,
        torch.full((len(starts),), candidates) if candidates else None,
    )


def ask(source: Source, ends: Ends) -> Asked:
    """Each sequence with the event at its end as what is asked for."""
    histories = source.histories
    zero = numpy.zeros_like(ends.ends)
    at, offsets = places(histories, ends.users, zero, ends.ends)
    targets = histories.items[histories.offsets[ends.users] + ends.ends]
    seen = torch.from_numpy(histories.items[at]), torch.from_numpy(offsets)
    return Asked(pack(source, ends, asked=True), torch.from_numpy(targets), seen)


def whole(histories: Histories, users: Optional[slice] = None) -> Ends:
    """All events of the users in a range of their numbers."""
    numbers = numpy.arange(len(histories.users))[users or slice(None)]
    return Ends(numbers, histories.lengths[numbers])


def places(
    histories: Histories, users: numpy.ndarray, starts: numpy.ndarray, ends: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Where the events from `starts` to `ends` of each user stand, and where each user's begin."""
    lengths = ends - starts
    offsets = numpy.append(0, numpy.cumsum(lengths))
    first = histories.offsets[users] + starts - offsets[:-1]
    return numpy.repeat(first, lengths) + numpy.arange(offsets[-1]), offsets
