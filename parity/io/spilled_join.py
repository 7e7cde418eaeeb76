"""Joining two data sets of more rows than fit memory, by a key.

1. Either data set is read once, and its rows are put aside by key (parity.io.spill).
2. Buckets of the same number hold the same keys: they are joined in memory, pair by pair.
3. Misses, repeated keys and labels that disagree are counted over all pairs, and refused in the end
   as parity.io.join refuses them in memory.
"""

from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column
from parity.inputs.rows import Rows
from parity.io.join import (
    Match,
    Repeated,
    as_text,
    matched,
    refuse_disagreement,
    refuse_misses,
    refuse_no_match,
    refuse_repeated,
    repeated,
)
from parity.io.keys import refuse_unlike, to_keys
from parity.io.readers import ColumnNames
from parity.io.spill import Buckets
from parity.io.streams import DIVIDED_BATCH, Batch, Block, Progress, batches, with_weight
from semisync.common.errors import BadInput


class SpilledJoin:
    """The joined blocks of two data sets; iterate once."""

    def __init__(
        self,
        paths: Tuple[str, str],
        names: ColumnNames,
        allow_misses: bool = False,
        progress: Optional[Progress] = None,
    ) -> None:
        """Args: as `parity.io.readers.read_two`."""
        if names.key is None:
            raise BadInput("two files need a key column, whose value names the same row in both")
        self._paths, self._names, self._key = paths, names, names.key
        self._allow_misses, self._progress = allow_misses, progress
        self._files: List[List[Tuple[str, int]]] = [[], []]
        self._repeated = [Repeated(), Repeated()]
        self._examples: List[Any] = [None, None]
        self._disagreements = 0
        self._first: Tuple[int, bool, int, bool] = (0, False, 0, False)
        self.counts = {"matched": 0, "only_baseline": 0, "only_candidate": 0}

    def __iter__(self) -> Iterator[Block]:
        """Raises: BadInput as `parity.io.readers.read_two`, once the last block was taken."""
        old_keys, new_keys = (self._first_key(side) for side in (0, 1))
        refuse_unlike(
            (old_keys.table[self._key].type, new_keys.table[self._key].type),
            (old_keys.column(self._key), new_keys.column(self._key)),
        )
        as_words = _keys(old_keys, self._key).type != _keys(new_keys, self._key).type
        with Buckets() as old, Buckets() as new:
            for side, buckets in enumerate((old, new)):
                self._put_aside(side, buckets, as_words)
            for ours, theirs in zip(old.tables(), new.tables()):
                match = self._match(ours, theirs)
                if match is not None and len(match.baseline):
                    yield self._block(ours.take(match.baseline), theirs.take(match.candidate))
        self._refuse()

    def _batches(self, side: int) -> Iterator[Batch]:
        names = self._names
        if side:
            numbers = [names.candidate_score, names.label]
            return batches(
                self._paths[1], numbers, [self._key], DIVIDED_BATCH, optional=[names.label]
            )
        numbers = [names.label, names.baseline_score, *([names.weight] if names.weight else [])]
        texts = dict.fromkeys([self._key, *names.parts, *([names.group] if names.group else [])])
        return batches(self._paths[0], numbers, list(texts), DIVIDED_BATCH)

    def _first_key(self, side: int) -> Batch:
        for batch in self._batches(side):
            return batch._replace(table=batch.table.slice(0, 1))
        raise BadInput(f"{self._paths[side]} has no rows; at least one of each class is needed")

    def _put_aside(self, side: int, buckets: Buckets, as_words: bool) -> None:
        names, seen = self._names, 0
        for batch in self._batches(side):
            keys, count = _keys(batch, self._key), batch.table.num_rows
            keys = as_text(keys, batch.column(self._key)) if as_words else keys
            self._examples[side] = keys[0].as_py() if not seen else self._examples[side]
            columns: Dict[str, Any] = {"key": keys, "number": np.arange(seen, seen + count)}
            scores = batch.scores(names, "candidate_score" if side else "baseline_score")
            columns["score"] = scores.astype(np.float64, copy=False)
            if names.label in batch.table.column_names:
                columns["label"] = batch.labels(names.label)
            if not side:
                columns.update((f"part {name}", batch.names(name)) for name in names.parts)
                if names.weight:
                    columns["weight"] = batch.weights(names.weight)
                if names.group:
                    columns["group"] = batch.names(names.group)
            buckets.add(pa.table(columns), "key")
            seen += count
            if not batch.skipped:
                self._files[side].append((batch.file, 0))
            self._files[side][-1] = (batch.file, batch.skipped + count)
            if self._progress is not None:
                self._progress(batch.file, seen)

    def _match(self, ours: pa.Table, theirs: pa.Table) -> Optional[Match]:
        """None where a key is repeated, so that there is no match to speak of."""
        found = [repeated(table["key"]) for table in (ours, theirs)]
        for side, more in enumerate(found):
            if more.surplus:
                surplus = self._repeated[side].surplus + more.surplus
                self._repeated[side] = more._replace(surplus=surplus)
        if any(more.surplus for more in found):
            return None
        match = matched(ours["key"], theirs["key"])
        self.counts["matched"] += len(match.baseline)
        self.counts["only_baseline"] += match.only_baseline
        self.counts["only_candidate"] += match.only_candidate
        return match

    def _block(self, ours: pa.Table, theirs: pa.Table) -> Block:
        labels = ours["label"].to_numpy()
        if "label" in theirs.column_names:
            self._compare_labels(ours, theirs)
        rows = Rows(
            labels,
            ours["score"].to_numpy(),
            theirs["score"].to_numpy(),
            None,
            ours["weight"].to_numpy() if self._names.weight else None,
        )
        parts = {name: ours[f"part {name}"] for name in self._names.parts}
        group = ours["group"] if self._names.group else None
        return with_weight(Block(rows, ours["number"].to_numpy(), parts, group))

    def _compare_labels(self, ours: pa.Table, theirs: pa.Table) -> None:
        pair = [table["label"].to_numpy() for table in (ours, theirs)]
        differ = np.flatnonzero(pair[0] != pair[1])
        if not len(differ):
            return
        numbers = [table["number"].to_numpy()[differ] for table in (ours, theirs)]
        at = int(numbers[0].argmin())
        mine, other = int(numbers[0][at]), int(numbers[1][at])
        if not self._disagreements or mine < self._first[0]:
            i = differ[at]
            self._first = (mine, bool(pair[0][i]), other, bool(pair[1][i]))
        self._disagreements += len(differ)

    def _refuse(self) -> None:
        keys, labels = (
            [Column(name, path, tuple(files)) for path, files in zip(self._paths, self._files)]
            for name in (self._key, self._names.label)
        )
        for found, column in zip(self._repeated, keys):
            refuse_repeated(found, column)
        columns = keys[0], keys[1]
        examples = self._examples[0], self._examples[1]
        refuse_no_match(self.counts["matched"], examples, columns)
        if not self._allow_misses:
            only = self.counts["only_baseline"], self.counts["only_candidate"]
            refuse_misses(*only, columns)
        mine, our_label, other, their_label = self._first
        ours, theirs = (labels[0], mine, our_label), (labels[1], other, their_label)
        refuse_disagreement(self._disagreements, ours, theirs)


def _keys(batch: Batch, name: str) -> pa.ChunkedArray:
    return to_keys(batch.table[name], batch.column(name))
