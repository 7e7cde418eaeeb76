"""A table whose rows are found by raw id, as in a hash table: any int64 ids, as many as there are.

    table = TableById(rows=8, dim=4)           # ids and weights come with load_state_dict
    vectors = table(ids, default)              # [*ids.shape, 4]

1. Row i of `weight` belongs to id i of `ids`.
2. An id that the table does not have gets `default`: one row for all, or one for each id. While the
   model trains the table adds such an id, at the end, with that row.
3. The attribute `default`, if it is set, replaces the graph's default for such ids: float [dim]. If
   the graph draws that at random, scores of unknown ids differ from run to run;
   `table.default = zeros` avoids this.
4. `unknown` counts the look-ups that found no row, of the `looked_up` since the model was made.
5. The optimizers of `migrate.build_training` give new rows new slots.
6. Room for rows doubles when it is full, so that adding a row takes amortised constant time,
   whatever the size of the table.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy
import torch
from torch import Tensor, nn

from migrate.runtime.tables.rows import rows_that_grow
from semisync.common.compiled.table import add_integers, find_integers, unique_integers


class Room:
    """Spare capacity: each named tensor is the first rows of a larger one of its own."""

    def __init__(self) -> None:
        self._larger: Dict[Any, Tensor] = {}

    def resized(self, name: Any, tensor: Tensor, rows: int, room: int = 0) -> Tensor:
        """The tensor [n, ...] with `rows`, any values in new ones, and room for `room`."""
        larger, room = self._larger.get(name), max(rows, room)
        own = tensor[:rows]
        if larger is None or len(larger) < room or not _is_first(own, larger):
            larger = tensor.new_empty((max(room, 2 * len(own)), *tensor.shape[1:]))
            larger[: len(own)] = own
            self._larger[name] = larger
        return larger[:rows]

    def without(self, name: Any, tensor: Tensor) -> Tensor:
        """A tensor without its spare capacity, for saving: torch would save the larger one."""
        larger = self._larger.pop(name, None)
        return tensor if larger is None or len(larger) == len(tensor) else tensor.clone()


def _is_first(own: Tensor, larger: Tensor) -> bool:
    """Whether a tensor is the first rows of a larger one; an empty tensor has no address."""
    where = own.data_ptr() if len(own) else larger.data_ptr()
    return own.device == larger.device and where == larger.data_ptr()


class IdIndex:
    """The rows of int64 ids, in a hash table at most half full, which grows with them.

    Row i is that of ids[i]; for an id that occurs twice, the first one.

    Args:
        ids: int64 [n].
        room: the least capacity.
    """

    def __init__(self, ids: numpy.ndarray, room: int = 0) -> None:
        self.room = 1 << (max(len(ids), room, 1) - 1).bit_length()
        self._slots = numpy.full((2 * self.room, 2), -1, numpy.int64)  # (id, row); -1: free
        at = 0
        while at < len(ids):
            # `add` stops at an id that occurs again: it is passed over, and the first row stays.
            at += self.add(ids[at:], at) + 1

    def find(self, ids: numpy.ndarray) -> numpy.ndarray:
        """The row [n] int64 of each of `ids` [n] int64; -1 where there is none."""
        found: numpy.ndarray = find_integers(self._slots, -1, ids)
        return found

    def add(self, ids: numpy.ndarray, first: int) -> int:
        """Adds `ids` as rows from `first` on, up to an id that has a row; returns how many."""
        return int(add_integers(self._slots, ids, first))


class TableById(nn.Module):
    """A table whose rows are found by raw id; the module docstring has its rules.

    Args:
        rows, dim: the shape of `weight`.
    """

    ids: Tensor
    default: Optional[Tensor]
    unknown: int
    looked_up: int

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, dim))
        self.register_buffer("ids", torch.empty(rows, dtype=torch.int64))
        self.default, self.unknown, self.looked_up = None, 0, 0
        self._rows: Optional[IdIndex] = None
        self._room = Room()

    def forward(self, ids: Tensor, default: Tensor) -> Tensor:
        """The rows of `ids`, int64 of any shape.

        Args:
            default: float [], [dim], [1, dim] or [n, dim].
        """
        flat = ids.reshape(-1)
        rows, known = self.find(flat)
        default = self.rows_of(default if self.default is None else self.default, len(flat))
        self.looked_up += len(flat)
        if not known.all():
            if self.training and torch.is_grad_enabled():
                self._take_in(flat, known, default)
                rows, known = self.find(flat)
            else:
                self.unknown += int((~known).sum())
        if known.all():
            return rows_that_grow(self.weight, rows.reshape(ids.shape))
        found = default.clone()
        found[known] = self.weight[rows[known]]
        return found.reshape(*ids.shape, -1)

    def find(self, ids: Tensor) -> Tuple[Tensor, Tensor]:
        """The row of each of `ids`, [n] int64, and whether there is one: bool [n]."""
        if self._rows is None:
            self._rows = IdIndex(self.ids.cpu().numpy())
        wanted = ids.to("cpu", torch.int64).contiguous().numpy()
        rows = torch.from_numpy(self._rows.find(wanted)).to(self.weight.device)
        return rows, rows >= 0

    def rows_of(self, default: Tensor, count: int) -> Tensor:
        """A default as a row for each of `count` ids: float [count, dim]."""
        return default.to(self.weight).expand(count, self.weight.shape[1])

    def make_room(self, rows: int) -> None:
        """Replaces the rows by `rows` of any content, into which a checkpoint is read."""
        self.set_rows(self.ids.new_empty(rows), self.weight.new_empty(rows, self.weight.shape[1]))

    def set_rows(self, ids: Tensor, weight: Tensor) -> None:
        """Replaces all rows by those of int64 ids [n], weight [n, dim]."""
        self.ids, self.weight.data, self._rows = ids, weight, None

    def _take_in(self, ids: Tensor, known: Tensor, default: Tensor) -> None:
        """Adds a row for each id that has none, with its first default."""
        new, numbers, _ = unique_integers(ids[~known].to("cpu", torch.int64).numpy())
        begin = default.detach()[~known]
        # Where each new id occurs first: the default there is the one that counts.
        _, first = numpy.unique(numbers, return_index=True)
        count = len(self.ids)
        self.ids = self._room.resized("ids", self.ids, count + len(new))
        self.ids[count:] = torch.from_numpy(new)
        weight = self._room.resized("weight", self.weight.detach(), len(self.ids))
        weight[count:] = begin[torch.from_numpy(first).to(begin.device)]
        self.weight.data = weight
        if self._rows is None or len(self.ids) > self._rows.room:
            self._rows = IdIndex(self.ids[:count].cpu().numpy(), 2 * len(self.ids))
        self._rows.add(new, count)

    def _save_to_state_dict(self, *arguments: Any) -> None:
        """As torch's, without the spare capacity."""
        self.ids = self._room.without("ids", self.ids)
        self.weight.data = self._room.without("weight", self.weight.detach())
        super()._save_to_state_dict(*arguments)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        """As torch's, with the number of rows in the state."""
        ids, weight = (state_dict.get(prefix + name) for name in ("ids", "weight"))
        if ids is not None and weight is not None and len(ids) == len(weight):
            self.make_room(len(ids))
        super()._load_from_state_dict(state_dict, prefix, *more)
