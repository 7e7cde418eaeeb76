"""The slots of hash tables: which optimizer's they are, and what torch calls them.

DeepRec names them as TensorFlow does (`Adam_1`), the other formats by optimizer and slot (`Adam_m`,
`adagrad_norm`). Where a name is not known, or a slot is narrower than the row, as Monolith's of
several segments, all slots keep the names that they have and no optimizer is named.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Set

from migrate.checkpoint.kinds import OPTIMIZERS
from migrate.hash_tables.model import HashTable
from migrate.optimizers.slots import Slots, initial_value, slot_of, torch_names

# optimizer and slot, in small letters -> optimizer, and the slot's number in
# migrate.optimizers.slots
_KNOWN = {
    "adagrad_acc": ("Adagrad", 0),
    "adagrad_accumulator": ("Adagrad", 0),
    "adagrad_norm": ("Adagrad", 0),
    "adam_m": ("Adam", 0),
    "adam_v": ("Adam", 1),
    "ftrl_accum": ("Ftrl", 0),
    "ftrl_accumulator": ("Ftrl", 0),
    "ftrl_norm": ("Ftrl", 0),
    "ftrl_linear": ("Ftrl", 1),
    "ftrl_zero": ("Ftrl", 1),
    "momentum_momentum": ("Momentum", 0),
    "momentum_n": ("Momentum", 0),
}


class States(NamedTuple):
    """optimizer: TensorFlow's name, None where it is not known. slots: torch's name -> the
    table's. fill: torch's name -> the value that a row begins with."""

    optimizer: Optional[str]
    slots: Dict[str, str]
    fill: Dict[str, float]


def find_states(table: HashTable) -> States:
    """What the slots of `table` are in torch."""
    found: Dict[int, str] = {}
    optimizers: Set[Optional[str]] = set()
    for name, slot in table.slots.items():
        known = slot_of(name, {one: one for one in OPTIMIZERS}) or _KNOWN.get(name.lower())
        if known is None or slot.value_shape != table.value_shape or known[1] in found:
            optimizers.add(None)
            continue
        optimizers.add(known[0])
        found[known[1]] = name
    optimizer = optimizers.pop() if len(optimizers) == 1 else None
    if optimizer is None:
        names = {name.replace("/", "_"): name for name in table.slots}
        return States(None, names, dict.fromkeys(names, 0.0))
    slots, fill = {}, {}
    named = torch_names(Slots(optimizer, found), fused=True)
    for (number, source), known_as in zip(sorted(found.items()), named):
        name = known_as or source
        slots[name] = source
        fill[name] = initial_value(optimizer, number) or 0.0
    return States(optimizer, slots, fill)
