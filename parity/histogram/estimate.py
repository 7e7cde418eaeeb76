"""The difference of two AUCs and its standard error from counts (parity.histogram.summary).

Each row's placements are known to half the mass of its bin. So the AUCs are off by no more than a
certified bound, and by Minkowski's inequality the true standard error is at most the one of the
coarse bins' placements with the root mean square of those halves added to each class's spread.
That upper value is given, by groups as well where a second pass over the rows
(parity.histogram.second_pass) found the sums over groups.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.histogram.bins import COARSE_BITS
from parity.histogram.summary import Summary
from parity.stats.clusters import carried
from parity.stats.delong import ROUNDING, Spread, evidence_from, welch
from parity.stats.equivalence import Evidence
from parity.stats.roc import Ranking


class Model(NamedTuple):
    """One model's bins in use, by rising score."""

    bins: np.ndarray  # their numbers
    counts: np.ndarray  # int64 (label, bins): rows
    mass: np.ndarray  # int64 or float64 (label, bins): rows, or their weights
    ranking: Ranking
    bound: float  # of the AUC's error


class Placements(NamedTuple):
    """The placement of a row of a label and a bin; float64 (label, bins of the span)."""

    values: np.ndarray
    doubts: np.ndarray  # half the mass of the bin: the value's maximum error
    first: int  # the bin where the span begins


class Pulls(NamedTuple):
    """Each row's contribution to an estimate's error; psi of stats.delong, float64 (n,)."""

    delta: np.ndarray
    doubt: np.ndarray  # the maximum error of `delta`
    baseline: np.ndarray  # on its AUC
    candidate: np.ndarray


class Counted(NamedTuple):
    """The spread of a difference that was counted."""

    moves: Spread  # whose errors are upper values
    alike: bool  # whether all rows see the same difference, by the counts


class Estimate:
    """The estimate from a summary with at least two rows of each class."""

    def __init__(self, summary: Summary, models: Optional[Sequence[Model]] = None) -> None:
        """Args: models: where they were made before. They are not kept, as they are large."""
        self.summary = summary
        models = models or models_of(summary)
        self.aucs = [model.ranking.area() for model in models]
        self.delta = self.aucs[1] - self.aucs[0]
        self.bound = models[0].bound + models[1].bound
        negatives, positives = (float(mass.sum()) for mass in summary.mass[0])
        self.class_mass = negatives, positives
        self.observations = self._effective_rows()

    def own_errors(self) -> List[Tuple[float, float]]:
        """The errors of the two AUCs and their degrees of freedom, for independent rows; not upper
        values."""
        pulls = self._of_cells()
        parts = [self._parts(pull) for pull in (pulls.baseline, pulls.candidate)]
        return [(math.sqrt(sum(part)), welch(part, self.observations)) for part in parts]

    def spread(self) -> Counted:
        """The spread for independent rows; it takes weighted rows of one cell for equal, since no
        sum of w^4 is kept."""
        pulls, cells = self._of_cells(), self.summary.joint.cells()
        parts = [self._parts(pull) for pull in (pulls.delta, pulls.doubt)]
        squares, fourths = pulls.delta**2, cells.squares.astype(float) ** 2 / cells.rows
        sums = float(cells.squares @ squares), float(fourths @ squares**2)
        moves = upper_spread(parts[0], parts[1], self.observations, *sums)
        return Counted(moves, math.sqrt(sum(parts[0])) <= ROUNDING)

    def evidence(self, counted: Counted) -> Evidence:
        """The difference by the counts, for independent rows or by groups."""
        moves, alike = counted
        # All rows see the same difference, which is not 0.
        unmoved = moves.standard_error <= ROUNDING < abs(self.delta)
        reach = 1.0 if unmoved else None
        return evidence_from(self.delta, moves, reach, alike, self.bound)

    def reaches(self) -> Tuple[float, float]:
        """The largest possible move of a baseline's placement, of negatives and of positives."""
        placed = self.placements(COARSE_BITS)[0]
        cells = self.summary.joint.cells()
        reaches = []
        for label in (0, 1):
            used = np.unique(cells.bins(0)[cells.keys & 1 == label]) - placed.first
            values, doubts = placed.values[label, used], placed.doubts[label, used]
            farthest = max(float((values + doubts).max()), 1 - float((values - doubts).min()))
            reaches.append(min(1.0, farthest))
        return reaches[0], reaches[1]

    def _effective_rows(self) -> Tuple[float, float]:
        """The effective negatives and positives (parity.stats.delong)."""
        cells = self.summary.joint.cells()
        negatives, positives = (
            mass**2 / float(cells.squares[of_class].sum())
            for mass, of_class in zip(self.class_mass, (~cells.positive, cells.positive))
        )
        return negatives, positives

    def placements(self, bits: int) -> List[Placements]:
        """The placements in either model, by bins of 2^bits."""
        return [_placements(self.summary, model, bits) for model in (0, 1)]

    def pulls(
        self, label: np.ndarray, bins: Sequence[np.ndarray], placements: Sequence[Placements]
    ) -> Pulls:
        """The pulls of rows of weight 1.

        Args:
            label: 0 or 1, int (n,).
            bins: of either model, int (n,), as wide as those of the placements.
        """
        share = 1 / np.array(self.class_mass)[label]
        models, doubt = [], self.bound * share
        for auc, placed, place in zip(self.aucs, placements, bins):
            place = place - placed.first
            models.append((placed.values[label, place] - auc) * share)
            doubt += placed.doubts[label, place] * share
        return Pulls(
            delta=models[1] - models[0], doubt=doubt, baseline=models[0], candidate=models[1]
        )

    def _of_cells(self) -> Pulls:
        cells = self.summary.joint.cells()
        bins = [cells.bins(model) for model in (0, 1)]
        return self.pulls(cells.keys & 1, bins, self.placements(COARSE_BITS))

    def _parts(self, pulls: np.ndarray) -> List[float]:
        """The negatives' and the positives' parts of the variance of the cells' pulls."""
        cells = self.summary.joint.cells()
        parts = []
        for of_class in (~cells.positive, cells.positive):
            rows = float(cells.rows[of_class].sum())
            squares = float((cells.squares[of_class] * pulls[of_class] ** 2).sum())
            parts.append(squares * rows / (rows - 1))
        return parts


