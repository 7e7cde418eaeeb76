"""The scores of all rows, as both sides wrote them: the largest difference, and its row.

1. The files of both sides are compared row by row, in bounded memory. Both have the rows of one
   data set in its order, with the key of each row.
2. Rows whose scores differ by more than the tolerance, if there are many the ones that differ most,
   are scored by TensorFlow again, to measure its rounding; a difference up to a multiple of that is
   rounding, see `difference`.
3. In the batch with the largest other difference `first_node` looks for the first node that
   differs.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import pyarrow as pa

from migrate.behaviour.both import Both, open_both
from migrate.behaviour.difference import ABSOLUTE, RELATIVE, apart, plain
from migrate.behaviour.largest import of_rows
from migrate.behaviour.report import ScorePlace, ScoresReport
from migrate.behaviour.rows import Rows, read_rows
from migrate.behaviour.setting import DEFAULT, Setting
from migrate.scoring.output import ROW
from parity.io.batches import batches
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge

MOST = 10_000  # rows beyond the tolerance whose scores are remembered


class ScoreFiles(NamedTuple):
    """Two files of `semisync score`, of the same rows.

    Attributes:
        tensorflow, torch: their paths.
        key: the column that names a row.
        score: the column of the output.
        column: the number of the value, for an output with several per row.
    """

    tensorflow: str
    torch: str
    key: str
    score: str
    column: Optional[int] = None


def compare_scores(
    prefix: str,
    converted: str,
    data: str,
    files: ScoreFiles,
    setting: Setting = DEFAULT,
) -> ScoresReport:
    """Whether model.py's score of every row is TensorFlow's.

    Args:
        prefix: a checkpoint with its MetaGraph, a SavedModel or a frozen graph.
        converted: its conversion by `semisync convert --model`.
        data: the data set that was scored.

    Raises:
        BadInput, UsageError: they cannot be compared.
    """
    found = scores_apart(files.tensorflow, files.torch, files.key, files.score)
    if not found.beyond:
        return ScoresReport(found.rows, found.largest, found.at, 0, 0, 0, None)
    with open_both(prefix, converted, setting) as both:
        return _judge(both, data, setting, found, files.column or 0)


def _judge(both: Both, data: str, setting: Setting, found: _Apart, column: int) -> ScoresReport:
    (tensor,) = map(of_edge, both.chosen.values())
    suspects, judged, beyond, largest = found.suspects, 0, 0, 0.0
    at: Optional[ScorePlace] = None
    worst: Optional[Rows] = None
    chosen = suspects.rows
    for batch in read_rows(data, both.given.inputs, setting, both.fixed, chosen):
        # The batches have the rows of the suspects, in their order.
        some = suspects.take(np.arange(judged, judged + batch.rows))
        rounding = of_rows(batch, both.rounding(batch, tensor)()).reshape(batch.rows, -1)
        told = apart(some.theirs, some.ours, rounding=rounding[:, column])
        judged += batch.rows
        beyond += int(told.beyond.sum())
        sizes = np.where(told.beyond, told.absolute, 0.0)
        place = int(np.argmax(sizes))
        if sizes[place] > largest:
            largest, at, worst = float(sizes[place]), some.place(place), batch
    if worst is None:
        return ScoresReport(found.rows, found.largest, found.at, found.beyond, judged, 0, None)
    first = both.first_node(worst)
    return ScoresReport(found.rows, largest, at, found.beyond, judged, beyond, first)


class _Suspects(NamedTuple):
    """Rows whose scores differ by more than the tolerance, in ascending order.

    Attributes:
        rows: counted over the data set from 0.
        keys: of each; None if that is its number.
        theirs, ours: TensorFlow's scores and torch's.
    """

    rows: np.ndarray
    keys: np.ndarray
    theirs: np.ndarray
    ours: np.ndarray

    def take(self, places: np.ndarray) -> _Suspects:
        """The suspects at some positions, (n,)."""
        return _Suspects(*(one[places] for one in self))

    def place(self, index: int) -> ScorePlace:
        """The place of one suspect, for the report."""
        row = int(self.rows[index]) + 1
        return ScorePlace(row, *(plain(one[index]) for one in self[1:]))


class _Apart(NamedTuple):
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
    suspects: _Suspects


def scores_apart(theirs: str, ours: str, key: str, score: str) -> _Apart:
    """Compares two files of `semisync score`, TensorFlow's and torch's.

    Args:
        key, score: their columns.

    Raises:
        BadInput: the files do not have the same rows.
    """
    rows = beyond = 0
    largest, at = 0.0, None
    kept = _Suspects(*(np.empty(0, kind) for kind in (np.int64, object, float, float)))
    for keys, one, other in _side_by_side(theirs, ours, key, score):
        # A key that is the row's number is not repeated in the report.
        keys = np.full(len(keys), None) if key == ROW else keys
        found = apart(one, other)
        every = _Suspects(rows + np.arange(len(one)), keys, one, other)
        worst = int(np.argmax(found.absolute))
        if found.absolute[worst] > largest:
            largest, at = float(found.absolute[worst]), every.place(worst)
        more = every.take(np.flatnonzero(found.beyond))
        if len(more.rows):
            kept = _furthest(_Suspects(*(np.concatenate(both) for both in zip(kept, more))))
        rows, beyond = rows + len(one), beyond + len(more.rows)
    return _Apart(rows, largest, at, beyond, kept)


def _furthest(found: _Suspects) -> _Suspects:
    if len(found.rows) <= MOST:
        return found
    share = np.abs(found.theirs - found.ours) / (ABSOLUTE + RELATIVE * np.abs(found.theirs))
    # Ascending rows again: `read_rows` takes them in order.
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
        # The blocks of the two files may end at different rows.
        count = min(first.num_rows, second.num_rows)
        keys, others = (one[key].slice(0, count) for one in (first, second))
        # The rest of both files is left, which is the error below.
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
