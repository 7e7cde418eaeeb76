"""The rows that a table evicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

import numpy

from semisync.common.errors import UsageError

POLICIES = ("least recent", "least frequent")
_PARTS = 16


@dataclass(frozen=True)
class Limit:
    """How large a table may be, and how old its rows.

    Args:
        rows: of all processes together; each has an equal share. A step that leaves more evicts
            down to 15/16 of it, so that not every step looks for rows to evict.
        policy: "least recent": those that no step has used for longest; "least frequent": those
            that were met least often. Where that is equal, the other decides, then the smaller id.
        age: steps since the last that used a row, after which it is evicted, or a sixteenth later.

    Raises:
        UsageError: an argument is not as above.

    Examples:
        >>> from migrate.id_tables import IdTable, Limit
        >>> limit = Limit(rows=10_000_000, policy="least frequent", age=100_000)
        >>> table = IdTable("user", 16, ["user"], limit=limit)
    """

    rows: Optional[int] = None
    policy: str = "least recent"
    age: Optional[int] = None

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise UsageError(f"the policy is {self.policy!r}, expected one of {list(POLICIES)}")
        for name in ("rows", "age"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"a limit of {value} {name}, expected at least 1")

    def evicted(
        self,
        ids: numpy.ndarray,
        freqs: numpy.ndarray,
        versions: numpy.ndarray,
        step: int,
        ranks: int,
    ) -> Optional[numpy.ndarray]:
        """The rows of a process that go after a step.

        Args:
            ids: int64 [n].
            freqs: how often each was met.
            versions: the last step that used each.
            step: the number of the step just taken.
            ranks: the number of processes.

        Returns:
            A mask [n]; None: none is evicted.
        """
        gone = None
        # Not in every step, since it reads all rows; hence "a sixteenth later".
        if self.age is not None and step % max(1, self.age // _PARTS) == 0:
            gone = step - versions > self.age
        count = len(ids) if gone is None else len(ids) - int(gone.sum())
        share = None if self.rows is None else -(-self.rows // ranks)
        if share is not None and count > share:
            by = [versions, freqs] if self.policy == "least recent" else [freqs, versions]
            kept = numpy.arange(len(ids)) if gone is None else numpy.flatnonzero(~gone)
            gone = numpy.zeros(len(ids), bool) if gone is None else gone
            excess = count - (share - share // _PARTS)
            gone[kept[_least([one[kept] for one in (*by, ids)], excess)]] = True
        return gone if gone is not None and gone.any() else None


def _least(keys: List[numpy.ndarray], count: int) -> numpy.ndarray:
    """The positions of the `count` least by the first key; ties are decided by the next key."""
    chosen: List[numpy.ndarray] = []
    tied = numpy.arange(len(keys[0]))
    for key in keys:
        if not count:
            break
        values = key[tied]
        bound = numpy.partition(values, count - 1)[count - 1]
        chosen.append(tied[values < bound])
        count -= len(chosen[-1])
        tied = tied[values == bound]
    return numpy.concatenate([*chosen, tied[:count]])
