"""Joining two data sets of more rows than fit memory, by a key.

1. Either data set is read once; its checked rows go to a table on disk (parity.io.store).
2. Repeated keys, misses and labels that disagree are counted, and refused as parity.io.join refuses
   them in memory.
3. The joined rows come in blocks, each with its row number in the baseline's data.
"""

from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column, LabelValues
from parity.inputs.rows import Rows
from parity.io.batches import Batch, Progress, batches
from parity.io.blocks import (
    LARGE_BATCH,
    Block,
    labels_of,
    logits_of,
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
from parity.io.readers import ColumnNames
from parity.io.store import Store, check_storable, storable
from parity.io.stored_keys import repeated_in
from semisync.common.errors import BadInput

_SIDES = ("baseline", "candidate")
_JOINED = "FROM baseline JOIN candidate USING (key)"


class StoredJoin:
    """The joined blocks of two data sets; iterate once, and read `counts` afterwards."""

    def __init__(
        self,
        paths: Tuple[str, str],
        names: ColumnNames,
        allow_misses: bool = False,
        progress: Optional[Progress] = None,
    ) -> None:
        """Args: as `parity.io.readers.read_two`."""
        if not names.keys:
            raise BadInput(
                "two files of more rows than fit memory need --key, a column whose value names the "
                "same row in both"
            )
        self._paths, self._names, self._keys = paths, names, names.keys
        self._allow_misses, self._progress = allow_misses, progress
        self.counts: Dict[str, int] = {}

    def __iter__(self) -> Iterator[Block]:
        """Raises BadInput as `parity.io.readers.read_two`."""
        first = [self._first_key(side) for side in (0, 1)]
        keys = [key_of(batch.table, self._keys, batch.column) for batch in first]
        for key in self._keys:
            refuse_unlike(
                (first[0].table[key].type, first[1].table[key].type),
                (first[0].column(key), first[1].column(key)),
            )
        as_words = keys[0].type != keys[1].type
        with Store() as store:
            files = [self._put_aside(side, store, as_words) for side in (0, 1)]
            self._check(store, files)
            for table in store.tables(f"SELECT * EXCLUDE (key) {_JOINED}"):
                yield self._block(table)

    def _batches(self, side: int) -> Iterator[Batch]:
        names = self._names
        if side:
            numbers = [names.candidate_score, names.label]
            return batches(
                self._paths[1],
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
        names, name, seen = self._names, _SIDES[side], 0
        labels = LabelValues()
        files: Dict[str, int] = {}
        for batch in self._batches(side):
            column = batch.column(", ".join(self._keys))
            keys, count = key_of(batch.table, self._keys, batch.column), batch.table.num_rows
            scores = scores_of(batch, names, f"{name}_score")
            columns: Dict[str, Any] = {
                "key": storable(as_text(keys, column) if as_words else keys),
                f"{name}_row": np.arange(seen, seen + count),
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

    def _check(self, store: Store, files: List[Tuple[Tuple[str, int], ...]]) -> None:
        """Refuses what read_two refuses, in its order and words."""
        keys, labels = (
            [Column(name, path, parts) for path, parts in zip(self._paths, files)]
            for name in (", ".join(self._keys), self._names.label)
        )
        for side, column in zip(_SIDES, keys):
            refuse_repeated(repeated_in(store, side), column)
        rows = [sum(count for _, count in parts) for parts in files]
        (matched,) = store.one_row(f"SELECT count(*) {_JOINED}")
        self.counts = {
            "matched": matched,
            "only_baseline": rows[0] - matched,
            "only_candidate": rows[1] - matched,
        }
        old, new = (store.one_row(f"SELECT key FROM {s} WHERE {s}_row = 0")[0] for s in _SIDES)
        refuse_no_match(matched, (old, new), (keys[0], keys[1]))
        if not self._allow_misses:
            only = self.counts["only_baseline"], self.counts["only_candidate"]
            refuse_misses(*only, (keys[0], keys[1]))
        if "candidate_label" in store.columns("candidate"):
            differ = f"{_JOINED} WHERE baseline_label <> candidate_label"
            (count,) = store.one_row(f"SELECT count(*) {differ}")
            if count:
                ours, mine, theirs, other = store.one_row(
                    "SELECT baseline_row, baseline_label, candidate_row, candidate_label "
                    f"{differ} ORDER BY baseline_row LIMIT 1"
                )
                refuse_disagreement(count, (labels[0], ours, mine), (labels[1], theirs, other))

    def _block(self, table: pa.Table) -> Block:
        names = self._names
        rows = Rows(
            table["baseline_label"].to_numpy(),
            table["baseline_score"].to_numpy(),
            table["candidate_score"].to_numpy(),
            weights=table["weight"].to_numpy() if names.weight else None,
            logits=logits_of(names),
        )
        parts = {name: table[f"part_{i}"] for i, name in enumerate(names.parts)}
        group = table["cluster"] if names.group else None
        return Block(rows, table["baseline_row"].to_numpy(), parts, group).with_weight()
