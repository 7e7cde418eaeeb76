"""Rows of several tables that are stepped together, on a CPU: a call of torch for each table takes
longer than the work on a batch's few rows.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from semisync.common.compiled.table_rows import put_rows, sum_rows, take_rows


def is_plain(tensor: Tensor) -> bool:
    """Whether `Together` takes it: float32 in one piece of the CPU's memory."""
    return tensor.is_cpu and tensor.dtype is torch.float32 and tensor.is_contiguous()


class Together:
    """The rows that a step changes, each once, of tables [rows, ...] that differ in the number of
    rows alone.

    Args:
        weights: the tables; the caller keeps them.
        slots: by name, one of each table; the caller keeps them.
        gradients: sparse ones, of each table; those of a row that repeats are summed.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        slots: Mapping[str, Sequence[Tensor]],
        gradients: Sequence[Tensor],
    ) -> None:
        self._shape = weights[0].shape[1:]
        self._width = math.prod(self._shape)
        self._sizes = numpy.array([one.size(0) for one in weights], numpy.int64)
        self._weights = _addresses(weights)
        self._slots = {name: _addresses(own) for name, own in slots.items()}
        ids = [one._indices().contiguous() for one in gradients]  # [1, n]
        values = [one._values().contiguous() for one in gradients]
        counts = numpy.array([one.size(0) for one in values], numpy.int64)
        found = sum_rows(_addresses(ids), _addresses(values), counts, self._width)
        self._ids, self._grads, self._bounds = found

    def parts(self, most: int) -> Iterator[Tuple[Tensor, Tensor, Dict[str, Tensor]]]:
        """Gives (weights, gradients, slots by name), [n, ...] each, of one table, or of several
        that have `most` values or less; weights and slots are written back as they were changed.

        Raises:
            IndexError: a table does not have one of its rows.
        """
        first, most = 0, most // max(1, self._width)
        while first < len(self._sizes):
            end = numpy.searchsorted(self._bounds, self._bounds[first] + most, side="right")
            # At least one table, even if it has more than `most`.
            last = max(int(end) - 1, first + 1)
            bounds = self._bounds[first : last + 1]
            own, places = slice(first, last), (self._sizes[first:last], self._ids, bounds)
            weight = self._taken(self._weights[own], *places)
            state = {name: self._taken(one[own], *places) for name, one in self._slots.items()}
            grads = torch.from_numpy(self._grads[bounds[0] : bounds[-1]])
            yield weight, grads.view(weight.shape), state
            put_rows(self._weights[own], *places, self._flat(weight))
            for name, one in self._slots.items():
                put_rows(one[own], *places, self._flat(state[name]))
            first = last

    def step(self, kernel: Any, slots: Sequence[str], *settings: float) -> None:
        """A step of semisync.common.compiled.row_steps.

        Args:
            slots: in the kernel's order.
            settings: its hyperparameters.

        Raises:
            IndexError: a table does not have one of its rows.
        """
        tables = (self._weights, *(self._slots[name] for name in slots))
        places = self._sizes, self._ids, self._bounds
        missed = kernel(*tables, *places, self._grads, *map(numpy.float32, settings))
        _refuse(missed, self._sizes)

    def _taken(self, tables: numpy.ndarray, *places: numpy.ndarray) -> Tensor:
        sizes, _, bounds = places
        size = (int(bounds[-1] - bounds[0]), *self._shape)
        out = torch.empty(size, dtype=torch.float32, device="cpu")
        _refuse(take_rows(tables, *places, self._flat(out)), sizes)
        return out

    def _flat(self, rows: Tensor) -> numpy.ndarray:
        return rows.view(rows.size(0), self._width).numpy()


def _refuse(missed: int, sizes: numpy.ndarray) -> None:
    if missed >= 0:
        raise IndexError(f"a gradient is of rows beyond its table's {sizes[missed]}")


def _addresses(tensors: Sequence[Tensor]) -> numpy.ndarray:
    return numpy.array([one.data_ptr() for one in tensors], numpy.int64)
