"""The rows of one table that this process has: vectors, the optimizer's slots, and counters.

1. Rows have the numbers 0 to count - 1, in columns whose `Room` doubles, unless `make_room` sets it
   for those that will come.
2. `IdIndex` finds the row of an id.
3. An evicted row's number passes to the last row, so that there are no holes.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import numpy
import torch

from migrate.id_tables.initializers import Initializer
from migrate.id_tables.pooling import summed
from migrate.runtime.tables.by_id import IdIndex, Room
from migrate.torchrec.optimizers import RowOptimizer
from semisync.common.compiled.table import unique_integers
from semisync.common.errors import BadInput, UsageError


class Store:
    """The rows of one table that this process has.

    Attributes:
        name: of the table, for messages.
        step: how many steps its rows have taken.
        left_out: slots of the source that were not read, for lack of an optimizer.
    """

    def __init__(self, name: str, dim: int, initializer: Initializer, seed: int) -> None:
        self.name, self.dim, self.initializer, self.seed = name, dim, initializer, seed
        self.step = 0
        self.left_out: List[str]
        self.optimizer: Optional[RowOptimizer] = None
        self.weight = torch.nn.Parameter(torch.empty(0, dim))
        self.clear()

    def clear(self) -> None:
        """Removes all rows."""
        self.left_out, self._room = [], Room()
        self.ids, self.freqs, self.versions = (numpy.empty(0, numpy.int64) for _ in range(3))
        self._rows = IdIndex(self.ids)
        self.weight.data = torch.empty(0, self.dim)
        for name in self.fills():
            self._state()[name] = torch.empty(0, self.dim)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def fills(self) -> Dict[str, float]:
        """The initial value of each of the optimizer's slots; none without an optimizer."""
        if self.optimizer is None:
            return {}
        return self.optimizer.initial_state(self.group())

    def group(self) -> Dict[str, object]:
        """The optimizer's settings for the table."""
        assert self.optimizer is not None
        groups = self.optimizer.param_groups
        return next(one for one in groups if any(p is self.weight for p in one["params"]))

    def columns(self) -> Dict[str, torch.Tensor]:
        """The vectors, "value", and the slots by name, [count, dim]."""
        state = self._state() if self.optimizer is not None else {}
        return {"value": self.weight.data, **{name: state[name] for name in self.fills()}}

    def trained_by(self, optimizer: RowOptimizer) -> None:
        """Sets the optimizer; existing rows get its initial slots."""
        self.optimizer = optimizer
        for name, fill in self.fills().items():
            self._state()[name] = torch.full_like(self.weight.data, fill)

    @property
    def updates(self) -> int:
        """How many steps the optimizer has counted, which Adam's correction needs."""
        return int(self._state()["step"]) if self.optimizer and "step" in self._state() else 0

    @updates.setter
    def updates(self, count: int) -> None:
        self._state()["step"] = torch.tensor(float(count))

    def described(self) -> Dict[str, Any]:
        """The state beside the rows, of JSON's types."""
        return {
            "dim": self.dim,
            "seed": self.seed,
            "step": self.step,
            "updates": self.updates,
            "slots": sorted(self.fills()),
        }

    def state(self) -> Dict[str, Any]:
        """`described`, and the rows themselves: id, count and last_step [count], vectors, slots."""
        columns = {"id": self.ids, "count": self.freqs, "last_step": self.versions}
        numbers = {name: torch.from_numpy(values) for name, values in columns.items()}
        return {**self.described(), "rows": {**numbers, **self.columns()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes the rows of a `state`; without an optimizer, vectors alone."""
        rows = state["rows"]
        self.clear()
        self.add(rows["id"].numpy().copy())
        self.seed, self.step = state["seed"], state["step"]
        self.freqs[:], self.versions[:] = rows["count"].numpy(), rows["last_step"].numpy()
        for name, tensor in self.columns().items():
            tensor.copy_(rows[name])
        if self.optimizer is None:
            self.left_out = state["slots"]
        else:
            self.updates = state["updates"]

    def find(self, ids: numpy.ndarray) -> numpy.ndarray:
        """The row [n] int64 of each of `ids` [n] int64; -1 where there is none."""
        return self._rows.find(ids)

    def admit(self, ids: numpy.ndarray) -> numpy.ndarray:
        """As `find` of distinct ids, but an id without a row gets one, with its initial vector."""
        rows = self.find(ids)
        (new,) = numpy.nonzero(rows < 0)
        if len(new):
            first = self.add(ids[new])
            rows[new] = numpy.arange(first, self.count)
            self.weight.data[first:] = self.initializer(ids[new], self.dim, self.seed)
        return rows

    def add(self, ids: numpy.ndarray) -> int:
        """Gives new ids the rows from the returned one on, with initial slots and counts.

        The caller sets the vectors. Raises BadInput if an id has a row.
        """
        first, last = self.count, self.count + len(ids)
        if last > self._rows.room:
            # Twice the rows, so that the index is made again only now and then.
            self._rows = IdIndex(self.ids, 2 * last)
        added = self._rows.add(ids, first)
        if added < len(ids):
            raise BadInput(f"table {self.name!r} is given the id {ids[added]} twice")
        self._resize(last)
        self.ids[first:] = ids
        self.freqs[first:] = 0
        self.versions[first:] = self.step
        columns = self.columns()
        for name, fill in self.fills().items():
            columns[name][first:] = fill
        return first

    def met(self, rows: numpy.ndarray, counts: numpy.ndarray) -> None:
        """Counts the batch of the coming step: `counts` of each of the distinct `rows`."""
        self.freqs[rows] += counts
        self.versions[rows] = self.step + 1

    def values(self, rows: numpy.ndarray) -> torch.Tensor:
        """The vectors [n, dim] of `rows` [n]; zeros if the table has no rows."""
        if not self.count:
            return torch.zeros(len(rows), self.dim)
        return self.weight.detach().index_select(0, torch.from_numpy(rows))

    def set_grad(self, rows: numpy.ndarray, grad: torch.Tensor) -> None:
        """Adds the gradient [n, dim] of distinct `rows` [n] to the one that the optimizer uses."""
        if self.weight.grad is not None:
            # From an earlier call: `collect` by hand, and then by the step.
            before = self.weight.grad.coalesce()
            every = numpy.concatenate([before.indices()[0].numpy(), rows])
            rows, places, _ = unique_integers(every)
            both = torch.cat([before.values(), grad])
            grad, self.weight.grad = summed(both, torch.from_numpy(places), len(rows)), None
        self.weight.grad = torch.sparse_coo_tensor(
            torch.from_numpy(rows).unsqueeze(0),
            grad,
            self.weight.shape,
            is_coalesced=True,
            check_invariants=False,
        )

    def evict(self, gone: numpy.ndarray) -> None:
        """Removes the rows that `gone`, bool [count], marks."""
        count = self.count - int(gone.sum())
        holes = numpy.flatnonzero(gone[:count])
        # As many rows stay beyond the new end as there are holes before it.
        moved = count + numpy.flatnonzero(~gone[count:])
        for column in (self.ids, self.freqs, self.versions):
            column[holes] = column[moved]
        to, source = torch.from_numpy(holes), torch.from_numpy(moved)
        for tensor in self.columns().values():
            tensor.index_copy_(0, to, tensor.index_select(0, source))
        self._resize(count)
        # Made again: an `IdIndex` cannot remove ids.
        self._rows = IdIndex(self.ids, self._rows.room)

    def _state(self) -> Dict[str, torch.Tensor]:
        assert self.optimizer is not None
        state: Dict[str, torch.Tensor] = self.optimizer.state[self.weight]
        return state

    def make_room(self, count: int) -> None:
        """Makes room for `count` rows in all."""
        self._resize(self.count, count)
        self._rows = IdIndex(self.ids, count)

    def _resize(self, count: int, room: int = 0) -> None:
        """Changes how many rows there are; new ones have any values."""
        for name in ("ids", "freqs", "versions"):
            own = torch.from_numpy(getattr(self, name))
            setattr(self, name, self._room.resized(name, own, count, room).numpy())
        for name, tensor in self.columns().items():
            resized = self._room.resized(name, tensor, count, room)
            if name == "value":
                self.weight.data = resized
            else:
                self._state()[name] = resized


def refuse_others(where: str, described: Mapping[str, Any], stores: Mapping[str, Store]) -> None:
    """Raises UsageError unless the tables `described` in a saved state are those of `stores`."""
    if sorted(described) != sorted(stores):
        raise UsageError(f"{where} has tables {sorted(described)}, not {sorted(stores)}")
    for name, store in stores.items():
        known = described[name]
        if known["dim"] != store.dim:
            raise UsageError(f"{where}: table {name!r} has dim {known['dim']}, not {store.dim}")
        if store.optimizer is not None and known["slots"] != sorted(store.fills()):
            raise UsageError(
                f"{where}: table {name!r} has the slots {known['slots']}, and its optimizer has "
                f"{sorted(store.fills())}"
            )
