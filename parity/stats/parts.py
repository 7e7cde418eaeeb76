"""One part of the rows, a slice or a day, with its own comparison; and which of many differ.

The p-values of many slices (of no difference) are turned into q-values (Benjamini & Hochberg 1995):
of the slices with q < 0.1, one in ten is expected to be a false alarm.
"""

from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.stats.equivalence import Evidence, Verdict, decide
from parity.stats.intervals import Interval

FALSE_DISCOVERIES = 0.1  # share expected among the slices that a hunt points out


class Part(NamedTuple):
    """One slice or day; the figures are None where it has fewer than two rows of a class.

    Attributes:
        name: of the slice or day.
        rows: with weight above 0.
        positives: rows of label 1.
        baseline_auc: of the baseline, within the part.
        candidate_auc: of the candidate, within the part.
        delta: the difference of the AUCs.
        standard_error: of `delta`.
        interval: of `delta`.
        verdict: on `delta`.
        p: p-value of no difference.
        q: `p`, corrected for the number of parts (Benjamini & Hochberg 1995).

    Examples:
        >>> parts = parity.compare_slices(labels, baseline, candidate, countries)
        >>> [(part.name, part.rows) for part in parts]
        [('ch', 2000), ('no', 2000)]
    """

    name: str
    rows: int
    positives: int
    baseline_auc: Optional[float] = None
    candidate_auc: Optional[float] = None
    delta: Optional[float] = None
    standard_error: Optional[float] = None
    interval: Optional[Interval] = None
    verdict: Optional[Verdict] = None
    p: Optional[float] = None
    q: Optional[float] = None

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, self.rows - self.positives)

    @property
    def differs(self) -> bool:
        """Whether a hunt points it out."""
        return self.q is not None and self.q < FALSE_DISCOVERIES

    def compared(self, aucs: Sequence[float], evidence: Evidence, margin: float) -> "Part":
        """The part with its figures.

        Args:
            aucs: the AUCs of baseline and candidate.
            evidence: on their difference.
            margin: the largest difference that does not matter.

        Returns:
            A `Part`.
        """
        decision = decide(evidence, margin)
        return self._replace(
            baseline_auc=aucs[0],
            candidate_auc=aucs[1],
            delta=evidence.delta,
            standard_error=evidence.standard_error,
            interval=decision.interval,
            verdict=decision.verdict,
            p=decision.p,
        )


def with_q(parts: Sequence[Part]) -> Tuple[Part, ...]:
    """The parts with Benjamini-Hochberg q-values over those that have a p-value."""
    tested = [i for i, part in enumerate(parts) if part.p is not None]
    p = np.array([parts[i].p for i in tested], float)
    order = np.argsort(p)
    q = np.empty(len(p))
    ratios = p[order] * len(p) / np.arange(1, len(p) + 1)
    q[order] = np.minimum.accumulate(ratios[::-1])[::-1]  # q must not fall where p rises
    corrected = list(parts)
    for i, value in zip(tested, q):
        corrected[i] = parts[i]._replace(q=min(1.0, float(value)))
    return tuple(corrected)
