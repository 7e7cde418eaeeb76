"""From a model's output for a batch to one finite score a row."""

from typing import Optional

import numpy as np

from parity.streams import Batch
from semisync.errors import BadInput


def one_a_row(
    output: np.ndarray, batch: Batch, column: Optional[int] = None, sigmoid: bool = False
) -> np.ndarray:
    """(rows,), in the output's own bits; with `sigmoid` the probability of a logit, rounded once.

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
    if sigmoid:
        with np.errstate(over="ignore"):  # exp overflows to a probability of 0
            return (1 / (1 + np.exp(-scores.astype(np.float64)))).astype(scores.dtype)
    return scores
