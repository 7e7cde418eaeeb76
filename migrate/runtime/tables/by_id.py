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
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy
import torch
from torch import Tensor, nn

from migrate.runtime.tables.id_index import IdIndex
from migrate.runtime.tables.room import Room
from migrate.runtime.tables.rows import rows_that_grow
from semisync.common.compiled.table import unique_integers


class TableById(nn.Module):
    """rows, dim: of the weights."""

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
        """Makes room for the rows that will be read into `ids` and `weight`."""
        self.set_rows(self.ids.new_empty(rows), self.weight.new_empty(rows, self.weight.shape[1]))

    def set_rows(self, ids: Tensor, weight: Tensor) -> None:
        """Replaces all rows by those of int64 ids [n], weight [n, dim]."""
        self.ids, self.weight.data, self._rows = ids, weight, None

    def _take_in(self, ids: Tensor, known: Tensor, default: Tensor) -> None:
        """Adds a row for each id that has none, with its first default."""
        new, numbers, _ = unique_integers(ids[~known].to("cpu", torch.int64).numpy())
        begin = default.detach()[~known]
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
