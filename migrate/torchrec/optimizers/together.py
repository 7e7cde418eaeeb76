"""Rows of several tables that are stepped together, on a CPU: a call of torch for each table takes
longer than the work on a batch's few rows.
"""

from __future__ import annotations

import math
from typing import Iterator, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from migrate.runtime.compiled.table_rows import put_rows, sum_rows, take_rows


def is_plain(tensor: Tensor) -> bool:
    """Whether the functions below take it: float32 in one piece of the CPU's memory."""
    return tensor.is_cpu and tensor.dtype is torch.float32 and tensor.is_contiguous()


class Places:
    """Where rows stand in several tables [rows, ...], which differ in the number of rows alone.

    Args:
        ids: int64 [n], those of the first table, then those of the second, and so on.
        bounds: int64 [tables + 1], where those of each table begin in `ids`.
        tables: which tables these are, of more.
    """

    def __init__(self, ids: Tensor, bounds: numpy.ndarray, tables: slice = slice(None)) -> None:
        self.ids, self.tables = ids, tables
        self.rows = slice(int(bounds[0]), int(bounds[-1]))
        self._bounds = bounds

    def parts(self, most: int) -> Iterator[Places]:
        """The same in parts: each of one table, or of several that have `most` rows or less."""
        first = 0
        while first < len(self._bounds) - 1:
            end = numpy.searchsorted(self._bounds, self._bounds[first] + most, side="right")
            last = max(int(end) - 1, first + 1)
            yield Places(self.ids, self._bounds[first : last + 1], slice(first, last))
            first = last

    def take(self, tables: Sequence[Tensor]) -> Tensor:
        """The rows of all tables, one after the other: [total, ...].

        Raises:
            IndexError: a table does not have one of its rows.
        """
        out = tables[0].new_empty((self.rows.stop - self.rows.start, *tables[0].shape[1:]))
        missed = take_rows(*self._of(tables), _flat(out))
        if missed >= 0:
            raise IndexError(f"a gradient is of rows beyond its table's {tables[missed].size(0)}")
        return out

    def put(self, tables: Sequence[Tensor], rows: Tensor) -> None:
        """Sets the rows to what `take` gave and was changed."""
        put_rows(*self._of(tables), _flat(rows))

    def _of(self, tables: Sequence[Tensor]) -> Tuple[numpy.ndarray, ...]:
        sizes = numpy.array([one.size(0) for one in tables], numpy.int64)
        return _addresses(tables), sizes, self.ids.numpy(), self._bounds


def summed(gradients: Sequence[Tensor]) -> Tuple[Places, Tensor]:
    """Of sparse gradients, all of one shape but for the tables' rows: the distinct rows, and their
    gradients [n, ...], summed where a row repeats."""
    ids = [one._indices()[0].contiguous() for one in gradients]
    values = [one._values().detach().contiguous() for one in gradients]
    counts = numpy.array([one.numel() for one in ids], numpy.int64)
    shape = values[0].shape[1:]
    rows, sums, bounds = sum_rows(_addresses(ids), _addresses(values), counts, math.prod(shape))
    return Places(torch.from_numpy(rows), bounds), torch.from_numpy(sums).view(-1, *shape)


def _addresses(tensors: Sequence[Tensor]) -> numpy.ndarray:
    return numpy.array([one.data_ptr() for one in tensors], numpy.int64)


def _flat(rows: Tensor) -> numpy.ndarray:
    return rows.detach().view(rows.size(0), math.prod(rows.shape[1:])).numpy()
