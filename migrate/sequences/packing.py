"""Histories as the batches of a model: items by the rows of its table, the last ones of each."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple, Union

import numpy
import torch

from migrate.sequences.histories import Histories
from migrate.sequences.packed import Packed
from migrate.sequences.splits import Ends, moments, seconds
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
        """The sequences on another device."""
        rows, offsets = self.seen
        seen = rows.to(device), offsets.to(device)
        return Asked(self.packed.to(device), self.targets.to(device), seen)


class Source(NamedTuple):
    """Histories, whose items are rows, as a model takes them.

    Attributes:
        length: the events of a sequence, the last ones of a history.
        first_user: the row of the first user; each sequence begins with its own user's, one unit of
            time before its first event. None: with its first event.
    """

    histories: Histories
    length: int
    first_user: Optional[int] = None


class Asking(NamedTuple):
    """The time at which the next item is asked for, which a bias by time needs.

    Attributes:
        after: the time from the last known event; None: the time does not depend on it.
        at: at this time, the same for all; where neither is given at the time of the event to
            predict, which only a log knows.
    """

    after: Optional[int] = None
    at: Optional[int] = None

    @classmethod
    def of(cls, text: Union[int, str]) -> Asking:
        """ "next", of the event to predict, "last", "+N" after the last one, or a time; raises
        UsageError for a meaningless value."""
        if text == "next":
            return cls()
        if text == "last":
            return cls(after=0)
        if isinstance(text, str) and re.fullmatch(r"\+[0-9]+", text):
            return cls(after=int(text))
        if isinstance(text, str) and re.fullmatch(r"-?[0-9]+", text):
            text = int(text)
        return cls(at=seconds(text, "it is asked", "next, last, +N, "))

    @property
    def of_log(self) -> bool:
        """Whether the time is that of the event to predict, which only a log knows."""
        return self.after is None and self.at is None

    def __str__(self) -> str:
        if self.of_log:
            return "asked at the time of the event to predict"
        if self.at is not None:
            return f"asked at {self.at}"
        return (
            f"asked {self.after} after the last event" if self.after else "asked at the last event"
        )

    def times(self, histories: Histories, ends: Ends) -> Optional[numpy.ndarray]:
        """The time at which each of `ends` is asked; None for data without times.

        Raises:
            BadInput: a known event is of a later time.
        """
        if histories.times is None:
            return None
        at = histories.offsets[ends.users] + ends.ends
        if self.of_log:
            return histories.times[at]
        last = histories.times[at - 1]
        if self.after is not None:
            return last + self.after
        assert self.at is not None
        if last.max() > self.at:
            raise BadInput(
                f"a user is asked at {self.at}, and its last known event is at {last.max()}; ask "
                "then or later, or leave later events out of the files"
            )
        return numpy.full(len(last), self.at)


def pack(source: Source, ends: Ends, asking: Optional[Asking] = None, more: int = 0) -> Packed:
    """The events known at each end, packed.

    Args:
        asking: when the next item is asked for.
        more: events, beyond the source's length.
    """
    histories = source.histories
    starts = numpy.maximum(ends.ends - source.length - more, 0)
    at, offsets = places(histories, ends.users, starts, ends.ends)
    items, times = histories.items[at], histories.times
    own = None if times is None else times[at]
    when = None if asking is None else asking.times(histories, ends)
    if source.first_user is not None:
        items = numpy.insert(items, offsets[:-1], ends.users + source.first_user)
        own = None if own is None else numpy.insert(own, offsets[:-1], own[offsets[:-1]] - 1)
        offsets = offsets + numpy.arange(len(offsets))
    return Packed(
        torch.from_numpy(items),
        torch.from_numpy(offsets),
        None if own is None else torch.from_numpy(own),
        # Users have rows in a retrieval alone, which has no labels.
        _labels(histories, at) if source.first_user is None else {},
        None if when is None else torch.from_numpy(when),
    )


def pack_pieces(source: Source, pieces: Ends) -> Packed:
    """The events of each piece of `in_pieces`, after the last ones before their first moment; as
    many as the source's length altogether."""
    users, first, stops, known = pieces
    assert stops is not None and known is not None
    histories, times = source.histories, source.histories.times
    starts = numpy.maximum(known - (source.length - (stops - first)), 0)
    at, offsets = places(histories, users, starts, stops)
    of = numpy.repeat(numpy.arange(len(users)), numpy.diff(offsets))
    # Events of the piece's first moment before the piece are left out: they do not see each other.
    number = at - histories.offsets[users][of]
    at = at[(number < known[of]) | (number >= first[of])]
    lengths = known - starts + stops - first
    return Packed(
        torch.from_numpy(histories.items[at]),
        torch.from_numpy(numpy.append(0, numpy.cumsum(lengths))),
        None if times is None else torch.from_numpy(times[at]),
        _labels(histories, at),
    )


def in_pieces(histories: Histories, ends: Ends, most: int) -> Ends:
    """The events from `ends` to `stops`, at most so many of a user at a time: whole moments, but
    for a moment of more events, which is in pieces of its own."""
    begins = moments(histories)
    starts = numpy.unique(begins)
    assert ends.stops is not None
    users, first = ends.users, histories.offsets[ends.users]
    at, stop = first + ends.ends, first + ends.stops
    found = []
    while len(at):
        end = numpy.minimum(at + most, stop)
        # Back to the start of a moment that the limit cuts, unless the piece began with it.
        end = numpy.where(begins[end] > at, begins[end], end)
        own = starts[numpy.searchsorted(starts, at, "right")]  # where the moment of `at` ends
        # A piece that begins within a moment ends with that moment.
        end = numpy.where(begins[at] < at, numpy.minimum(end, own), end)
        found.append((users, at, end))
        left = end < stop
        users, at, stop = users[left], end[left], stop[left]
    users, at, end = (numpy.concatenate(parts) for parts in zip(*found))
    order = numpy.argsort(at)
    users, at, end = users[order], at[order], end[order]
    first = histories.offsets[users]
    return Ends(users, at - first, end - first, begins[at] - first)


def _labels(histories: Histories, at: numpy.ndarray) -> Dict[str, torch.Tensor]:
    return {name: torch.from_numpy(values[at]) for name, values in histories.labels.items()}


def ask(source: Source, ends: Ends, asking: Asking) -> Asked:
    """Each sequence with the event at its end as the target."""
    histories = source.histories
    zero = numpy.zeros_like(ends.ends)
    at, offsets = places(histories, ends.users, zero, ends.ends)
    targets = histories.items[histories.offsets[ends.users] + ends.ends]
    seen = torch.from_numpy(histories.items[at]), torch.from_numpy(offsets)
    return Asked(pack(source, ends, asking), torch.from_numpy(targets), seen)


def whole(histories: Histories, users: Optional[slice] = None) -> Ends:
    """All events of the users in a range of their numbers."""
    numbers = numpy.arange(len(histories.users))[users or slice(None)]
    return Ends(numbers, histories.lengths[numbers])


def places(
    histories: Histories, users: numpy.ndarray, starts: numpy.ndarray, ends: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The positions of each user's events from `starts` to `ends`, and each user's first."""
    lengths = ends - starts
    offsets = numpy.append(0, numpy.cumsum(lengths))
    first = histories.offsets[users] + starts - offsets[:-1]
    return numpy.repeat(first, lengths) + numpy.arange(offsets[-1]), offsets
