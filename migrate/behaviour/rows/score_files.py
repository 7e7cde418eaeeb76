"""The differences of the scores of all rows, from the files of both sides, in bounded memory.

Both files have the rows of one data set in its order, with the key of each row.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import pyarrow as pa

from migrate.behaviour.difference import ABSOLUTE, RELATIVE, apart, plain
from migrate.behaviour.report import ScorePlace
from migrate.scoring.output import ROW
from parity.io.batches import batches
from semisync.common.errors import BadInput

MOST = 10_000  # rows beyond the tolerance whose scores are remembered


class Suspects(NamedTuple):
    """Rows whose scores differ by more than the tolerance, ascending.

    Attributes:
        rows: counted over the data set from 0.
        keys: of each; None if that is its number.
        theirs, ours: TensorFlow's scores and torch's.
    """

    rows: np.ndarray
    keys: np.ndarray
    theirs: np.ndarray
    ours: np.ndarray

    def take(self, places: np.ndarray) -> Suspects:
        """The suspects at some positions, (n,)."""
        return Suspects(*(one[places] for one in self))

    def place(self, index: int) -> ScorePlace:
        """One of them."""
        row = int(self.rows[index]) + 1
        return ScorePlace(row, *(plain(one[index]) for one in self[1:]))


class Apart(NamedTuple):
    """The comparison of the files.

    Attributes:
        rows: how many there are.
        largest, at: the largest difference, and where; None if there is none.
        beyond: how many rows differ by more than the tolerance.
        suspects: those that do so most, MOST of them at most.
    """

    rows: int
    largest: float
    at: Optional[ScorePlace]
    beyond: int
    suspects: Suspects


def scores_apart(theirs: str, ours: str, key: str, score: str) -> Apart:
    """Compares two files of `semisync score`, TensorFlow's and torch's.

    Args:
        key, score: their columns.

    Raises:
        BadInput: the files do not have the same rows.
    """
    rows = beyond = 0
    largest, at = 0.0, None
    kept = Suspects(*(np.empty(0, kind) for kind in (np.int64, object, float, float)))
    for keys, one, other in _side_by_side(theirs, ours, key, score):
        keys = np.full(len(keys), None) if key == ROW else keys
        found = apart(one, other)
        every = Suspects(rows + np.arange(len(one)), keys, one, other)
        worst = int(np.argmax(found.absolute))
        if found.absolute[worst] > largest:
            largest, at = float(found.absolute[worst]), every.place(worst)
        more = every.take(np.flatnonzero(found.beyond))
        if len(more.rows):
            kept = _furthest(Suspects(*(np.concatenate(both) for both in zip(kept, more))))
        rows, beyond = rows + len(one), beyond + len(more.rows)
    return Apart(rows, largest, at, beyond, kept)


def _furthest(found: Suspects) -> Suspects:
    if len(found.rows) <= MOST:
        return found
    share = np.abs(found.theirs - found.ours) / (ABSOLUTE + RELATIVE * np.abs(found.theirs))
    return found.take(np.sort(np.argsort(-share, kind="stable")[:MOST]))


def _side_by_side(
    theirs: str, ours: str, key: str, score: str
) -> Iterator[Tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The keys, and the scores of both files, block by block."""
    tables: List[Iterator[pa.Table]] = [
        (batch.table for batch in batches(path, [score], [key])) for path in (theirs, ours)
    ]
    first, second = (next(one, None) for one in tables)
    while first is not None and second is not None:
        count = min(first.num_rows, second.num_rows)
        keys, others = (one[key].slice(0, count) for one in (first, second))
        if not keys.equals(others):
            break
        yield (
            keys.to_numpy(),
            first[score].slice(0, count).to_numpy(),
            second[score].slice(0, count).to_numpy(),
        )
        first, second = (
            one.slice(count) if one.num_rows > count else next(more, None)
            for one, more in ((first, tables[0]), (second, tables[1]))
        )
    if first is not None or second is not None:
        raise BadInput(
            f"{theirs} and {ours} do not have the same rows in the same order, as both sides' "
            "scores of one data set have; score it again into a new folder"
        )