def upper_parts(parts: Sequence[float], doubts: Sequence[float]) -> List[float]:
    """The largest that each class's part can be, by Minkowski's inequality, given the doubts."""
    return [(math.sqrt(part) + math.sqrt(doubt)) ** 2 for part, doubt in zip(parts, doubts)]


def upper_spread(
    parts: Sequence[float],
    doubts: Sequence[float],
    observations: Tuple[float, float],
    squares: float,
    fourths: float,
) -> Spread:
    """The spread of rows that stand alone, with upper values.

    Args:
        parts, doubts: as for `upper_parts`.
        observations: effective negatives and positives.
        squares, fourths: sums over all rows of the second and fourth powers of their pulls.
    """
    upper = upper_parts(parts, doubts)
    carriers, step = carried(squares, fourths)
    return Spread(
        independent=math.sqrt(sum(upper)),
        clustered=None,
        observations=min(observations),
        freedom=welch(upper, observations),
        carriers=carriers,
        step=step,
    )


def models_of(summary: Summary) -> List[Model]:
    """The baseline's bins and the candidate's."""
    return [_model(summary, model) for model in (0, 1)]


def _model(summary: Summary, model: int) -> Model:
    span = summary.span()
    used = np.flatnonzero(summary.rows_by_bin[model][:, span].any(axis=0)) + span.start
    counts = summary.rows_by_bin[model][:, used]
    mass = summary.mass[model][:, used] if summary.weighted else counts
    negatives, positives = (np.concatenate(([0], np.cumsum(of_class))) for of_class in mass)
    empty = np.zeros(0, np.int64)  # no rows by level: only the sums by level are asked for
    shared = float((mass[0].astype(float) * mass[1]).sum())
    bound = shared / (2 * float(positives[-1]) * float(negatives[-1]))
    return Model(used, counts, mass, Ranking(empty, empty > 0, positives, negatives), bound)


def _placements(summary: Summary, model: int, bits: int) -> Placements:
    span = summary.span()
    mass = summary.mass[model][:, span].reshape(2, -1, 1 << bits).sum(axis=2)
    share = mass / mass.sum(axis=1, keepdims=True)
    below = np.cumsum(share, axis=1) - share / 2
    values = np.stack((1 - below[1], below[0]))
    # A row is placed among the rows of the other class, so that class's mass is in doubt.
    return Placements(values, share[::-1] / 2, span.start >> bits)
