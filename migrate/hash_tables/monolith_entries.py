"""The records of Monolith's dumps.

    EntryDump               {1 id sfixed64, 2 num: repeated float, 3 opt: OptimizerDump,
                             4 last_update_ts_sec}
    OptimizerDump           {1 dump: repeated SingleOptimizerDump}, one per segment of the row
    SingleOptimizerDump     one of several messages; repeated floats are slots of the segment
    MultiHashTableMetadata  {1 table_name, 2 num_entries}

Source: monolith/native_training/runtime/hash_table/embedding_hash_table.proto and
optimizer/optimizer.proto
"""

from __future__ import annotations

import dataclasses
from typing import Dict, List, Optional, Tuple

import numpy

from semisync.common.errors import BadInput
from semisync.encoding.wire import Value, fields, message, number, text

# Slots of each optimizer: number of the message, its name, its repeated floats by field number.
_OPTIMIZERS: Dict[int, Tuple[str, Dict[int, str]]] = {
    1: ("adagrad", {1: "norm"}),
    2: ("sgd", {}),
    3: ("ftrl", {1: "zero", 2: "norm"}),
    4: ("dynamic_wd_adagrad", {1: "norm"}),
    6: ("adadelta", {1: "accum", 2: "accum_update"}),
    7: ("adam", {1: "m", 2: "v", 3: "beta1_power", 4: "beta2_power"}),
    8: ("amsgrad", {1: "m", 2: "v", 3: "vhat", 4: "beta1_power", 5: "beta2_power"}),
    9: ("momentum", {1: "n"}),
    11: ("rmsprop", {1: "n"}),
    12: ("rmspropv2", {1: "n"}),
    13: ("group_ftrl", {1: "zero", 2: "norm"}),
    14: ("batch_softmax", {}),
    15: ("group_adagrad", {1: "grad_square_sum"}),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """An id with its row, the state by "<optimizer>_<slot>", and the seconds of its last update."""

    key: int
    row: numpy.ndarray
    slots: Dict[str, numpy.ndarray]
    time: int


def decode_metadata(record: memoryview, path: str) -> Tuple[str, int]:
    """Name of a table, and how many of the next entries are its own."""
    name, count = "", 0
    for field, value in fields(record, path):
        if field == 1:
            name = text(value, path)
        elif field == 2:
            count = number(value, path)
    if count < 0:
        raise BadInput(f"{path}: table {name!r} has {count} entries; the file is damaged")
    return name, count


def decode_entry(record: memoryview, path: str) -> Entry:
    """The EntryDump in a record."""
    key: Optional[int] = None
    row: List[Value] = []
    slots: Dict[str, numpy.ndarray] = {}
    time = 0
    for field, value in fields(record, path):
        if field == 1:
            key = number(value, path)
        elif field == 2:
            row.append(value)
        elif field == 3:
            slots = _slots(message(value, path), path)
        elif field == 4:
            time = number(value, path)
    if key is None:
        raise BadInput(f"{path}: an entry has no id; this is not a dump of Monolith")
    return Entry(key, _floats(row, path), slots, time)


def _slots(dump: memoryview, path: str) -> Dict[str, numpy.ndarray]:
    """The state by "<optimizer>_<slot>", segments one after the other."""
    states: Dict[str, List[numpy.ndarray]] = {}
    for field, segment in fields(dump, path):
        for kind, state in fields(message(segment, path), path) if field == 1 else ():
            if kind not in _OPTIMIZERS:
                raise BadInput(f"{path}: an entry has the unknown optimizer number {kind}")
            optimizer, names = _OPTIMIZERS[kind]
            columns: Dict[str, List[Value]] = {}
            for inner, value in fields(message(state, path), path):
                if inner in names:
                    columns.setdefault(f"{optimizer}_{names[inner]}", []).append(value)
            for name, values in columns.items():
                states.setdefault(name, []).append(_floats(values, path))
    return {name: numpy.concatenate(parts) for name, parts in states.items()}


def _floats(values: List[Value], path: str) -> numpy.ndarray:
    """Floats that stand one per field (as their four bytes) or packed."""
    raw = bytearray()
    for value in values:
        # Protobuf's own readers take both, packed and not, whichever the .proto says.
        if isinstance(value, int):
            if value >= 1 << 32:
                raise BadInput(f"{path}: the numbers of an entry are not floats")
            raw += value.to_bytes(4, "little")
        else:
            raw += value
    if len(raw) % 4:
        raise BadInput(f"{path}: the numbers of an entry are cut short")
    return numpy.frombuffer(bytes(raw), "<f4")
