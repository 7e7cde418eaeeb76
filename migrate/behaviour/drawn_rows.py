"""A sample of rows that includes rare values.

1. For each input with few enough distinct values, one row per value; and for every input one row
   each with the least and the greatest value, the longest and an empty list, and a missing value
   or nan. These are at most half of the rows; inputs of fewer values come first.
2. The last rows, a tenth. In data that is ordered by day these are the last day's.
3. The rest is drawn at random with a seed.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrate.behaviour.rows import reading_of
from migrate.behaviour.setting import Setting
from migrate.scoring.model import Feature, Input
from migrate.scoring.run import batches
from parity.io.batches import count_rows
from semisync.common.sentences import some_of

SEED = 0


class Drawn(NamedTuple):
    """The rows that were drawn.

    Attributes:
        rows: counted over the whole data set from 0, ascending; None: all.
        total: how many there are.
        how: a sentence on how they were drawn; "" if all were taken.
    """

    rows: Optional[np.ndarray]
    total: int
    how: str


def draw_rows(data: str, inputs: Sequence[Input], setting: Setting, count: int) -> Drawn:
    """Draws `count` rows of a data set, which is read once; all if it has no more.

    Raises:
        BadInput: as `migrate.scoring.run.batches`.
    """
    total = count_rows(data, setting.reading.text)
    if total is not None and total <= count:
        return Drawn(None, total, "")
    most, total = count // 2, 0
    seen = [_Seen(one.column, most) for one in inputs]
    reading = reading_of(setting, inputs, setting.reading.size)
    for batch, features in batches(data, inputs, reading=reading):
        for one, feature in zip(seen, features):
            one.add(feature, batch.table[one.column], total)
        total += batch.table.num_rows
    if total <= count:
        return Drawn(None, total, "")
    rows, each = _with_values(seen, most)
    last = count // 10
    rows.update(range(total - last, total))
    drawn = np.random.default_rng(SEED).choice(total, count, replace=False).tolist()
    # `count` are drawn, since some may be among the rows that were chosen before.
    others = [row for row in drawn if row not in rows][: count - len(rows)]
    chosen = np.array(sorted([*rows, *others][:count]))
    return Drawn(chosen, total, _in_words(count, total, seen, each, last))


def _with_values(seen: Sequence[_Seen], most: int) -> Tuple[Set[int], List[str]]:
    """Rows with rare values, and the columns whose every value occurs in them."""
    rows = set([row for one in seen for _, row in one.ends.values()][:most])
    each: List[str] = []
    few = [one for one in seen if one.values is not None]
    # Inputs of fewer values first, so that more inputs are covered whole.
    for one in sorted(few, key=lambda one: len(one.values or ())):
        more = rows.union((one.values or {}).values())
        if len(more) <= most:
            rows = more
            each.append(one.column)
    return rows, each


def _in_words(count: int, total: int, seen: Sequence[_Seen], each: Sequence[str], last: int) -> str:
    others = [one.column for one in seen if one.column not in each]
    parts = [
        f"each value of {some_of(each)}" if each else "",
        "the least, greatest and missing values and the longest and empty lists of each input",
        f"the last {last:,} rows",
        f"others at random, with the seed {SEED}",
    ]
    found = f"{count:,} of {total:,} rows were drawn: {', '.join(filter(None, parts))}"
    return found + (f"; too many values for one row each: {some_of(others)}" if others else "")


class _Seen:
    """The values of one input so far.

    Args:
        most: how many values are remembered.

    Attributes:
        values: {value: the first row with it}; None if there are more than `most`.
        ends: {name of an extreme: (its value, the first row with it)}.
    """

    def __init__(self, column: str, most: int) -> None:
        self.column, self._most = column, most
        self.values: Optional[Dict[Any, int]] = {}
        self.ends: Dict[str, Tuple[float, int]] = {}

    def add(self, feature: Feature, column: pa.ChunkedArray, before: int) -> None:
        """The next rows.

        Args:
            column: as in the data, before missing values were filled.
            before: rows of earlier calls.
        """
        rows = before + np.arange(len(column))
        # 1 where a value is missing, so that the first row with one is kept.
        self._end("missing", _missing(column).astype(float), rows, least=1.0)
        lengths = feature.lengths
        if lengths is not None:
            self._end("longest", lengths, rows, least=1)
            # An empty list is the greatest of the negated lengths; with `least` 0 no other counts.
            self._end("empty", -lengths, rows, least=0)
        flat, width = _flat(feature)
        rows = np.repeat(rows, width if lengths is None else lengths)
        if isinstance(flat, np.ndarray):
            flat, rows = _known(flat, rows)
            if flat.dtype.kind != "b":
                self._end("greatest", flat, rows)
                self._end("least", -flat.astype(np.float64), rows)
        if self.values is not None:
            self._values(flat, rows, self.values)

    def _values(self, flat: Any, rows: np.ndarray, values: Dict[Any, int]) -> None:
        if isinstance(flat, np.ndarray):
            found, places = np.unique(flat, return_index=True)
        else:
            coded = flat.dictionary_encode()
            found = coded.dictionary.to_numpy(zero_copy_only=False)
            _, places = np.unique(coded.indices.to_numpy(), return_index=True)
        if len(found) <= self._most:
            for value, row in zip(found.tolist(), rows[places].tolist()):
                values.setdefault(value, row)
        # Too many values for a row each: they are forgotten, and memory stays bounded.
        if len(found) > self._most or len(values) > self._most:
            self.values = None

    def _end(
        self, what: str, sizes: np.ndarray, rows: np.ndarray, least: Optional[float] = None
    ) -> None:
        if not len(sizes):
            return
        place = int(np.argmax(sizes))
        size = float(sizes[place])
        known = self.ends.get(what, (least, 0))[0]
        if known is None or size > known or (what not in self.ends and size == known):
            self.ends[what] = size, int(rows[place])


def _missing(column: pa.ChunkedArray) -> np.ndarray:
    """bool (n,): which values are missing, or nan."""
    missing = pc.is_null(column, nan_is_null=True)
    return missing.to_numpy().astype(bool)


def _flat(feature: Feature) -> Tuple[Any, int]:
    """All values in one array, and how many of them each row of a dense feature has."""
    values = feature.values
    if isinstance(values, np.ndarray):
        return values.reshape(-1), int(np.prod(values.shape[1:], dtype=int))
    rows = len(values)
    while pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    return values, len(values) // rows if rows else 0


def _known(flat: np.ndarray, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The values that are numbers, and their rows."""
    known = ~np.isnan(flat) if flat.dtype.kind == "f" else np.ones(len(flat), bool)
    return flat[known], rows[known]
