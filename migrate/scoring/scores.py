"""From a model's output to one finite score per row, and whether that depends on the row alone.

The rows of one batch are scored again, and then in two batches. Differences beyond the rounding of
another order of operations are reported: the file holds the result of only one run.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

import numpy as np

from migrate.scoring.model import Feature, Model
from migrate.scoring.output import LOGIT, SCORE
from parity.inputs.logits import sigmoid
from parity.io.batches import Batch
from semisync.common.errors import BadInput

_ROUNDING = 2e-5  # of the largest score

_CAUSES = {
    "chance": (
        "scored twice in the same way",
        "dropout or another random op is at work, or the graph moves BatchNorm's statistics while "
        "it scores: feed what turns training off (--feed), or score what `convert` writes",
    ),
    "batch": (
        "scored in two batches instead of one",
        "BatchNorm in training mode does so: feed what turns training off (--feed), or keep to one "
        "--batch-size on both sides",
    ),
}


def scorer(
    model: Model, batch: Batch, features: Sequence[Feature], column: Optional[int]
) -> Callable[[int, int], np.ndarray]:
    """Scores the batch's rows from one number to another, in one run, as in `one_a_row`.

    If the model takes more rows at a time, the last one is repeated, and those scores are dropped.
    """

    def score(start: int, stop: int) -> np.ndarray:
        part = batch._replace(
            skipped=batch.skipped + start, table=batch.table.slice(start, stop - start)
        )
        rows = max(stop - start, model.batch or 0)
        given = [one.part(start, stop).padded(rows - (stop - start)) for one in features]
        return one_a_row(model.score(rows, given), part, column, rows)

    return score


def written(scores: np.ndarray, sigmoid: bool) -> Dict[str, np.ndarray]:
    """The columns of the file: the scores, or with `sigmoid` their probabilities beside them."""
    return {SCORE: probability(scores), LOGIT: scores} if sigmoid else {SCORE: scores}


def one_a_row(
    output: np.ndarray, batch: Batch, column: Optional[int] = None, rows: Optional[int] = None
) -> np.ndarray:
    """(rows of the batch,), in the output's own bits.

    Args:
        output: float32 or float64, one value per row, or several of which `column` is taken; they
            count row-major.
        rows: of the model's input, the batch's own first; by default there are no others.

    Raises:
        BadInput: the shape differs, or a score is not finite; with its row.
    """
    rows = rows or batch.table.num_rows
    shape = f"the model's output is {list(output.shape)} for {rows} rows"
    by_row = output.shape[:1] == (rows,) and output.size > 0
    if column is not None and by_row:
        several = output.reshape(rows, -1)
        if not 0 <= column < several.shape[1]:
            raise BadInput(f"{shape}; it has no column {column}, but 0 to {several.shape[1] - 1}")
        output = several[:, column]
    if output.size != rows or not (by_row or output.shape == ()):
        columns = output.size // rows if by_row else 0
        raise BadInput(
            f"{shape}; one score per row is expected"
            + (f", or --column to choose one of {columns}" if columns else "")
        )
    scores = output.reshape(rows)[: batch.table.num_rows]
    finite = np.isfinite(scores)
    if not finite.all():
        row = int(finite.argmin())
        raise BadInput(
            f"{batch.file}: the model's score of row {batch.skipped + row + 1} is {scores[row]}; "
            "a score must be finite"
        )
    return scores


def probability(logits: np.ndarray) -> np.ndarray:
    """The sigmoid of logits, rounded once, to their own dtype."""
    return sigmoid(logits).astype(logits.dtype)


class Instability(NamedTuple):
    """Evidence that scores depend on more than their rows."""

    depends_on: str  # "chance" or "batch"
    rows: int  # that were scored again
    differ: int  # of them, which got another score
    largest: float  # difference of two scores of a row

    def in_words(self) -> str:
        """A sentence with what to do."""
        how, remedy = _CAUSES[self.depends_on]
        return (
            f"{self.differ:,} of the first {self.rows:,} rows get another score when they are "
            f"{how}, by up to {self.largest:.3g}; {remedy}"
        )

    def to_json(self) -> Dict[str, Any]:
        """The fields, for the file's metadata."""
        return self._asdict()


def find_instability(
    scores: np.ndarray, rescore: Callable[[int, int], np.ndarray]
) -> Optional[Instability]:
    """The dependence of a batch's scores on more than their rows, or None.

    Args:
        scores: (rows,) as the batch was scored.
        rescore: scores the rows from one number to another again, as a batch of their own.
    """
    rows = len(scores)
    by_chance = _compared("chance", scores, rescore(0, rows))
    if by_chance is not None or rows < 2:
        return by_chance
    cut = max(1, rows // 3)  # uneven, so that no half equals the other
    by_batch = _compared("batch", scores, np.concatenate([rescore(0, cut), rescore(cut, rows)]))
    if by_batch is None:
        return None
    # A run may read a moving statistic before or after moving it: two runs can agree, three cannot.
    return _compared("chance", scores, rescore(0, rows)) or by_batch


def _compared(depends_on: str, scores: np.ndarray, others: np.ndarray) -> Optional[Instability]:
    apart = np.abs(scores.astype(np.float64) - others)
    differ = apart > _ROUNDING * float(np.abs(scores).max())
    if not differ.any():
        return None
    return Instability(depends_on, len(scores), int(differ.sum()), float(apart.max()))
