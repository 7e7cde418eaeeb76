"""The hash tables that are the optimizer's state of another one, and torch's names for it.

DeepRec            <variable>/<Optimizer>, with _<k> from the second slot on
TFRA               <variable>_<Optimizer>_<slot>, in the table's scope or in one of its own
SOK and Monolith   the readers name slots <Optimizer>_<slot> (`adagrad_norm`)

Where the name of a slot is not known, or a slot is narrower than the row, as Monolith's of several
segments, all slots of the table keep the names that they have and no optimizer is named.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.hash_tables.hash_table import HashTable
from migrate.optimizers.record import Optimizer, Slot
from migrate.optimizers.registry import LEAVES, OPTIMIZERS, table_slot
from migrate.optimizers.slots import slot_of, torch_name
from semisync.common.errors import BadInput

_WITHOUT_RECORD = (r"AdagradDecay\w*", "AdamW")  # DeepRec's
_DEEPREC_SLOT = re.compile(r"({})(_\d+)?".format("|".join((*LEAVES, *_WITHOUT_RECORD))))
_TFRA_SLOT = re.compile(r"^(.+)_([A-Z][A-Za-z]*_[a-z]\w*)$")  # <variable>_<Optimizer>_<slot>


def with_slots(tables: Dict[str, HashTable]) -> Dict[str, HashTable]:
    """Moves each table that is a slot of another one to that table's `slots`.

    Raises:
        BadInput: a slot may be that of several tables, or several slots that of one.
    """
    owners = {name: _owner(name, table, tables) for name, table in tables.items()}
    slots: Dict[Tuple[str, str], str] = {}
    for name, owned in owners.items():
        if owned is not None and slots.setdefault(owned, name) != name:
            raise BadInput(
                f"hash tables {slots[owned]!r} and {name!r} are both {owned[1]} of {owned[0]!r}, "
                "by their names"
            )
    result = {}
    for name, table in tables.items():
        if owners[name] is None:
            own = {slot: tables[at] for (owner, slot), at in slots.items() if owner == name}
            result[name] = dataclasses.replace(table, slots=own)
    return result


def _owner(name: str, table: HashTable, tables: Dict[str, HashTable]) -> Optional[Tuple[str, str]]:
    """(table, slot) that `name` is the state of, or None."""
    if table.kind == "DeepRec":
        base, _, leaf = name.rpartition("/")
        return (base, leaf) if base in tables and _DEEPREC_SLOT.fullmatch(leaf) else None
    if table.kind == "TFRA":
        scope, slash, leaf = name.rpartition("/")
        slot = _TFRA_SLOT.match(leaf)
        if slot is not None:
            alike = [other for other in tables if other.rpartition("/")[2] == slot[1]]
            beside = scope + slash + slot[1]
            if len(alike) > 1 and beside not in alike:
                raise BadInput(
                    f"hash table {name!r} is {slot[2]} of {alike[0]!r} or of {alike[1]!r}, which "
                    "its name does not tell; rename one of these in the job and save it again"
                )
            if alike:
                return (beside if beside in alike else alike[0]), slot[2]
    return None


class TableSlots(NamedTuple):
    """A hash table's slots in torch.

    Attributes:
        optimizer: TensorFlow's name, None if unknown.
        slots: torch's name -> the table's.
        fill: torch's name -> the value of a new row.
    """

    optimizer: Optional[str]
    slots: Dict[str, str]
    fill: Dict[str, float]


def table_slots(table: HashTable, fused: bool = True) -> TableSlots:
    """A table's slots in torch, by the names of FBGEMM if `fused`, or else of torch.optim."""
    known = _known(table)
    if known is None:
        names = {name.replace("/", "_"): name for name in table.slots}
        return TableSlots(None, names, dict.fromkeys(names, 0.0))
    optimizer, places = known
    names, fill = {}, {}
    for source, slot in places:
        name = source if slot is None else torch_name(slot, fused)
        names[name] = source
        fill[name] = 0.0 if slot is None else slot.initial
    return TableSlots(optimizer.name, names, fill)


def _known(
    table: HashTable,
) -> Optional[Tuple[Optimizer, List[Tuple[str, Optional[Slot]]]]]:
    """The optimizer, and the table's slots in the optimizer's order, each with its record, or None
    where the optimizer's record lacks it. None unless all slots are of one optimizer, of the row's
    shape, and each number occurs once."""
    numbers: Dict[int, str] = {}
    optimizers = set()
    for name, slot in table.slots.items():
        by_leaf = slot_of(name)
        place = (by_leaf[0], by_leaf[1]) if by_leaf else table_slot(name, table.slots)
        if place is None or slot.value_shape != table.value_shape or place[1] in numbers:
            return None
        optimizers.add(place[0])
        numbers[place[1]] = name
    if len(optimizers) != 1:
        return None
    optimizer = OPTIMIZERS[optimizers.pop()]
    slots = optimizer.slots_for(numbers)
    return optimizer, [(numbers[k], slots[k] if k < len(slots) else None) for k in sorted(numbers)]
