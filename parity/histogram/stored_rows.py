"""Checked rows on disk, to be read once more in the order of their groups.

A block that is read back holds whole groups: memory is that of a block, or of the largest group.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.rows import Rows
from parity.io.blocks import Block
from parity.io.columns import to_codes
from parity.io.store import Store, storable


class StoredRows(NamedTuple):
    """Some rows as they were stored."""

    rows: Rows  # with groups as clusters, if they have any
    numbers: np.ndarray  # int64 (n,): where they are in the data set
    codes: Dict[str, np.ndarray]  # by dividing column: the number of each row's value
    runs: Tuple[np.ndarray, ...] = ()  # (n,) each: the scores of further training runs


def put_aside(store: Store, block: Block, codes: Dict[str, np.ndarray]) -> None:
    """Stores rows; `read_back` yields them."""
    rows, group = block.rows, block.group
    columns: Dict[str, Any] = {
        "number": block.numbers,
        "label": rows.positive,
        "baseline": rows.baseline.astype(np.float64, copy=False),
        "candidate": rows.candidate.astype(np.float64, copy=False),
    }
    if rows.weights is not None:
        columns["weight"] = rows.weights
    if group is not None:
        columns["cluster"] = storable(group)
    columns.update((f"code_{i}", code) for i, code in enumerate(codes.values()))
    columns.update((f"run_{i}", scores) for i, scores in enumerate(block.runs))
    store.add("rows", pa.table(columns))


def read_back(
    store: Store, columns: Tuple[str, ...], logits: Tuple[bool, bool] = (False, False)
) -> Iterator[StoredRows]:
    """The rows, those of a group together and in one block.

    Args:
        columns: those that divide the rows, in the order of `codes`.
        logits: whether the baseline's scores, and the candidate's, are logits.
    """
    for table in _tables(store):
        yield _stored(table, columns, logits)


def _tables(store: Store) -> Iterator[pa.Table]:
    if "cluster" not in store.columns("rows"):
        yield from store.tables("SELECT * FROM rows")
        return
    held: List[pa.Table] = []  # rows of the last group so far, which may go on
    for table in store.tables("SELECT * FROM rows ORDER BY cluster"):
        table = pa.concat_tables([*held, table])
        groups = table["cluster"]
        last = pc.index(groups, groups[-1]).as_py()  # the first row of the last group
        if last:
            yield table.slice(0, last)
        held = [table.slice(last)]
    yield from held


def _stored(table: pa.Table, columns: Tuple[str, ...], logits: Tuple[bool, bool]) -> StoredRows:
    held = {name: table[name].to_numpy() for name in table.column_names if name != "cluster"}
    clusters = None
    if "cluster" in table.column_names:
        clusters = to_codes(table["cluster"]).astype(np.int64)
    rows = Rows(
        held["label"],
        held["baseline"],
        held["candidate"],
        clusters,
        held.get("weight"),
        logits=logits,
    )
    codes = {name: held[f"code_{i}"] for i, name in enumerate(columns)}
    runs = tuple(held[name] for name in table.column_names if name.startswith("run_"))
    return StoredRows(rows, held["number"], codes, runs)
