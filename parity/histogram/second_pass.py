"""Figures that histograms cannot hold, by group and of single rows: they need the rows once more.

While the rows are counted they are stored on disk (parity.histogram.stored_rows). Once the counts
are known, so are the rows' placements, and the rows are read back in blocks of whole groups, whose
sums (parity.stats.clusters) add up, so that none is kept.
"""

import math
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.histogram.bins import bins_of
from parity.histogram.counts import Value
from parity.histogram.estimate import Counted, Estimate, Pulls, upper_parts
from parity.histogram.loss_sums import COUNT, MASS, SUMS, difference_of, sums_of
from parity.histogram.stored_rows import StoredRows
from parity.inputs.rows import Rows
from parity.stats.calibration import FARTHEST_LOSS, MeanDifference, losses
from parity.stats.clusters import ClusterSums, carried, check_holding
from parity.stats.delong import ROUNDING, Spread, welch
from parity.stats.equivalence import Evidence
from parity.stats.gauc import within_groups
from parity.stats.worst_rows import WorstRow, picked

_PART_BITS = 4  # bins of a day or slice are looked up by sixteens: there may be hundreds of tables

Within = Dict[str, Dict[Value, Optional[Estimate]]]  # by column; None where a class is too small


class GroupSums:
    """The sums of several amounts over groups, which come whole, block by block."""

    def __init__(self) -> None:
        self.of: Dict[str, ClusterSums] = {}  # by amount
        # Of the negatives, the positives, all rows: the sum of the groups' weights, of its squares.
        self._weights = np.zeros((3, 2))

    def add(self, rows: Rows, **amounts: np.ndarray) -> None:
        """Adds rows, with their groups as clusters, and amounts of each row, float64 (n,)."""
        clusters = rows.clusters
        assert clusters is not None, "they were stored with their groups"
        for name, amount in amounts.items():
            sums = ClusterSums.of(amount, rows.positive, clusters)
            self.of[name] = self.of[name].joined(sums) if name in self.of else sums
        every = np.ones(len(rows.positive), bool)
        for place, chosen in enumerate((~rows.positive, rows.positive, every)):
            weights = None if rows.weights is None else rows.weights[chosen]
            masses = np.bincount(clusters[chosen], weights).astype(float)
            self._weights[place] += float(masses.sum()), float((masses * masses).sum())

    @property
    def observations(self) -> Tuple[float, float]:
        """Effective groups that hold negatives, and positives."""
        negatives, positives, _ = self._effective()
        return negatives, positives

    def _effective(self) -> List[float]:
        return [float(total**2 / squares) for total, squares in self._weights]

    def difference(self, name: str, delta: float, reach: float) -> MeanDifference:
        """The difference of means whose pulls are the amount."""
        sums = self.of[name]
        _, step = carried(sums.squares, sums.fourths)
        return MeanDifference.of(delta, sums.error_of_total(), self._effective()[2], step, reach)

    def error(self) -> float:
        """The error of `delta` plus that of `doubt`, by Minkowski's inequality."""
        return self.of["delta"].standard_error() + self.of["doubt"].standard_error()

    def own_error(self, model: str) -> Tuple[float, float]:
        """The error of a model's AUC and its degrees of freedom."""
        sums = self.of[model]
        return sums.standard_error(), self._freedom(sums.parts(), sums)

    def _freedom(self, parts: Sequence[float], sums: ClusterSums) -> float:
        # As in parity.stats.delong: a group with both classes is one observation.
        return min(welch(parts, self.observations), sums.held.either - 1)

    def spread(self, independent: float) -> Counted:
        """The spread of the difference; `independent` is its error if every row stands alone."""
        sums = self.of["delta"]
        upper = upper_parts(sums.parts(), self.of["doubt"].parts())
        carriers, step = carried(sums.squares, sums.fourths)
        moves = Spread(
            independent=independent,
            clustered=self.error(),
            observations=min(self.observations),
            freedom=self._freedom(upper, sums),
            carriers=carriers,
            step=step,
        )
        return Counted(moves, sums.standard_error() <= ROUNDING)


