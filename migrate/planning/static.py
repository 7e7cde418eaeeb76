"""Static tables: pretrained, looked up, and no longer trained.

They are written in fewer bytes per row, and without the optimizer state that a table in training
has in a GPU's memory: float32 with Adam takes 12 bytes per value, fp16 takes 2.
"""

from __future__ import annotations

import math
from typing import Optional, Sequence, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable
from migrate.manifest.id_modes import MANAGED
from migrate.manifest.manifest import TableSummary
from migrate.manifest.transforms import to_type
from migrate.planning.options import search
from migrate.planning.plan import PLACEMENTS, STATICS, Plan, Table
from semisync.common.errors import BadInput, UsageError
from semisync.encoding.dtypes import BY_NAME, number_type

Marks = Sequence[Tuple[str, str]]  # regular expression for variables, and a key of STATICS


def mark_static(plan: Plan, marks: Marks) -> None:
    """Marks the tables of `plan`; raises UsageError for a bad pattern or one without a table."""
    for pattern, kind in reversed(marks):  # so that the first one wins
        if kind not in STATICS:
            raise UsageError(f"static {kind!r}: expected one of {list(STATICS)}")
        named = [table for table in plan.tables if search(pattern, table.variable, "--static")]
        if not named:
            raise UsageError(
                f"--static {pattern!r} names none of the {len(plan.tables)} tables; expected "
                f"REGEX, or REGEX= and one of {', '.join(STATICS)}"
            )
        for table in named:
            table.static, table.cast = kind, None


def check_static(table: Table) -> None:
    """Raises BadInput if `static` or `placement` of a plan's table cannot be carried out."""
    where = f"table {table.name!r}"
    if table.placement not in (None, *PLACEMENTS):
        raise BadInput(f"{where}: placement {table.placement!r}, expected one of {PLACEMENTS}")
    if table.static is None:
        return
    if table.static not in STATICS:
        raise BadInput(f"{where}: static {table.static!r}, expected one of {', '.join(STATICS)}")
    if not BY_NAME[table.dtype].is_floating:
        raise BadInput(f"{where} is {table.dtype}; only tables of floats can be static")
    if table.cast or table.row_wise:
        raise BadInput(
            f"{where} is static: that says its type, and it has no optimizer; leave cast and "
            "row_wise out"
        )
    if table.static == "int8" and table.dim % 2:
        raise BadInput(
            f"{where}: FBGEMM's int8 rows have an even dim, this one is {table.dim}; use fp16"
        )
    if table.static == "int8" and table.ids is not None and table.ids.mode in MANAGED:
        raise BadInput(
            f"{where}: the module of ids {table.ids.mode} has a collection of floats below it, "
            "which cannot hold int8 rows; use static fp16, or ids rows"
        )


def why_untrained(table: Table) -> str:
    """Why the slots of a static table are not written."""
    return f"table {table.name} is static: it needs no optimizer state"


def trained_bytes(
    table: Table, rows: int, checkpoint: Checkpoint, source: Optional[HashTable]
) -> int:
    """Size of `rows` rows of the table with its slots, in the types of the checkpoint.

    Args:
        source: the hash table that it is made from, if any.
    """
    if source is None:
        return sum(checkpoint[name].nbytes for name in [table.variable, *table.slots.values()])
    parts = (source, *(source.slots[name] for name in table.slots.values()))
    return sum(
        rows * math.prod(part.value_shape) * number_type(part.dtype).itemsize for part in parts
    )


def static_bytes(table: TableSummary, gpu: bool = False) -> int:
    """Size of the weights of a converted table; `gpu`: with the padding of int8 rows there."""
    transform = to_type(table.dtype, table.dtype)
    return table.rows * transform.row_bytes(table.dim, table.dtype, gpu)


def savings(table: TableSummary) -> str:
    """A sentence on what making the table static saves."""
    assert table.trained_bytes is not None  # it is static
    small, gpu = static_bytes(table), static_bytes(table, gpu=True)
    padded = f", {gpu:,} in a GPU's padded rows" if gpu != small else ""
    share = 1 - gpu / table.trained_bytes if table.trained_bytes else 0.0
    return (
        f"{table.name} is static {table.static}: {small:,} bytes{padded} instead of "
        f"{table.trained_bytes:,} with its optimizer state: {share:.0%} less"
    )
