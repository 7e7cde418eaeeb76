"""The evidence for a diagnosis. Any part but the comparison may be missing."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from parity.diagnosis.apart import Apart, measure
from parity.diagnosis.facts import Facts
from parity.inputs.ids import Ids
from parity.inputs.rows import Rows
from parity.result import Comparison
from parity.stats.roc import auc

ALIKE = 0.9  # share of the rows in either that a part and some rows share, for it to name them


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison to explain.

    Attributes:
        comparison: the one to be explained.
        rows: its rows, in the order of the file.
        parts: by column, days and slices: the value of each row, (n,).
        day: which of `parts` is the day.
        ids: by column.
        baseline, candidate: facts about each side's model.
    """

    comparison: Comparison
    rows: Optional[Rows] = None
    parts: Dict[str, np.ndarray] = field(default_factory=dict)
    day: Optional[str] = None
    ids: Dict[str, Ids] = field(default_factory=dict)
    baseline: Optional[Facts] = None
    candidate: Optional[Facts] = None

    @cached_property
    def apart(self) -> Optional[Apart]:
        """The distance of the scores; None without rows, or where they differ by rounding alone."""
        if self.rows is None:
            return None
        apart = measure(self.rows.baseline, self.rows.candidate, self.rows.weights)
        return None if apart.nothing else apart

    @property
    def models(self) -> Optional[Tuple[Facts, Facts]]:
        """Facts about baseline and candidate, where both are known."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.baseline, self.candidate

    def first_known(self, figure: Callable[[Facts], Optional[float]]) -> Optional[float]:
        """A figure of either model, the baseline's if both have it."""
        for facts in (self.baseline, self.candidate):
            value = None if facts is None else figure(facts)
            if value is not None:
                return value
        return None

    def rows_in_words(self, rows: np.ndarray) -> str:
        """What share of all rows these are, bool (n,), and the slice, day or id that they are."""
        text = f"{rows.mean():.1%} of the rows, such as row {int(rows.argmax()) + 1:,}"
        columns = {name: ids.values for name, ids in self.ids.items() if ids.lengths is None}
        for name, values in {**columns, **self.parts}.items():
            distinct, code = np.unique(values, return_inverse=True)
            inside = np.bincount(code[rows], minlength=len(distinct))
            most = int(inside.argmax())
            either = int((rows | (code == most)).sum())
            if inside[most] >= ALIKE * either:
                return f"{text} (those of {name} {distinct[most]})"
        return text

    def auc_in_words(self, mended: np.ndarray, change: str) -> str:
        """The difference in AUC with other scores (n,) for the candidate."""
        rows = self.rows
        assert rows is not None  # there are scores, so there are rows
        old, new, better = (
            auc(rows.positive, scores, rows.weights)
            for scores in (rows.baseline, rows.candidate, mended)
        )
        return (
            f"{change} the difference in AUC would be {better - old:+.2g} instead of "
            f"{new - old:+.2g}."
        )