class ByGroup(NamedTuple):
    """Standard errors that take rows of a group to vary together; upper values as the others."""

    groups: int
    spread: Counted  # of the difference
    own_errors: List[Tuple[float, float]]  # of the two AUCs, with their degrees of freedom
    loss_difference: Optional[MeanDifference]
    pcoc_difference: Optional[MeanDifference]
    gaucs: List[Optional[float]]
    gauc_difference: Optional[MeanDifference]
    observations: Tuple[float, float]  # effective groups that hold negatives, and positives


class Groups:
    """The figures by group, of all rows and within each day and slice."""

    def __init__(self, whole: Estimate, within: Within, day: Optional[str]) -> None:
        self._whole, self._day = _Placed(whole, 0), day
        self._within = {
            name: {value: _Placed(e, _PART_BITS) if e else None for value, e in estimates.items()}
            for name, estimates in within.items()
        }
        self._sums, self._of_days = GroupSums(), GroupSums()
        self._of_parts: Dict[Tuple[str, Value], GroupSums] = {}
        self._alone = np.zeros((2, 2))  # by label: squares of the rows' pulls, of their doubts
        self._gauc = np.zeros(2)  # by model: sum of weight x AUC
        self._gauc_sums = np.zeros(SUMS)  # of the groups' paired differences
        self._losses = whole.summary.losses

    def add(self, stored: StoredRows) -> None:
        """Adds rows of whole groups."""
        rows = stored.rows
        assert rows.clusters is not None, "they were stored with their groups"
        pulls = self._whole.pulls(rows)
        self._sums.add(rows, **pulls._asdict(), **self._beyond_auc(rows))
        for label, of_class in enumerate((~rows.positive, rows.positive)):
            self._alone[label] += [float((p[of_class] ** 2).sum()) for p in pulls[:2]]
        old, new = (
            within_groups(rows.positive, scores, rows.clusters, rows.weights)
            for scores in (rows.baseline, rows.candidate)
        )
        self._gauc += [float((side.areas * side.weights).sum()) for side in (old, new)]
        self._gauc_sums += sums_of(new.areas - old.areas, old.weights)
        for name in self._within:
            self._add_parts(name, rows, stored.codes[name])

    def whole(self) -> ByGroup:
        """The sums of all rows; raises BadInput if a single group holds a class."""
        sums, weight = self._sums.of, float(self._gauc_sums[MASS])
        groups = check_holding(sums["delta"].held, "group").either
        several = self._gauc_sums[COUNT] > 1
        loss = pcoc = None
        if self._losses.probabilities:
            negatives, positives = self._whole.estimate.class_mass
            delta = self._losses.loss_difference().delta
            loss = self._sums.difference("loss", delta, FARTHEST_LOSS)
            delta = self._losses.pcoc_difference().delta
            reach = (negatives + positives) / positives
            pcoc = self._sums.difference("pcoc", delta, reach)
        return ByGroup(
            groups=groups,
            spread=self._sums.spread(self._error_alone()),
            own_errors=[self._sums.own_error(model) for model in ("baseline", "candidate")],
            loss_difference=loss,
            pcoc_difference=pcoc,
            gaucs=[float(won / weight) if weight else None for won in self._gauc],
            gauc_difference=difference_of(self._gauc_sums, 1.0) if several else None,
            observations=self._sums.observations,
        )

    def _error_alone(self) -> float:
        summary = self._whole.estimate.summary
        rows = np.array([summary.rows - summary.positives, summary.positives])
        return math.sqrt(sum(upper_parts(*(self._alone.T * rows / (rows - 1)))))

    def part(self, name: str, value: Value, estimate: Estimate) -> Evidence:
        """The evidence within a day or slice, given the estimate of the same rows."""
        sums = self._of_parts[name, value]
        if sums.of["delta"].held.fewer < 2:
            alone = estimate.spread()
            return estimate.evidence(alone._replace(moves=alone.moves.lone()))
        return estimate.evidence(sums.spread(0.0))  # a part shows the error by groups alone

    def mean_day(self) -> Tuple[float, float]:
        """Standard error and observations of the mean over days; a group may have several days."""
        check_holding(self._of_days.of["delta"].held, "group")
        return self._of_days.error(), min(self._of_days.observations)

    def _add_parts(self, name: str, rows: Rows, codes: np.ndarray) -> None:
        of_values = self._within[name]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(of_values) + 1))
        chosen, delta, doubt = [], [], []
        for i, (value, placed) in enumerate(of_values.items()):
            of_value = order[edges[i] : edges[i + 1]]
            if placed is None or not len(of_value):
                continue
            taken = rows.take(of_value)
            pulls = placed.pulls(taken)
            sums = self._of_parts.setdefault((name, value), GroupSums())
            sums.add(taken, delta=pulls.delta, doubt=pulls.doubt)
            chosen.append(of_value)
            delta.append(pulls.delta)
            doubt.append(pulls.doubt)
        if name == self._day and chosen:
            usable = sum(placed is not None for placed in of_values.values())
            taken = rows.take(np.concatenate(chosen))
            # Every day counts alike in the mean of the days.
            amounts = (np.concatenate(pulls) / usable for pulls in (delta, doubt))
            self._of_days.add(taken, **dict(zip(("delta", "doubt"), amounts)))

    def _beyond_auc(self, rows: Rows) -> Dict[str, np.ndarray]:
        """Each row's pulls on the paired differences of log loss and PCOC, where they exist."""
        if not self._losses.probabilities:
            return {}
        sides = zip(rows.scores, rows.logits)
        old, new = (losses(rows.positive, scores, logits) for scores, logits in sides)
        assert old is not None and new is not None
        positives = self._whole.estimate.class_mass[1]
        apart = new - old - self._losses.loss_difference().delta
        moved = rows.probabilities(1).astype(np.float64) - rows.probabilities(0)
        moved -= self._losses.pcoc_difference().delta * rows.positive
        weights = 1.0 if rows.weights is None else rows.weights
        mass = sum(self._whole.estimate.class_mass)
        return {"loss": apart * weights / mass, "pcoc": moved * weights / positives}


