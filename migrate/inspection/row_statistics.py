"""Statistics of a table's rows: norms, and suspicious rows. They stream, one chunk in memory.

A row is suspicious when it holds a NaN or an infinity, when it is all zero, or when it was never
updated: then every optimizer slot still has the value that TensorFlow gives it by default (0.1 for
Adagrad's and FTRL's accumulators, 1 for RMSProp's mean square, else 0).
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable
from semisync.encoding.dtypes import as_rows

_CHUNK = 4 << 20  # bytes of one chunk of one tensor
_EXAMPLES = 5  # rows that are named of each suspicious sort


class Suspects(NamedTuple):
    """How many rows, and the first of them (row numbers, or ids of a hash table)."""

    total: int
    first: Tuple[Any, ...]


class RowStatistics(NamedTuple):
    """Statistics of a table's rows.

    Attributes:
        norm_mean, norm_max: of the Euclidean norms of finite rows, None if there are none.
        never_updated: None if no slot shows it.
    """

    rows: int
    dim: int
    norm_mean: Optional[float]
    norm_max: Optional[float]
    not_finite: Suspects
    all_zero: Suspects
    never_updated: Optional[Suspects]


def of_variable(checkpoint: Checkpoint, name: str, slots: Mapping[str, float]) -> RowStatistics:
    """Reads the variable and its slots from front to back, verified.

    Args:
        slots: tensors of the variable's shape -> their initial value.
    """
    info = checkpoint[name]
    row_bytes = info.nbytes // info.shape[0] if info.shape[0] else 0
    per_chunk = max(_CHUNK // max(row_bytes, 1), 1)
    streams = [checkpoint.chunks(slot, per_chunk) for slot in slots]
    counter = _Counter(bool(streams))
    for first, values in checkpoint.chunks(name, per_chunk):
        untouched = numpy.ones(len(values), bool)
        for stream, value in zip(streams, slots.values()):
            state = as_rows(next(stream)[1])
            # In the slot's type: 0.1 as a float32 is not 0.1.
            untouched &= (state == state.dtype.type(value)).all(axis=1)
        counter.add(as_rows(values), numpy.arange(first, first + len(values)), untouched)
    return counter.result()


def of_table(table: HashTable) -> RowStatistics:
    """Reads a hash table; its slots have an order of their own and are not joined."""
    row_bytes = 4 * math.prod(table.value_shape)
    counter = _Counter(False)
    for rows in table.chunks(max(_CHUNK // max(row_bytes, 8), 1)):
        if rows.values is not None and rows.keys.size:
            counter.add(as_rows(rows.values), rows.keys, None)
    return counter.result()


class _Counter:
    """Adds up chunks."""

    def __init__(self, with_slots: bool) -> None:
        self._rows, self._dim, self._finite = 0, 0, 0
        self._sum, self._max = 0.0, 0.0
        self._suspects: List[Tuple[int, List[Any]]] = [(0, []), (0, []), (0, [])]
        self._with_slots = with_slots

    def add(
        self, values: numpy.ndarray, names: numpy.ndarray, untouched: Optional[numpy.ndarray]
    ) -> None:
        """Adds a chunk: values [n, dim], names of the rows [n], mask of rows never updated [n]."""
        self._rows += len(values)
        self._dim = values.shape[1]
        finite = numpy.isfinite(values).all(axis=1) if values.dtype.kind == "f" else None
        good = values if finite is None or finite.all() else values[finite]
        # Squares of large float32 numbers would overflow in float32.
        norms = numpy.sqrt(numpy.einsum("ij,ij->i", good, good, dtype=numpy.float64))
        self._finite += len(good)
        self._sum += float(norms.sum())
        self._max = max(self._max, float(norms.max(initial=0)))
        zero = ~values.any(axis=1)
        masks = [None if finite is None else ~finite, zero, untouched]
        for index, mask in enumerate(masks):
            if mask is not None and mask.any():
                count, first = self._suspects[index]
                first = (first + names[mask][:_EXAMPLES].tolist())[:_EXAMPLES]
                self._suspects[index] = (count + int(mask.sum()), first)

    def result(self) -> RowStatistics:
        """The statistics of all chunks."""
        not_finite, zero, untouched = (Suspects(n, tuple(first)) for n, first in self._suspects)
        return RowStatistics(
            rows=self._rows,
            dim=self._dim,
            norm_mean=self._sum / self._finite if self._finite else None,
            norm_max=self._max if self._finite else None,
            not_finite=not_finite,
            all_zero=zero,
            never_updated=untouched if self._with_slots else None,
        )


def _text(name: Any) -> Any:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def described(statistics: RowStatistics) -> Dict[str, Any]:
    """The statistics as plain data for JSON; ids that are bytes become text."""
    plain = statistics._asdict()
    for key in ("not_finite", "all_zero", "never_updated"):
        if plain[key] is not None:
            first = [_text(name) for name in plain[key].first]
            plain[key] = {"count": plain[key].total, "first": first}
    return plain
