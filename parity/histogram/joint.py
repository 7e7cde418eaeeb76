"""Rows counted by the coarse bins (parity.histogram.bins) of both models' scores and by label.

Alike models put most rows near the diagonal, into cells of an array; the others' cells are kept as
sorted runs. With weights, the sum of the squared weights of each cell is kept beside its rows: that
is needed for a variance.
"""

from typing import List, NamedTuple, Optional

import numpy as np

from parity.histogram.bins import COARSE_BINS, empty_counts

_BAND = 64  # candidate's bin - baseline's, from -32; cells within it are counted in an array
_PENDING = 1 << 21  # cells that wait to be put together
_BITS = 14  # of a coarse bin
_MASK = (1 << _BITS) - 1


class Cells(NamedTuple):
    """Cells in use, once each, by rising key."""

    keys: np.ndarray  # int64 (cells,): baseline's bin, candidate's bin, label
    rows: np.ndarray  # int64 (cells,)
    squares: np.ndarray  # of the rows' weights: float64 (cells,), or `rows` itself without weights

    @property
    def positive(self) -> np.ndarray:
        """bool (cells,)."""
        return (self.keys & 1).astype(bool)

    def bins(self, model: int) -> np.ndarray:
        """int64 (cells,): the coarse bins of the baseline (0) or the candidate (1)."""
        return self.keys >> (1 if model else 1 + _BITS) & _MASK


class Joint:
    """Counts cells."""

    def __init__(self, weighted: bool) -> None:
        shape = (2 * COARSE_BINS * _BAND,)
        self._rows = empty_counts(shape, np.int64)
        self._squares = empty_counts(shape, np.float64) if weighted else None
        self._runs: List[Cells] = []

    def add(
        self,
        positive: np.ndarray,
        old: np.ndarray,
        new: np.ndarray,
        weights: Optional[np.ndarray] = None,
    ) -> None:
        """Counts rows: bool (n,), int32 (n,) coarse bins, float64 (n,) weights if weighted."""
        apart = new - old
        apart += _BAND // 2
        far = np.flatnonzero(apart.view(np.uint32) >= _BAND)  # below 0 too: it wraps around
        place = old * np.int32(2 * _BAND)
        apart <<= 1
        place += apart
        place += positive.astype(np.int32)
        squares = None if weights is None else weights * weights
        if len(far):
            keys = _keys(old[far], new[far], positive[far])
            self._runs.append(_put_together(keys, None, None if squares is None else squares[far]))
            place[far] = 0  # taken back below
        cells = place.astype(np.intp)
        np.add.at(self._rows, cells, 1)
        self._rows[0] -= len(far)
        if self._squares is not None and squares is not None:
            squares[far] = 0
            np.add.at(self._squares, cells, squares)
        # The first run is the joined one: only those since then wait.
        if sum(len(run.keys) for run in self._runs[1:]) > _PENDING:
            self._join_runs()

    def merge(self, cells: Cells) -> None:
        """Adds another part's cells."""
        self._runs.append(cells)
        self._join_runs()

    def cells(self) -> Cells:
        """All cells in use."""
        # What the array holds moves to a run, so that asking again costs little.
        used = np.flatnonzero(self._rows)
        if len(used):
            old = used // (2 * _BAND)
            new = old + used // 2 % _BAND - _BAND // 2
            rows = self._rows[used]
            self._rows[used] = 0
            squares = rows
            if self._squares is not None:
                squares = self._squares[used]
                self._squares[used] = 0
            self._runs.append(Cells(_keys(old, new, used % 2), rows, squares))
        self._join_runs()
        return self._runs[0]

    def _join_runs(self) -> None:
        if len(self._runs) == 1:
            return
        empty = np.zeros(0, np.int64)  # a run at least, also where nothing was counted
        runs = [Cells(empty, empty, empty), *self._runs]
        keys, rows = (np.concatenate([run[i] for run in runs]) for i in (0, 1))
        squares = None
        if self._squares is not None:
            squares = np.concatenate([run.squares for run in runs])
        self._runs = [_put_together(keys, rows, squares)]


def _keys(old: np.ndarray, new: np.ndarray, label: np.ndarray) -> np.ndarray:
    keys = old.astype(np.int64) << (1 + _BITS)
    keys |= new.astype(np.int64) << 1
    keys |= label
    return keys


def _put_together(
    keys: np.ndarray, rows: Optional[np.ndarray], squares: Optional[np.ndarray]
) -> Cells:
    """Sorts cells and adds up those of one key; `rows` None means one each."""
    if rows is None and squares is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys, kind="stable")  # merges runs that are sorted already
        keys = keys[order]
        rows, squares = (None if column is None else column[order] for column in (rows, squares))
    differs = np.ones(len(keys), bool)
    differs[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(differs)
    counted = np.diff(np.append(first, len(keys))) if rows is None else _sums(rows, first)
    return Cells(keys[first], counted, counted if squares is None else _sums(squares, first))


def _sums(amounts: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.add.reduceat(amounts, first) if len(first) else amounts
