"""The manifest's notes: the semantics of converted tables and of their optimizer state.

The formula of each optimizer, and its counterpart in torch, are in its record
(`migrate.optimizers`).
"""

from __future__ import annotations

from typing import Dict, List

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.pooling import without_kernel
from migrate.optimizers.registry import OPTIMIZERS
from migrate.planning.plan import Plan, Table
from migrate.planning.steps import dense_step_notes, table_step_notes


def notes(plan: Plan, checkpoint: Checkpoint) -> List[str]:
    """The notes of a plan: on optimizers, on look-ups without a kernel, on steps."""
    trained = [table for table in plan.tables if not table.static]
    used = {table.optimizer for table in trained} | {dense.optimizer for dense in plan.dense}
    result = [record.note for name, record in sorted(OPTIMIZERS.items()) if name in used]
    for name, record in OPTIMIZERS.items():
        row_wise = [table.name for table in trained if table.row_wise and table.optimizer == name]
        if row_wise and record.row_wise_note is not None:
            result.append(record.row_wise_note.format(", ".join(row_wise)))
    pooled: Dict[str, List[str]] = {}
    for table in plan.tables:
        lacking = without_kernel(table.pooling, table.weighted)
        if lacking:
            pooled.setdefault(lacking, []).append(table.name)
    result += [f"pooling of {', '.join(names)}: {lacking}" for lacking, names in pooled.items()]
    for table in trained:
        result += _setting_notes(table)
    result += table_step_notes(plan, trained, checkpoint)
    return result + dense_step_notes(plan, checkpoint)


def _setting_notes(table: Table) -> List[str]:
    record = OPTIMIZERS.get(table.optimizer or "")
    by_setting = {} if record is None else record.setting_notes
    return [
        note.format(table.name)
        for setting, note in by_setting.items()
        if setting in table.hyperparameters
    ]
