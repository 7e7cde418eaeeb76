"""Static tables: pretrained, looked up, and trained no more.

They are written in fewer bytes a row and without their optimizer state, which is what a GPU's
memory holds of a table in training: float32 with Adam takes 12 bytes a number, fp16 takes 2.
"""

from __future__ import annotations

import math
import re
from typing import Iterable, List, Sequence, Tuple

from migrate.checkpoint.bundle import Checkpoint
from migrate.encoding.dtypes import BY_NAME, number_type
from migrate.hash_tables.model import HashTable
from migrate.manifest.model import TableSummary
from migrate.manifest.quantization import GPU_ROW_ALIGNMENT, HEAD
from migrate.planning.model import PLACEMENTS, STATICS, AnyTable, Plan, Table
from semisync.common.errors import BadInput, UsageError

Marks = Sequence[Tuple[str, str]]  # regular expression for variables, and a key of STATICS


def mark_static(plan: Plan, marks: Marks) -> None:
    """Marks the tables of `plan`; UsageError for what is no pattern, or is that of no table."""
    every: List[AnyTable] = [*plan.tables, *plan.hash_tables]
    for pattern, kind in reversed(marks):  # so that the first one wins
        if kind not in STATICS:
            raise UsageError(f"static {kind!r}: expected one of {list(STATICS)}")
        try:
            found = [one for one in every if re.search(pattern, one.source)]
        except re.error as error:
            raise UsageError(f"--static {pattern!r} is no regular expression: {error}") from error
        if not found:
            raise UsageError(
                f"--static {pattern!r} names none of the {len(every)} tables; expected "
                f"REGEX, or REGEX= and one of {', '.join(STATICS)}"
            )
        for table in found:
            table.static, table.cast = kind, None


def check_static(table: AnyTable) -> None:
    """Raises BadInput where `static` or `placement` of a plan's table cannot be carried out."""
    where = f"table {table.name!r}"
    if table.placement not in (None, *PLACEMENTS):
        raise BadInput(f"{where}: placement {table.placement!r}, expected one of {PLACEMENTS}")
    if table.static is None:
        return
    if table.static not in STATICS:
        raise BadInput(f"{where}: static {table.static!r}, expected one of {', '.join(STATICS)}")
    if not BY_NAME[table.dtype].is_floating:
        raise BadInput(f"{where} is {table.dtype}; only tables of floats can be static")
    if table.cast or (isinstance(table, Table) and table.row_wise):
        raise BadInput(
            f"{where} is static: that says its type, and it has no optimizer; leave cast and "
            "row_wise out"
        )
    if table.static == "int8" and table.dim % 2:
        raise BadInput(
            f"{where}: FBGEMM's int8 rows have an even dim, this one is {table.dim}; use fp16"
        )


def why_untrained(table: AnyTable) -> str:
    """Why the slots of a static table are not written."""
    return f"table {table.name} is static: it needs no optimizer state"


def trained_bytes_of_ids(source: HashTable, slots: Iterable[str], rows: int) -> int:
    """Size of `rows` rows of a hash table with those of its `slots`, in the types of the source."""
    total = 0
    for one in (source, *(source.slots[name] for name in slots)):
        total += rows * math.prod(one.value_shape) * number_type(one.dtype).itemsize
    return total


def trained_bytes(table: Table, checkpoint: Checkpoint) -> int:
    """Size of the table's weights and slots in the types of the checkpoint."""
    return sum(checkpoint[one].nbytes for one in [table.variable, *table.slots.values()])


def static_bytes(table: TableSummary, gpu: bool = False) -> int:
    """Size of the weights of a converted table; `gpu`: with the padding of int8 rows there."""
    if table.dtype != "int8":
        return table.rows * table.dim * number_type(table.dtype).itemsize
    row = HEAD + table.dim
    return table.rows * (row + -row % GPU_ROW_ALIGNMENT if gpu else row)


def savings(table: TableSummary) -> str:
    """What making the table static saves, in words."""
    assert table.trained_bytes is not None  # it is static
    small, gpu = static_bytes(table), static_bytes(table, gpu=True)
    padded = f", {gpu:,} in a GPU's padded rows" if gpu != small else ""
    share = 1 - gpu / table.trained_bytes if table.trained_bytes else 0.0
    return (
        f"{table.name} is static {table.static}: {small:,} bytes{padded} instead of "
        f"{table.trained_bytes:,} with its optimizer state: {share:.0%} less"
    )
