"""The checked rows of a data set, block by block, so that memory does not grow with them.

Each block is checked as `parity.io.readers` checks a whole file.
"""

from typing import Dict, Iterator, NamedTuple, Optional, Tuple

import numpy as np
import pyarrow as pa

from parity.inputs.checks import LabelValues, check_scores, check_weight_values
from parity.inputs.rows import Rows
from parity.io.batches import BATCH, Batch, Progress, batches
from parity.io.identity import Copies
from parity.io.logits import held_by
from parity.io.readers import ColumnNames
from parity.io.scores import to_scores
from parity.io.store import Store
from parity.io.stored_keys import StoredKeys
from semisync.common.errors import BadInput

LARGE_BATCH = 1 << 20  # rows, where they are divided by day or slice, so that no piece is tiny


class Block(NamedTuple):
    """Checked rows, those of weight 0 left out."""

    rows: Rows  # without clusters
    numbers: np.ndarray  # int64 (n,): where the rows are in the data set, from 0
    names: Dict[str, pa.ChunkedArray]  # the columns that divide them: days, slices
    group: Optional[pa.ChunkedArray]
    runs: Tuple[np.ndarray, ...] = ()  # (n,) each: the scores of further training runs

    def with_weight(self) -> "Block":
        """The block without its rows of weight 0."""
        weights = self.rows.weights
        if weights is None or weights.all():
            return self
        kept = np.flatnonzero(weights)
        return Block(
            self.rows.take(kept),
            self.numbers[kept],
            {name: values.take(kept) for name, values in self.names.items()},
            None if self.group is None else self.group.take(kept),
            tuple(scores[kept] for scores in self.runs),
        )


def blocks(path: str, names: ColumnNames, progress: Optional[Progress] = None) -> Iterator[Block]:
    """The checked rows of a data set that holds the label and both scores.

    Args:
        progress: called after each batch.

    Raises:
        BadInput: as `parity.io.readers.read_one`; for copies and repeated keys at the end.
    """
    if not names.keys:
        yield from _blocks(path, names, progress, None)
        return
    with Store() as store:
        keys = StoredKeys(store, path, names.keys)
        yield from _blocks(path, names, progress, keys)
        keys.refuse_repeated()


def _blocks(
    path: str, names: ColumnNames, progress: Optional[Progress], keys: Optional[StoredKeys]
) -> Iterator[Block]:
    numbers = [names.label, names.baseline_score, names.candidate_score]
    numbers += [names.weight] if names.weight else []
    texts = list(dict.fromkeys(filter(None, [*names.keys, *names.parts, names.group])))
    seen, copies, labels = 0, Copies(), LabelValues()
    size, fills = LARGE_BATCH if texts else BATCH, dict(names.fills)
    for batch in batches(path, numbers, texts, size, fills=fills, text=names.text):
        rows = Rows(
            labels_of(batch, names.label, labels),
            scores_of(batch, names, "baseline_score"),
            scores_of(batch, names, "candidate_score"),
            weights=weights_of(batch, names.weight) if names.weight else None,
            logits=held_by(names.logits),
        )
        copies.add(batch.file, *rows[:3])
        if keys is not None:
            keys.add(batch)
        yield _block(batch, rows, seen, names)
        seen += batch.table.num_rows
        if progress is not None:
            progress(batch.file, seen)
    if not seen:
        raise BadInput(f"{path} has no rows; at least one of each class is needed")
    copies.refuse()


def labels_of(batch: Batch, name: str, before: LabelValues) -> np.ndarray:
    """bool (n,), checked together with those of the batches before; they may be of one class."""
    return before.positive(batch.numbers(name), batch.column(name))


def scores_of(batch: Batch, names: ColumnNames, role: str) -> np.ndarray:
    """float32 or float64 (n,), checked: those of one of parity.io.logits.ROLES."""
    name = getattr(names, role)
    column = batch.column(name)
    return check_scores(to_scores(batch.table[name], column), column)


def weights_of(batch: Batch, name: str) -> np.ndarray:
    """float64 (n,), checked; some may be 0."""
    return check_weight_values(batch.numbers(name), batch.column(name))


def part_of(batch: Batch, name: str, names: ColumnNames) -> pa.ChunkedArray:
    """A column that divides the rows: days, or a slice."""
    return batch.days(name) if name == names.day else batch.names(name)


def _block(batch: Batch, rows: Rows, before: int, names: ColumnNames) -> Block:
    return Block(
        rows,
        np.arange(before, before + len(rows.positive)),
        {name: part_of(batch, name, names) for name in names.parts},
        batch.names(names.group) if names.group else None,
    ).with_weight()
