"""One part of the rows, a slice or a day, with its own comparison."""

from typing import NamedTuple, Optional

from parity.stats.equivalence import Interval, Verdict

FALSE_DISCOVERIES = 0.1  # share expected among the slices that a hunt points out


class Part(NamedTuple):
    """One slice or day; the figures are None where it has fewer than two rows of a class."""

    name: str
    rows: int
    positives: int
    baseline_auc: Optional[float] = None
    candidate_auc: Optional[float] = None
    delta: Optional[float] = None
    standard_error: Optional[float] = None
    interval: Optional[Interval] = None
    verdict: Optional[Verdict] = None
    p: Optional[float] = None  # of no difference
    q: Optional[float] = None  # p, corrected for the number of parts

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, self.rows - self.positives)

    @property
    def differs(self) -> bool:
        """Whether a hunt points it out."""
        return self.q is not None and self.q < FALSE_DISCOVERIES
