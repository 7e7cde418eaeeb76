"""The scores of all rows, as both sides wrote them: the largest difference, and its row.

1. The files of both sides are compared row by row, see `rows.score_files`.
2. Rows whose scores differ by more than the tolerance, if there are many the ones that differ most,
   are scored by TensorFlow again, to measure its rounding; a difference up to a multiple of that is
   rounding, see `difference`.
3. In the batch with the largest other difference `first_node` looks for the first node that
   differs.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy as np

from migrate.behaviour.both import Both, open_both
from migrate.behaviour.difference import apart
from migrate.behaviour.largest import of_rows
from migrate.behaviour.report import ScorePlace, ScoresReport
from migrate.behaviour.rows.reading import Rows, read_rows
from migrate.behaviour.rows.score_files import Apart, scores_apart
from migrate.behaviour.setting import DEFAULT, Setting
from semisync.common.tensor_names import of_edge


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


def _judge(both: Both, data: str, setting: Setting, found: Apart, column: int) -> ScoresReport:
    (tensor,) = map(of_edge, both.chosen.values())
    suspects, judged, beyond, largest = found.suspects, 0, 0, 0.0
    at: Optional[ScorePlace] = None
    worst: Optional[Rows] = None
    chosen = suspects.rows
    for batch in read_rows(data, both.given.inputs, setting, both.fixed, chosen):
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
