"""Finds repeated keys, on disk, among more rows than fit memory."""

from typing import Dict, Sequence

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column
from parity.io.batches import Batch
from parity.io.join import Repeated, refuse_repeated
from parity.io.keys import key_of
from parity.io.store import Store, storable

_TABLE = "keys"


class StoredKeys:
    """The keys of one data set, batch by batch."""

    def __init__(self, store: Store, path: str, names: Sequence[str]) -> None:
        self._store, self._path, self._names = store, path, names
        self._files: Dict[str, int] = {}  # rows

    def add(self, batch: Batch) -> None:
        """Adds a batch's keys; raises BadInput as `parity.io.keys.key_of`."""
        keys = key_of(batch.table, self._names, batch.column)
        before, count = sum(self._files.values()), len(keys)
        rows = pa.table({"key": storable(keys), f"{_TABLE}_row": np.arange(before, before + count)})
        self._store.add(_TABLE, rows)
        self._files[batch.file] = batch.skipped + count

    def refuse_repeated(self) -> None:
        """Raises BadInput if a key comes twice."""
        column = Column(", ".join(self._names), self._path, tuple(self._files.items()))
        refuse_repeated(repeated_in(self._store, _TABLE), column)


def repeated_in(store: Store, table: str) -> Repeated:
    """The keys that come more than once; the one that is named is the first by TABLE_row."""
    (surplus,) = store.one_row(f"SELECT count(*) - count(DISTINCT key) FROM {table}")
    if not surplus:
        return Repeated()
    key, times = store.one_row(
        f"SELECT key, count(*) FROM {table} GROUP BY key HAVING count(*) > 1 "
        f"ORDER BY min({table}_row) LIMIT 1"
    )
    return Repeated(surplus, key, times)
