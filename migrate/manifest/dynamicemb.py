"""The file of its optimizer's settings that NVIDIA's dynamicemb wants beside a table's rows.

It reads `T_opt_args.json` of every table T that it loads, and asks for all settings of the
optimizer where it loads its state. `opt_type` and the names are its own.

Source: dynamicemb/batched_dynamicemb_tables.py (encode_checkpoint_file_path), optimizer.py
(set_opt_args).
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from migrate.manifest.manifest import Manifest, TableSummary
from migrate.manifest.state_names import STEP, table_state
from migrate.optimizers.registry import OPTIMIZERS

_NEEDED = {
    "exact_adagrad": ("lr", "eps", "initial_accumulator_value"),
    "adam": ("lr", "iters", "beta1", "beta2", "eps", "weight_decay"),
}


def stem(module: str, table: str) -> str:
    """The beginning of the paths of a table's files, below the conversion's directory."""
    return f"dynamicemb/model.{module}/{table}"


def settings_files(manifest: Manifest) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """The file of each of its tables, below the conversion's directory, and its JSON."""
    for table in _tables(manifest):
        yield f"{stem(manifest.module, table.name)}_opt_args.json", _settings(table, manifest)


def missing_settings(manifest: Manifest) -> Iterator[str]:
    """A sentence for each table that has its optimizer's state, but not all of its settings."""
    for table, (path, settings) in zip(_tables(manifest), settings_files(manifest)):
        needed = _NEEDED.get(settings.get("opt_type", ""), ())
        lacking = [one for one in needed if one not in settings]
        if lacking:
            yield (
                f"{table.name}: nothing tells {', '.join(lacking)} of its optimizer: add to {path} "
                "what dynamicemb is to load"
            )


def _tables(manifest: Manifest) -> List[TableSummary]:
    return [table for table in manifest.tables if table.ids and table.ids.mode == "dynamicemb"]


def _settings(table: TableSummary, manifest: Manifest) -> Dict[str, Any]:
    record = OPTIMIZERS.get(table.optimizer or "")
    if record is None or record.counterpart is None or record.counterpart.dynamicemb is None:
        return {}
    given = record.arguments_for(table.hyperparameters, ())
    initial = record.initial_state(table.hyperparameters)
    kind = record.counterpart.dynamicemb
    known = {**given, "initial_accumulator_value": initial.get("sum"), "weight_decay": 0.0}
    step_name = ".".join(table_state(table.fqn, table.name, STEP))
    for written in manifest.tensors:
        if written.fqn == step_name and written.value is not None:
            known["iters"] = int(written.value)
    return {"opt_type": kind, **{name: known[name] for name in _NEEDED[kind] if name in known}}
