"""Several training runs per side, counted: their AUCs, and the spread of their mean placements.

1. Each run is counted into histograms, beside one of the other side (parity.histogram.summary).
2. Once the counts are known, the rows are read once more: each has the mean placement of a side's
   runs, and its maximum error, as with one run (parity.histogram.estimate).
"""

import itertools
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from parity.histogram.bins import bins_of
from parity.histogram.compare import checked
from parity.histogram.counts import Kind
from parity.histogram.estimate import Estimate, Placements, models_of, upper_spread
from parity.histogram.second_pass import GroupSums
from parity.histogram.stored_rows import StoredRows
from parity.histogram.summary import Summary
from parity.inputs.rows import Rows
from parity.io.blocks import Block
from parity.runs import Found, Runs, difference
from parity.stats.delong import Spread
from parity.stats.rare_failures import Sample


class Sides(NamedTuple):
    """The number of runs of each side, and the known spread of a lone one's AUCs."""

    baselines: int
    candidates: int
    seed_sd: Optional[float] = None

    def scores(self, rows: Rows, more: Tuple[np.ndarray, ...]) -> List[List[np.ndarray]]:
        """The scores of each side's runs, (n,) each.

        Those of either side's first run are in `rows`, all others in `more`, the baselines' first.
        """
        split = self.baselines - 1
        return [[rows.baseline, *more[:split]], [rows.candidate, *more[split:]]]


class RunCounts:
    """Counts all runs but the first ones, and finds those with the same scores."""

    def __init__(self, kind: Kind, sides: Sides) -> None:
        self.sides = sides
        count = max(sides.baselines, sides.candidates) - 1
        self._more = [Summary(kind.weighted, kind.logits) for _ in range(count)]
        runs = range(sides.baselines + sides.candidates)
        self._same = set(itertools.combinations(runs, 2))

    def add(self, block: Block) -> None:
        """Counts a block's rows."""
        rows = block.rows
        sides = self.sides.scores(rows, block.runs)
        for place, summary in enumerate(self._more, 1):  # beside the first, where a side has fewer
            old, new = (side[place] if place < len(side) else side[0] for side in sides)
            summary.add(rows.positive, old, new, rows.weights)
        runs = [*sides[0], *sides[1]]
        # Pairs that differ in a block are not compared in later ones.
        self._same = {(a, b) for a, b in self._same if np.array_equal(runs[a], runs[b])}

    @property
    def shared(self) -> bool:
        """Whether a run is on both sides."""
        return any(a < self.sides.baselines <= b for a, b in self._same)

    def found_by(self, first: Estimate, grouped: bool) -> "RunSums":
        """The second pass over the rows; `first` is the estimate of the first runs."""
        summaries = [first.summary, *map(checked, self._more)]
        models = [models_of(summary) for summary in summaries]
        estimates = [first, *(Estimate(s, m) for s, m in zip(summaries[1:], models[1:]))]
        placements = [estimate.placements(0) for estimate in estimates]
        runs, placed, bound = [], [], 0.0
        for side, count in enumerate(self.sides[:2]):
            of_side = range(side * self.sides.baselines, side * self.sides.baselines + count)
            tied = [(m[side].counts[0] * m[side].counts[1]).sum() for m in models[:count]]
            copied = any(a in of_side and b in of_side for a, b in self._same)
            aucs = np.array([estimate.aucs[side] for estimate in estimates[:count]])
            runs.append(Runs(aucs, int(max(tied)), copied, self.sides.seed_sd))
            placed.append([of_pair[side] for of_pair in placements[:count]])
            bound += float(np.mean([m[side].bound for m in models[:count]]))
        return RunSums(self.sides, first, runs, placed, bound, grouped)


class RunSums:
    """Sums over rows, which come in blocks: of whole groups, where the rows have groups."""

    def __init__(
        self,
        sides: Sides,
        first: Estimate,
        runs: List[Runs],
        placed: List[List[Placements]],
        bound: float,
        grouped: bool,
    ) -> None:
        self._sides, self._first, self._placed, self.bound = sides, first, placed, bound
        self._old, self._new = runs
        self._delta = difference(*runs)
        self._groups = GroupSums() if grouped else None
        self._squares = np.zeros((2, 2))  # by label: of the rows' pulls, of their doubts
        self._fourths = 0.0
        self._ends = np.array([[1.0, 0.0]] * 2)  # by label: the baseline's least, largest placement

    def add(self, stored: StoredRows) -> None:
        """Adds some of the rows."""
        rows, label = stored.rows, stored.rows.positive.astype(np.intp)
        sides = self._sides.scores(rows, stored.runs)
        old, new = (_mean(placed, scores, label) for placed, scores in zip(self._placed, sides))
        share = 1 / np.array(self._first.class_mass)[label]
        if rows.weights is not None:
            share *= rows.weights
        delta = (new[0] - old[0] - self._delta) * share
        doubt = (new[1] + old[1] + self.bound) * share  # of the placements, and of the difference
        for value, chosen in enumerate((~rows.positive, rows.positive)):
            self._squares[value] += [float((p[chosen] ** 2).sum()) for p in (delta, doubt)]
            ends = self._ends[value]
            ends[0] = (old[0] - old[1])[chosen].min(initial=ends[0])
            ends[1] = (old[0] + old[1])[chosen].max(initial=ends[1])
        self._fourths += float((delta**4).sum())
        if self._groups is not None:
            self._groups.add(rows, delta=delta, doubt=doubt)

    def found(self) -> Found:
        """The runs' difference and its spread, once all rows are added."""
        summary, moves = self._first.summary, self._of_rows()
        observations = self._first.observations
        if self._groups is not None:
            observations = self._groups.observations
            moves = self._groups.spread(moves.independent).moves
        farthest = [min(1.0, max(high, 1 - low)) for low, high in self._ends.tolist()]
        sample = Sample(
            rows=summary.rows,
            observations=observations,
            reaches=(farthest[0], farthest[1]),
            carriers=moves.carriers,
            step=moves.step,
            alike=not summary.weighted and self._groups is None,
        )
        return Found(self._old, self._new, moves, sample, self.bound)

    def _of_rows(self) -> Spread:
        """The spread of rows that stand alone."""
        summary, observations = self._first.summary, self._first.observations
        counts = np.array([summary.rows - summary.positives, summary.positives])
        parts, doubts = (self._squares.T * counts / (counts - 1)).tolist()
        squares = float(self._squares[:, 0].sum())
        return upper_spread(parts, doubts, observations, squares, self._fourths)


def _mean(
    placed: List[Placements], scores: List[np.ndarray], label: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """float64 (n,) each: the rows' mean placements by some runs, and their maximum errors."""
    values, doubts = np.zeros(len(label)), np.zeros(len(label))
    for of_run, held in zip(placed, scores):
        place = bins_of(held) - of_run.first
        values += of_run.values[label, place]
        doubts += of_run.doubts[label, place]
    return values / len(placed), doubts / len(placed)
