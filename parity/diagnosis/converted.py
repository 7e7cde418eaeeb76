"""What a converted directory says of the model: its manifest, its tensors, `model.json` as edited.

The optimizer is the one whose state was converted, with the arguments of `model.json` in
TensorFlow's words, since they are what the training goes on with.
"""

import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from migrate.conversion.models import FILE, read_model
from migrate.manifest.model import Manifest, TableSummary, Written, read_manifest
from migrate.targets.reading import Reader, open_target
from parity.diagnosis.facts import COMBINERS, Facts, MovingStatistics, agreed, is_step
from parity.diagnosis.slots import SlotSample, untrained

_CHUNK = 1 << 20  # values at a time
_WORDS = {"lr": "learning_rate", "eps": "epsilon"}
_MEAN, _VARIANCE = "/moving_mean", "/moving_variance"


def read_converted(directory: str) -> Facts:
    """The facts; BadInput where the directory is damaged."""
    manifest = read_manifest(directory)
    reader = open_target(directory, manifest.target)
    has_model = os.path.exists(os.path.join(directory, FILE))
    model: List[Dict[str, Any]] = read_model(directory)["tables"] if has_model else []
    variables = {one.fqn: one.source for one in manifest.tensors}
    edited = {one["name"]: one["pooling"] for one in model}
    poolings = {
        variables[table.fqn]: edited.get(table.name) or table.pooling for table in manifest.tables
    }
    slots = _slots(manifest)
    states: Dict[str, SlotSample] = {}
    for table in manifest.tables:
        kind = _kind(table)
        state = states.setdefault(kind, SlotSample(kind))
        owned, moment = slots.get(variables[table.fqn], []), state.second_moment
        if moment is not None and moment < len(owned):
            for rows in _chunks(reader, owned[moment].fqn):
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
        combiners={name: one for name, one in poolings.items() if one in COMBINERS},
        cold={
            variables[table.fqn]: _cold_rows(
                reader, table.fqn, slots.get(variables[table.fqn], []), states[_kind(table)].initial
            )
            for table in manifest.tables
            if table.dtype != "int8"  # packed rows, and frozen: what was not trained has no trace
        },
    )


def _kind(table: TableSummary) -> str:
    """Whose slots the table has: LazyAdam's are Adam's."""
    return "Adam" if table.optimizer == "LazyAdam" else table.optimizer or ""


def _slots(manifest: Manifest) -> Dict[str, List[Written]]:
    """The slots of each variable of the checkpoint, in TensorFlow's order."""
    found: Dict[str, List[Written]] = {}
    for one in sorted(manifest.tensors, key=lambda one: one.source):
        if one.role in ("table slot", "dense slot"):
            found.setdefault(one.source.rpartition("/")[0], []).append(one)
    return found


def _arguments(table: Dict[str, Any]) -> Dict[str, float]:
    """Of the table's optimizer in `model.json`, in TensorFlow's words."""
    held = (table["optimizer"] or {}).get("arguments") or {}
    return {
        _WORDS.get(name, name): float(value)
        for name, value in held.items()
        if isinstance(value, (int, float))
    }


def _cold_rows(
    reader: Reader, fqn: str, slots: List[Written], initial: Tuple[float, ...]
) -> np.ndarray:
    """bool (rows,): all zero, or every slot at its initial value."""
    told = 0 < len(slots) <= len(initial)
    found = [np.zeros(0, bool)]
    for first, last in _spans(reader, fqn):
        cold = np.logical_not(_rows(reader, fqn, first, last).any(axis=1))
        if told:
            held = [_rows(reader, slot.fqn, first, last) for slot in slots]
            cold |= untrained(held, initial)
        found.append(cold)
    return np.concatenate(found)


def _step(reader: Reader, manifest: Manifest) -> Optional[int]:
    """The largest of the counts of updates."""
    counts = [
        int(reader.rows(one.fqn, 0, 1).reshape(-1)[0])
        for one in manifest.tensors
        if is_step(one.source) and one.dtype in ("int32", "int64") and one.shape in ([], [1])
    ]
    return max(counts, default=None)


def _moving(reader: Reader, manifest: Manifest) -> Dict[str, MovingStatistics]:
    by_source = {one.source: one.fqn for one in manifest.tensors if one.role == "dense"}
    found = {}
    for name, fqn in by_source.items():
        layer = name[: -len(_MEAN)]
        if name.endswith(_MEAN) and layer + _VARIANCE in by_source:
            both = (fqn, by_source[layer + _VARIANCE])
            found[layer] = MovingStatistics(
                *(np.concatenate(list(_chunks(reader, one))).ravel().astype(float) for one in both)
            )
    return found


def _chunks(reader: Reader, fqn: str) -> Iterator[np.ndarray]:
    """A tensor's rows as float32 (rows, dim), some at a time."""
    for first, last in _spans(reader, fqn):
        yield _rows(reader, fqn, first, last)


def _spans(reader: Reader, fqn: str) -> Iterator[Tuple[int, int]]:
    shape = reader.tensors[fqn].shape or (1,)
    step = max(1, _CHUNK // max(1, int(np.prod(shape[1:], dtype=np.int64))))
    return ((first, min(first + step, shape[0])) for first in range(0, shape[0], step))


def _rows(reader: Reader, fqn: str, first: int, last: int) -> np.ndarray:
    rows = reader.rows(fqn, first, last - first)
    return rows.float().numpy().reshape(last - first, -1)
