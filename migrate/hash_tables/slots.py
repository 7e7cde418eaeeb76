"""Which hash tables are the optimizer's state of another one, by their names.

DeepRec    <variable>/<Optimizer>, with _<k> from the second slot on
TFRA       <variable>_<Optimizer>_<slot>
"""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, Optional, Tuple

from migrate.checkpoint.kinds import OPTIMIZERS
from migrate.hash_tables.model import HashTable

_SLOT = re.compile(r"({}|AdagradDecay\w*|AdamW)(_\d+)?".format("|".join(OPTIMIZERS)))
_TFRA_SLOT = re.compile(r"^(.+)_([A-Z][A-Za-z]*_[a-z]\w*)$")  # <variable>_<Optimizer>_<slot>


def with_slots(tables: Dict[str, HashTable]) -> Dict[str, HashTable]:
    """Moves the tables that are slots of another one to it."""
    owners = {name: _owner(name, table, tables) for name, table in tables.items()}
    result = {}
    for name, table in tables.items():
        if owners[name] is None:
            slots = {
                owned[1]: tables[slot]
                for slot, owned in owners.items()
                if owned is not None and owned[0] == name
            }
            result[name] = dataclasses.replace(table, slots=slots)
    return result


def _owner(name: str, table: HashTable, tables: Dict[str, HashTable]) -> Optional[Tuple[str, str]]:
    """(table, slot) that `name` is the state of, or None."""
    if table.kind == "DeepRec":
        base, _, leaf = name.rpartition("/")
        return (base, leaf) if base in tables and _SLOT.fullmatch(leaf) else None
    if table.kind == "TFRA":
        slot = _TFRA_SLOT.match(name.rpartition("/")[2])
        for other in tables if slot else ():
            if slot is not None and other.rpartition("/")[2] == slot[1]:
                return other, slot[2]
    return None
