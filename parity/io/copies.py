"""Files of a data set that hold another's rows, sorted or packed in another way.

Files of the same bytes are found by their hash (parity.io.identity); these by the sum of their
rows' hashes, of scores in single precision, in which text and float32 of one score are the same.
Few distinct rows can be the same in two files by chance, so it takes at least DISTINCT.
"""

from typing import Dict, Set, Tuple

import numpy as np

from parity.io.identity import refuse_copy
from parity.stats.repeats import hashes

DISTINCT = 30


class Copies:
    """The known facts of each file's rows."""

    def __init__(self) -> None:
        self._sums: Dict[str, int] = {}
        self._rows: Dict[str, int] = {}
        self._some: Dict[str, Set[int]] = {}  # DISTINCT of the hashes

    def add(
        self, file: str, positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray
    ) -> None:
        """Some rows of a file: bool and floating (n,) each."""
        with np.errstate(over="ignore"):
            scores = baseline.astype(np.float32), candidate.astype(np.float32)
        of_rows = hashes(positive, *scores)
        self._sums[file] = (self._sums.get(file, 0) + int(of_rows.sum())) % 2**64
        self._rows[file] = self._rows.get(file, 0) + len(of_rows)
        some = self._some.setdefault(file, set())
        if len(some) < DISTINCT:
            some.update(np.unique(of_rows)[:DISTINCT].tolist())

    def refuse(self) -> None:
        """Raises BadInput for a file with the rows of an earlier one."""
        known: Dict[Tuple[int, int], str] = {}
        for file, rows in self._rows.items():
            if len(self._some[file]) < DISTINCT:
                continue
            earlier = known.setdefault((self._sums[file], rows), file)
            if earlier != file:
                refuse_copy(file, earlier)