class _Placed:
    """An estimate with the placements of its bins of 2^bits, for rows to look up."""

    def __init__(self, estimate: Estimate, bits: int) -> None:
        self.estimate, self._bits = estimate, bits
        self._placements = estimate.placements(bits)

    def pulls(self, rows: Rows) -> Pulls:
        """The rows' pulls on the estimate, weighted."""
        bins = [bins_of(scores) >> self._bits for scores in (rows.baseline, rows.candidate)]
        pulls = self.estimate.pulls(rows.positive.astype(np.intp), bins, self._placements)
        if rows.weights is None:
            return pulls
        return Pulls(*(amount * rows.weights for amount in pulls))


class Worst:
    """The rows that pull the difference hardest (stats.worst_rows), to the bound's precision.

    Placements are those of the fine bins, so a share is off by half its bin's.
    """

    def __init__(self, estimate: Estimate, count: int) -> None:
        self._count = count
        self._sign = 1 if estimate.delta >= 0 else -1
        self._mass = np.array(estimate.class_mass)
        self._placements = estimate.placements(0)
        self._held: List[WorstRow] = []

    def add(self, stored: StoredRows) -> None:
        """Looks at some of the rows."""
        rows = stored.rows
        label = rows.positive.astype(np.intp)
        old, new = (
            placed.values[label, bins_of(scores) - placed.first]
            for placed, scores in zip(self._placements, (rows.baseline, rows.candidate))
        )
        share = (new - old) / (2 * self._mass[label])
        if rows.weights is not None:
            share *= rows.weights
        towards = share * self._sign
        chosen = np.lexsort((stored.numbers, -towards))[: self._count]
        self._held += picked(chosen[towards[chosen] > 0], rows, stored.numbers, share)
        self._held.sort(key=lambda row: (-row.share * self._sign, row.row))
        del self._held[self._count :]

    def hardest(self) -> Tuple[WorstRow, ...]:
        """The rows, at most as many as were asked for, the hardest first."""
        return tuple(self._held)
