"""From a model's output for a batch to one finite score a row, and what is written of it."""

from typing import Callable, Dict, Optional, Sequence

import numpy as np

from parity.io.streams import Batch
from parity.scoring.model import Feature, Model
from parity.scoring.output import LOGIT, SCORE
from semisync.common.errors import BadInput


def scorer(
    model: Model, batch: Batch, features: Sequence[Feature], column: Optional[int]
) -> Callable[[int, int], np.ndarray]:
    """Scores the batch's rows from one number to another, in one run, as `one_a_row` says."""

    def score(start: int, stop: int) -> np.ndarray:
        part = batch._replace(
            skipped=batch.skipped + start, table=batch.table.slice(start, stop - start)
        )
        output = model.score(stop - start, [one.part(start, stop) for one in features])
        return one_a_row(output, part, column)

    return score


def written(scores: np.ndarray, sigmoid: bool) -> Dict[str, np.ndarray]:
    """The columns of the file: the scores, or with `sigmoid` their probabilities beside them."""
    return {SCORE: probability(scores), LOGIT: scores} if sigmoid else {SCORE: scores}


def one_a_row(output: np.ndarray, batch: Batch, column: Optional[int] = None) -> np.ndarray:
    """(rows,), in the output's own bits.

    Args:
        output: float32 or float64, (rows,) or (rows, 1), or (rows, k) of which `column` is taken.

    Raises: BadInput for another shape, and for a score that is not finite, with its row.
    """
    rows = batch.table.num_rows
    if column is not None:
        if output.ndim != 2 or not 0 <= column < output.shape[1]:
            raise BadInput(f"the model's output is {list(output.shape)}; it has no column {column}")
        output = output[:, column]
    if output.size != rows or output.shape[:1] not in ((rows,), ()):
        raise BadInput(
            f"the model's output is {list(output.shape)} for {rows} rows; one score a row is "
            "expected, or --column to choose one of several"
        )
    scores = output.reshape(rows)
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
    with np.errstate(over="ignore"):  # exp overflows to a probability of 0
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(logits.dtype)
