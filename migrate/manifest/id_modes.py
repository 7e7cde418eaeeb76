"""The ways in which the target finds the row of an id.

    rows        row i belongs to the i-th smallest id: a sorted list of the ids beside the table,
                and `migrate.torchrec.IdMap` that searches it
    mch         TorchRec's MCHManagedCollisionModule: the same order, in its buffers
    mpzch       TorchRec's HashZchManagedCollisionModule: by hash and probing, `migrate.ids.hashing`
    dynamicemb  NVIDIA's dynamicemb: files of ids, rows and optimizer state, no numbers of rows

Ids are signed 64-bit integers in all of them, and negative ones are ids like any other. Each mode
but the first marks free rows by an id of its own, which the source must not have.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

LAST = (1 << 63) - 1


class Mode(NamedTuple):
    """How raw ids become rows.

    Attributes:
        spare: rows beyond those of the ids, for ids that are not in the table.
        reserved: the first and the last of the ids that stand for something else.
        owner: the module that reserves them.
    """

    spare: int
    reserved: Tuple[int, int]
    owner: str


# The first is greater than the last: no id lies between them.
_NONE = (1, 0)

MODES: Dict[str, Mode] = {
    "rows": Mode(1, _NONE, ""),
    "mch": Mode(1, (LAST, LAST), "MCHManagedCollisionModule"),
    "mpzch": Mode(0, (-1, -1), "HashZchManagedCollisionModule"),
    "dynamicemb": Mode(0, (-4, -1), "dynamicemb's hash table"),
}
MANAGED = ("mch", "mpzch")  # whose modules, TorchRec's managed collision, are given raw ids
DUPLICATES = ("error", "newest")
