"""Joining data sets of more rows than fit memory, by a key: two models' scores, or many runs'.

1. Each data set is read once; its checked rows go to a table on disk (parity.io.store).
2. Repeated keys, misses and labels that disagree are counted, and refused as parity.io.join refuses
   them in memory.
3. The joined rows come in blocks, each with its row number in the baseline's data.
"""

import itertools
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column, LabelValues
from parity.inputs.rows import Rows
from parity.io.batches import Batch, Progress, batches
from parity.io.blocks import (
    LARGE_BATCH,
    Block,
    labels_of,
    part_of,
    scores_of,
    weights_of,
)
from parity.io.join import (
    as_text,
    refuse_disagreement,
    refuse_misses,
    refuse_no_match,
    refuse_repeated,
)
from parity.io.keys import key_of, refuse_unlike
from parity.io.logits import ROLES, held_by
from parity.io.readers import ColumnNames
from parity.io.store import Store, check_storable, storable
from parity.io.stored_keys import repeated_in
from semisync.common.errors import BadInput

_SIDES = ("baseline", "candidate")  # the names of their tables; further runs' are run2, run3, ...


class StoredJoin:
    """The joined blocks of data sets; iterate once, and read `counts` afterwards."""

    def __init__(
        self,
        paths: Sequence[str],
        names: ColumnNames,
        allow_misses: bool = False,
        progress: Optional[Progress] = None,
        baselines: int = 1,
    ) -> None:
        """The joined rows, as `parity.io.readers.read_two` reads them.

        Args:
            paths: the baseline's and the candidate's, and those of further training runs, the
                baseline's before the candidate's.
            baselines: how many of them are the baseline's.
        """
        if not names.keys:
            raise BadInput(
                "two files of more rows than fit memory need --key, a column whose value names the "
                "same row in both"
            )
        self._paths = tuple(paths)
        runs = (ROLES[place > baselines] for place in range(2, len(paths)))
        self._roles = (*ROLES, *runs)
        self._tables = (*_SIDES, *(f"run{i}" for i in range(2, len(self._paths))))
        self._names, self._keys = names, names.keys
        self._allow_misses, self._progress = allow_misses, progress
        self.counts: Dict[str, int] = {}

    def __iter__(self) -> Iterator[Block]:
        """Raises BadInput as `parity.io.readers.read_two`."""
        first, *others = [self._first_key(side) for side in range(len(self._paths))]
        for key, other in itertools.product(self._keys, others):
            pair = first.table[key].type, other.table[key].type
            refuse_unlike(pair, (first.column(key), other.column(key)))
        # Keys of different types are compared as text, so all are stored as text.
        kinds = {key_of(b.table, self._keys, b.column).type for b in (first, *others)}
        with Store() as store:
            files = [self._put_aside(i, store, len(kinds) > 1) for i in range(len(self._paths))]
            for side in range(1, len(self._paths)):
                self._check(store, side, files)
            joined = _joined(*self._tables)
            for table in store.tables(f"SELECT * EXCLUDE (key) {joined}"):
                yield self._block(table)

    def _batches(self, side: int) -> Iterator[Batch]:
        names = self._names
        if side:
            numbers = [getattr(names, self._roles[side]), names.label]
            return batches(
                self._paths[side],
                numbers,
                list(self._keys),
                LARGE_BATCH,
                optional=[names.label],
                text=names.text,
            )
        numbers = [names.label, names.baseline_score, *([names.weight] if names.weight else [])]
        texts = dict.fromkeys([*self._keys, *names.parts, *([names.group] if names.group else [])])
        fills, text = dict(names.fills), names.text
        return batches(self._paths[0], numbers, list(texts), LARGE_BATCH, fills=fills, text=text)

    def _first_key(self, side: int) -> Batch:
        for batch in self._batches(side):
            return batch._replace(table=batch.table.slice(0, 1))
        raise BadInput(f"{self._paths[side]} has no rows; at least one of each class is needed")

    def _put_aside(self, side: int, store: Store, as_words: bool) -> Tuple[Tuple[str, int], ...]:
        """Stores a side's rows; returns its files, each with its rows."""
        names, name, seen = self._names, self._tables[side], 0
        labels = LabelValues()
        files: Dict[str, int] = {}
        for batch in self._batches(side):
            column = batch.column(", ".join(self._keys))
            keys, count = key_of(batch.table, self._keys, batch.column), batch.table.num_rows
            scores = scores_of(batch, names, self._roles[side])
            columns: Dict[str, Any] = {
                "key": storable(as_text(keys, column) if as_words else keys),
                f"{name}_row": np.arange(seen, seen + count),
                # Files of one data set may hold either width, a stored table holds one.
                f"{name}_score": scores.astype(np.float64, copy=False),
            }
            if names.label in batch.table.column_names:
                columns[f"{name}_label"] = labels_of(batch, names.label, labels)
            if not side:
                for i, part in enumerate(names.parts):
                    values = check_storable(part_of(batch, part, names), batch.column(part))
                    columns[f"part_{i}"] = values
                if names.weight:
                    columns["weight"] = weights_of(batch, names.weight)
                if names.group:
                    columns["cluster"] = batch.names(names.group)
            store.add(name, pa.table(columns))
            seen += count
            files[batch.file] = batch.skipped + count
            if self._progress is not None:
                self._progress(batch.file, seen)
        return tuple(files.items())

    def _check(self, store: Store, side: int, files: List[Tuple[Tuple[str, int], ...]]) -> None:
        """The checks of read_two on a side and the baseline, in its order and words."""
        tables, sides = (self._tables[0], self._tables[side]), (0, side)
        keys, labels = (
            [Column(name, self._paths[i], files[i]) for i in sides]
            for name in (", ".join(self._keys), self._names.label)
        )
        for table, column in zip(tables, keys):
            refuse_repeated(repeated_in(store, table), column)
        rows = [sum(count for _, count in files[i]) for i in sides]
        # No key repeats: a joined row is one row of either side.
        joined = _joined(*tables)
        (matched,) = store.one_row(f"SELECT count(*) {joined}")
        old, new = (store.one_row(f"SELECT key FROM {t} WHERE {t}_row = 0")[0] for t in tables)
        refuse_no_match(matched, (old, new), (keys[0], keys[1]))
        if not self._allow_misses:
            refuse_misses(rows[0] - matched, rows[1] - matched, (keys[0], keys[1]))
        if side == 1:
            self.counts = {
                "matched": matched,
                "only_baseline": rows[0] - matched,
                "only_candidate": rows[1] - matched,
            }
        other = tables[1]
        if f"{other}_label" in store.columns(other):
            differ = f"{joined} WHERE baseline_label <> {other}_label"
            (count,) = store.one_row(f"SELECT count(*) {differ}")
            if count:
                ours, mine, row, theirs = store.one_row(
                    f"SELECT baseline_row, baseline_label, {other}_row, {other}_label "
                    f"{differ} ORDER BY baseline_row LIMIT 1"
                )
                refuse_disagreement(count, (labels[0], ours, mine), (labels[1], row, theirs))

    def _block(self, table: pa.Table) -> Block:
        names = self._names
        rows = Rows(
            table["baseline_label"].to_numpy(),
            table["baseline_score"].to_numpy(),
            table["candidate_score"].to_numpy(),
            weights=table["weight"].to_numpy() if names.weight else None,
            logits=held_by(names.logits),
        )
        parts = {name: table[f"part_{i}"] for i, name in enumerate(names.parts)}
        group = table["cluster"] if names.group else None
        runs = tuple(table[f"{name}_score"].to_numpy() for name in self._tables[2:])
        return Block(rows, table["baseline_row"].to_numpy(), parts, group, runs).with_weight()


def _joined(first: str, *others: str) -> str:
    return " ".join([f"FROM {first}", *(f"JOIN {other} USING (key)" for other in others)])
