"""A conversion's names of optimizer states, and the owner of a state by its name.

optim.state.WEIGHT.T.momentum1   of table T: FBGEMM's fused state, which has the table's name
optim.state.WEIGHT.exp_avg       of a table: torch.optim's
dense_optim.V.exp_avg            of the dense variable dense.V
... .step                        of either: the number of updates so far
"""

from __future__ import annotations

from typing import Tuple

from migrate.manifest.manifest import Manifest, Written
from migrate.optimizers.slots import state_name, unfused_name

DENSE = "dense"  # before the name of a dense variable
_OF_DENSE, _OF_TABLES = "dense_optim", "optim.state"
STEP = "step"

Path = Tuple[str, ...]


def dense_state(name: str, slot: str) -> Path:
    """The path of a slot, or of STEP, of the dense variable `name`."""
    return (_OF_DENSE, name, slot)


def table_state(weight: str, table: str, slot: str) -> Path:
    """The path of a slot, or of STEP, of the table whose weight is called `weight`."""
    return (*_OF_TABLES.split("."), weight, state_name(table, slot))


def owner(manifest: Manifest, written: Written) -> Tuple[str, str, str]:
    """(target's variable, state's name there, torch.optim's name) of a slot or step; else empty."""
    if written.role == "dense slot":
        variable, _, state = written.fqn[len(_OF_DENSE) + 1 :].rpartition(".")
        return f"{DENSE}.{variable}", state, state
    for table in manifest.tables:
        start = f"{_OF_TABLES}.{table.fqn}."
        if written.fqn.startswith(start):
            state = written.fqn[len(start) :]
            return table.fqn, state, unfused_name(table.name, state)
    return "", "", ""
