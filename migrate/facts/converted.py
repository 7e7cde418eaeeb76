"""Facts on the model in a converted directory: manifest, tensors, `model.json` as edited.

The optimizer is the one whose state was converted, with the arguments of `model.json` in
TensorFlow's words, since the training continues with them.
"""

from typing import Dict, Iterator, List, Mapping, Optional

import numpy as np

from migrate.facts.slot_samples import SlotSample, cold_rows
from migrate.manifest.manifest import Manifest, TableSummary, Written, read_manifest
from migrate.manifest.model_json import FILE, TableConfig, read_model
from migrate.manifest.state_names import STEP, owner
from migrate.optimizers.registry import HYPERPARAMETERS, OPTIMIZERS
from migrate.targets.reading import Reader, open_target
from parity.diagnosis.facts import (
    COMBINERS,
    Facts,
    MovingStatistics,
    agreed,
    is_step,
    moving_statistics,
)
from semisync.storage.files import size_of
from semisync.storage.folders import joined

_CHUNK = 1 << 20  # values at a time


def read_converted(directory: str) -> Facts:
    """The facts; raises BadInput if the directory is damaged."""
    manifest = read_manifest(directory)
    reader = open_target(directory, manifest.target)
    has_model = size_of(joined(directory, FILE)) is not None
    model: List[TableConfig] = read_model(directory)["tables"] if has_model else []
    variables = {tensor.fqn: tensor.source for tensor in manifest.tensors}
    edited = {table["name"]: table["pooling"] for table in model}
    poolings = {
        variables[table.fqn]: edited.get(table.name) or table.pooling for table in manifest.tables
    }
    slots = _slots(manifest)
    held = {table.fqn: _in_order(table, slots.get(table.fqn, {})) for table in manifest.tables}
    states: Dict[str, SlotSample] = {}
    for table in manifest.tables:
        kind = _kind(table)
        state = states.setdefault(kind, SlotSample(kind))
        moment = state.second_moment
        if moment is not None and moment < len(held[table.fqn]):
            for rows in _chunks(reader, held[table.fqn][moment].fqn):
                state.add(rows)
    most = max(states.values(), key=lambda state: state.seen, default=SlotSample(""))
    names = {table.optimizer for table in manifest.tables if table.optimizer}
    return Facts(
        source=directory,
        optimizer=", ".join(sorted(names)) or None,
        settings={**agreed(map(_arguments, model)), **most.settings()},
        denominator=most.denominator(),
        slots=None if all(table.static for table in manifest.tables) else len(slots),
        step=_step(reader, manifest),
        moving=_moving(reader, manifest),
        combiners={name: pooling for name, pooling in poolings.items() if pooling in COMBINERS},
        cold={
            variables[table.fqn]: cold_rows(
                _chunks(reader, table.fqn),
                [_chunks(reader, slot.fqn) for slot in held[table.fqn]],
                states[_kind(table)].initial,
            )
            for table in manifest.tables
            if table.dtype != "int8"  # packed rows, and frozen: untrained rows leave no trace
        },
    )


def _kind(table: TableSummary) -> str:
    """The optimizer by which the table's slots are named: Adam for LazyAdam."""
    record = OPTIMIZERS.get(table.optimizer or "")
    return table.optimizer or "" if record is None else record.leaf


def _slots(manifest: Manifest) -> Dict[str, Dict[str, Written]]:
    """The slots of each variable of the target, by torch.optim's names."""
    slots: Dict[str, Dict[str, Written]] = {}
    for tensor in manifest.tensors:
        variable, _, state = owner(manifest, tensor)
        if tensor.role in ("table slot", "dense slot") and state != STEP:
            slots.setdefault(variable, {})[state] = tensor
    return slots


def _in_order(table: TableSummary, slots: Mapping[str, Written]) -> List[Written]:
    """The slots of a table as TensorFlow numbers them."""
    record = OPTIMIZERS.get(table.optimizer or "")
    known = () if record is None else record.all_slots
    return [slots[slot.torch] for slot in known if slot.torch in slots]


def _arguments(table: TableConfig) -> Dict[str, float]:
    """The arguments of the optimizer in `model.json`, under TensorFlow's names."""
    optimizer = table["optimizer"]
    return {
        HYPERPARAMETERS.get(name, name): float(value)
        for name, value in ({} if optimizer is None else optimizer["arguments"]).items()
        if isinstance(value, (int, float))
    }


def _step(reader: Reader, manifest: Manifest) -> Optional[int]:
    """The largest of the counts of updates."""
    counts = [
        int(reader.rows(tensor.fqn, 0, 1).reshape(-1)[0])
        for tensor in manifest.tensors
        if is_step(tensor.source)
        and tensor.dtype in ("int32", "int64")
        and tensor.shape in ([], [1])
    ]
    return max(counts, default=None)


def _moving(reader: Reader, manifest: Manifest) -> Dict[str, MovingStatistics]:
    by_source = {tensor.source: tensor.fqn for tensor in manifest.tensors if tensor.role == "dense"}
    return moving_statistics(
        by_source, lambda name: np.concatenate(list(_chunks(reader, by_source[name])))
    )


def _chunks(reader: Reader, fqn: str) -> Iterator[np.ndarray]:
    shape = reader.tensors[fqn].shape or (1,)
    step = max(1, _CHUNK // max(1, int(np.prod(shape[1:], dtype=np.int64))))
    for first in range(0, shape[0], step):
        count = min(step, shape[0] - first)
        yield reader.rows(fqn, first, count).float().numpy().reshape(count, -1)
