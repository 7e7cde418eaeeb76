"""A batch of sequences of any lengths, without padding."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Mapping, NamedTuple, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from migrate.sequences.tokens import Sees, Tokens, numbered
from semisync.common.errors import BadInput


@dataclasses.dataclass(frozen=True)
class Packed:
    """A batch of sequences of any lengths, one after the other, without padding.

    T is the number of all items, B that of the sequences. Every sequence has at least one item that
    is not a candidate.

    Args:
        items: int64 [T], rows of the item table.
        offsets: int64 [B + 1]; sequence b is items[offsets[b]:offsets[b + 1]].
        times: [T], when each item was, in any unit; None: unknown.
        labels: name -> [T], 0 or 1: of each item.
        asked: [B], when each sequence's next item is asked for; None: at its last item.
        targets: int64 [B], how many of each sequence's last items are candidates, which see the
            items before them and themselves, not each other; None: there are none.

    Raises:
        BadInput: the parts do not fit each other.

    Examples:
        >>> from migrate.sequences import Packed
        >>> packed = Packed.of([[3, 8, 1], [4, 9]], times=[[60, 120, 500], [0, 86400]])
        >>> packed.items, packed.offsets
        (tensor([3, 8, 1, 4, 9]), tensor([0, 3, 5]))
    """

    items: Tensor
    offsets: Tensor
    times: Optional[Tensor] = None
    labels: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    asked: Optional[Tensor] = None
    targets: Optional[Tensor] = None

    def __post_init__(self) -> None:
        count, sequences = len(self.items), len(self.offsets) - 1
        if sequences < 1 or int(self.offsets[0]) or int(self.offsets[-1]) != count:
            raise BadInput(f"the offsets do not run from 0 to the {count} items of the batch")
        for name, part, size in (
            ("times", self.times, count),
            *((f"labels of {name!r}", part, count) for name, part in self.labels.items()),
            ("times of the questions", self.asked, sequences),
            ("numbers of candidates", self.targets, sequences),
        ):
            if part is not None and len(part) != size:
                raise BadInput(f"a batch has {len(part)} {name}, expected {size}")
        seen = self.lengths if self.targets is None else self.lengths - self.targets
        if int(seen.min()) < 1:
            raise BadInput("a sequence has no item, or only candidates")

    @staticmethod
    def of(
        items: Sequence[Any],
        times: Optional[Sequence[Any]] = None,
        labels: Optional[Mapping[str, Sequence[Any]]] = None,
        asked: Any = None,
        targets: Any = None,
    ) -> Packed:
        """Packs one list, array or tensor per sequence.

        Args:
            items: of each sequence.
            times: of each sequence, or None.
            labels: by name, of each sequence.
            asked: a time per sequence, or None.
            targets: a number per sequence, or None.

        Returns:
            A `Packed`.
        """
        lengths = torch.tensor([0, *map(len, items)])
        return Packed(
            _joined(items),
            lengths.cumsum(0),
            None if times is None else _joined(times),
            {name: _joined(parts) for name, parts in (labels or {}).items()},
            None if asked is None else torch.as_tensor(asked),
            None if targets is None else torch.as_tensor(targets),
        )

    @property
    def lengths(self) -> Tensor:
        """The number of items of each sequence: int64 [B]."""
        return self.offsets.diff()

    @property
    def last(self) -> Tensor:
        """The position of each sequence's last item: int64 [B]."""
        return self.offsets[1:] - 1

    @functools.cached_property
    def tokens(self) -> Tokens:
        """Each item as a token: it sees all up to itself, of candidates only itself."""
        sees = None
        if self.targets is not None:
            sees = Sees(self.places(), numbered(self.offsets))
        asked = None if self.times is None else self.next_times()
        return Tokens(self.offsets, self.places(), self.times, asked, sees)

    def places(self) -> Tensor:
        """Each item's number in its sequence, from 0; all candidates have that of the first.

        Returns:
            int64 [T].
        """
        places = numbered(self.offsets)
        if self.targets is None:
            return places
        seen = self.lengths - self.targets
        return torch.minimum(places, seen.repeat_interleave(self.lengths))

    def candidates(self) -> Optional[Tensor]:
        """Whether each item is a candidate.

        Returns:
            bool [T]; None: there are none.
        """
        if self.targets is None:
            return None
        ends = self.offsets[1:].repeat_interleave(self.lengths)
        places = torch.arange(len(self.items), device=ends.device)
        return places >= ends - self.targets.repeat_interleave(self.lengths)

    def next_times(self) -> Tensor:
        """When the item after each was, which is when it is asked for; of a candidate its own time.

        Returns:
            [T].
        """
        assert self.times is not None
        following = self.times.roll(-1)
        following[self.last] = self.times[self.last] if self.asked is None else self.asked
        candidates = self.candidates()
        return following if candidates is None else torch.where(candidates, self.times, following)

    def begins(self) -> Tensor:
        """Whether each item begins a moment: none of a moment's items is before another.

        Items in a row whose times are equal are of one moment, as are all candidates of a sequence.

        Returns:
            bool [T].
        """
        begins = torch.ones_like(self.items, dtype=torch.bool)
        if self.times is not None:
            begins[1:] = self.times[1:] != self.times[:-1]
        candidates = self.candidates()
        if candidates is not None:
            begins[1:] &= ~(candidates[1:] & candidates[:-1])
        begins[self.offsets[:-1]] = True
        return begins

    def followed(self) -> Followed:
        """The examples of next items: each is asked for after all events before its moment.

        Returns:
            `Followed`.

        Raises:
            BadInput: no sequence has items of two moments.
        """
        begins = self.begins()
        moments, first = begins.cumsum(0) - 1, begins.nonzero().squeeze(1)
        last = moments[self.last]
        # The last moment is only predicted: nothing follows it.
        there = moments < last.repeat_interleave(self.lengths)
        ends = F.pad(there.cumsum(0), (1, 0))
        lengths = ends[self.offsets].diff()
        kept = lengths > 0
        if not bool(kept.any()):
            raise BadInput(
                "no sequence of a batch has items of two moments: there is nothing to learn"
            )
        times = self.times
        seen = Packed(
            self.items[there],
            F.pad(lengths[kept].cumsum(0), (1, 0)),
            None if times is None else times[there],
            {name: part[there] for name, part in self.labels.items()},
            None if times is None else times[first[last]][kept],
        )
        earliest = moments[self.offsets[:-1]].repeat_interleave(self.lengths)
        following = (moments > earliest).nonzero().squeeze(1)
        # The place in `seen` of the last item before the moment; `ends` has those of all kept
        # items.
        asking = ends[first[moments[following]] - 1]
        return Followed(seen, there.nonzero().squeeze(1), asking, following)

    def to(self, device: Any) -> Packed:
        """The batch on another device.

        Args:
            device: a torch.device or its name.

        Returns:
            A `Packed`.
        """

        def moved(part: Optional[Tensor]) -> Optional[Tensor]:
            return None if part is None else part.to(device)

        return Packed(
            self.items.to(device),
            self.offsets.to(device),
            moved(self.times),
            {name: part.to(device) for name, part in self.labels.items()},
            moved(self.asked),
            moved(self.targets),
        )


class Followed(NamedTuple):
    """Next items, and the position that each is predicted from.

    Attributes:
        seen: the items before the last moment of each sequence.
        places: the positions of `seen` in the batch, int64 [n].
        asking: the item of `seen` from which each next item is predicted, int64 [m].
        following: the positions of the next items in the batch, int64 [m].
    """

    seen: Packed
    places: Tensor
    asking: Tensor
    following: Tensor


def _joined(parts: Sequence[Any]) -> Tensor:
    return torch.cat([torch.as_tensor(part) for part in parts])
