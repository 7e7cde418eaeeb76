"""What histograms cannot hold: figures by group, and single rows. They need the rows once more.

While the rows are counted they are put aside by their group (parity.io.spill). Once the counts are
known, so are the rows' placements, and one bucket after the other is read back. It holds whole
groups, so their sums of psi (parity.stats.delong) are squared and added up, and no sum is kept. The
second look never needs more memory than the largest bucket and the counts.
"""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa

from parity.histogram.bins import bins_of
from parity.histogram.counts import Value
from parity.histogram.estimate import Estimate, Pulls
from parity.inputs.rows import Rows
from parity.io.columns import to_codes
from parity.io.spill import Buckets
from parity.stats.calibration import losses
from parity.stats.delong import Holding, carried_by, check_holding, holding, obuchowski
from parity.stats.grouped import grouped_auc
from parity.stats.worst import WorstRow, picked

_PART_BITS = 4  # bins of a day or slice are looked up by sixteens: there may be hundreds of tables

Within = Dict[str, Dict[Value, Optional[Estimate]]]  # by column; None where a class is too small


class ByGroup(NamedTuple):
    """Standard errors that take rows of a group to vary together; upper values as the others."""

    groups: int
    error: float  # of the difference
    independent: float  # the same as if every row stood alone
    own_errors: List[float]  # of the two AUCs
    loss_error: float  # of the paired difference of log loss; 0 without it
    gaucs: List[Optional[float]]
    observations: Tuple[float, float]  # effective groups that hold negatives, and positives
    carried: Tuple[float, float]  # `carriers` and `step` of parity.stats.delong.Spread


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
        models = pulls.models[0] * rows.weights, pulls.models[1] * rows.weights
        return Pulls(pulls.delta * rows.weights, pulls.doubt * rows.weights, models)


class Sums:
    """Of groups' sums over positives (u) and over negatives (d) what Obuchowski's variance takes.

    A group comes whole, in one call, so no sum is kept: for each amount sum u^2, sum d^2, sum u d
    and sum (u + d)^4, and of the weights of either class the sum and the sum of squares.
    """

    def __init__(self) -> None:
        self.held = Holding(0, 0, 0)
        self._products: np.ndarray = np.zeros(0)  # (amounts, 4)
        self._weights = np.zeros((2, 2))  # by label: sum, sum of squares

    def add(
        self,
        groups: np.ndarray,
        positive: np.ndarray,
        amounts: Sequence[np.ndarray],
        weights: Optional[np.ndarray],
    ) -> None:
        """Rows by their group, int (n,) from 0, bool (n,) labels, some amounts of each, float64
        (n,), and their weights, float64 (n,) or None."""
        size = int(groups.max()) + 1
        classes = (positive, ~positive)
        codes = [groups[of_class] for of_class in classes]
        held = holding(*(np.bincount(one, minlength=size) for one in codes))
        self.held = Holding(*(old + new for old, new in zip(self.held, held)))
        products = []
        for amount in amounts:
            up, down = (np.bincount(g, amount[c], size) for g, c in zip(codes, classes))
            parts = (up * up, down * down, up * down, (up + down) ** 4)
            products.append([float(part.sum()) for part in parts])
        new = np.array(products)
        self._products = new if not len(self._products) else self._products + new
        for label, (group, of_class) in enumerate(zip(codes[::-1], classes[::-1])):
            mass = np.bincount(group, None if weights is None else weights[of_class], size)
            self._weights[label] += float(mass.sum()), float((mass * mass).sum())

    @property
    def usable(self) -> bool:
        """Whether two groups hold each class."""
        return self.held.fewer > 1

    @property
    def observations(self) -> Tuple[float, float]:
        """Effective groups that hold negatives, and positives."""
        negatives, positives = (float(total**2 / squares) for total, squares in self._weights)
        return negatives, positives

    def error(self, *amounts: int) -> float:
        """The standard error from amounts that add up, by Minkowski's inequality: the variance is
        a sum of squares of u, d and u + d, as the factors of the first two are no smaller."""
        roots = 0.0
        for i in amounts:
            up, down, across = self._products[i, :3].tolist()
            roots += math.sqrt(obuchowski(up, down, across, self.held))
        return roots

    def error_of_total(self, amount: int) -> float:
        """The standard error of a mean over rows, whose classes do not matter."""
        up, down, across = self._products[amount, :3]
        factor = self.held.either / (self.held.either - 1)
        return math.sqrt(max(0.0, float(up + down + 2 * across)) * factor)

    def carried(self, amount: int) -> Tuple[float, float]:
        """`carriers` and `step` of a Spread."""
        up, down, across, fourths = self._products[amount]
        return carried_by(float(up + down + 2 * across), float(fourths))


class Looks:
    """The figures by group, of the whole and within each day and slice."""

    def __init__(self, whole: Estimate, within: Within, day: Optional[str]) -> None:
        self._whole, self._day = _Placed(whole, 0), day
        self._within = {
            name: {value: _Placed(e, _PART_BITS) if e else None for value, e in estimates.items()}
            for name, estimates in within.items()
        }
        self._sums = Sums()
        self._of_parts: Dict[Tuple[str, Value], Sums] = {}
        self._of_days = Sums()
        self._alone = np.zeros((2, 2))  # by label: squares of the rows' pulls, of their doubts
        self._gauc = np.zeros((2, 2))  # by model: sum of weight x AUC, sum of weight

    def add(self, rows: Rows, codes: Dict[str, np.ndarray]) -> None:
        """Rows of whole groups, and the number of each one's value in each dividing column."""
        groups, pulls = _groups(rows), self._whole.pulls(rows)
        amounts = [pulls.delta, pulls.doubt, *pulls.models, self._losses(rows)]
        self._sums.add(groups, rows.positive, amounts, rows.weights)
        for label, of_class in enumerate((~rows.positive, rows.positive)):
            self._alone[label] += [float((p[of_class] ** 2).sum()) for p in pulls[:2]]
        for model, scores in enumerate((rows.baseline, rows.candidate)):
            found = grouped_auc(rows.positive, scores, groups, rows.weights)
            self._gauc[model] += (found.gauc or 0.0) * found.weight, found.weight
        for name in self._within:
            self._add_parts(name, rows, codes[name])

    def whole(self) -> ByGroup:
        """Of all rows. Raises: BadInput where a single group holds a class."""
        check_holding(self._sums.held, "group")
        gaucs = [float(won / weight) if weight else None for won, weight in self._gauc]
        own = [self._sums.error(2), self._sums.error(3)]
        summary = self._whole.estimate.summary
        of_class = np.array([summary.rows - summary.positives, summary.positives])
        variance = np.sqrt(self._alone).sum(axis=1) ** 2 * of_class / (of_class - 1)
        return ByGroup(
            self._sums.held.either,
            self._sums.error(0, 1),
            math.sqrt(float(variance.sum())),
            own,
            self._sums.error_of_total(4),
            gaucs,
            self._sums.observations,
            self._sums.carried(0),
        )

    def part(self, name: str, value: Value) -> Optional[Tuple[Optional[float], float, float]]:
        """Within a day or slice the difference's standard error, None where a single group holds a
        class, its observations and step (parity.stats.delong); None where it has no difference."""
        sums = self._of_parts.get((name, value))
        if sums is None:
            return None
        if not sums.usable:
            return None, 1.0, 0.0
        return sums.error(0, 1), min(sums.observations), sums.carried(0)[1]

    def mean_day(self) -> Tuple[float, float]:
        """Of the mean of the days' differences the standard error and its observations; a group
        may come on several days."""
        check_holding(self._of_days.held, "group")
        return self._of_days.error(0, 1), min(self._of_days.observations)

    def _add_parts(self, name: str, rows: Rows, codes: np.ndarray) -> None:
        of_values = self._within[name]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(of_values) + 1))
        pieces = []
        for i, (value, placed) in enumerate(of_values.items()):
            chosen = order[edges[i] : edges[i + 1]]
            if placed is None or not len(chosen):
                continue
            taken = rows.take(chosen)
            pulls = placed.pulls(taken)
            groups = np.unique(_groups(taken), return_inverse=True)[1]
            sums = self._of_parts.setdefault((name, value), Sums())
            sums.add(groups, taken.positive, pulls[:2], taken.weights)
            weights = np.ones(len(chosen)) if taken.weights is None else taken.weights
            pieces.append((_groups(taken), taken.positive, *pulls[:2], weights))
        if name == self._day and pieces:
            usable = sum(placed is not None for placed in of_values.values())
            groups, positive, delta, doubt, weights = map(np.concatenate, zip(*pieces))
            self._of_days.add(groups, positive, [delta / usable, doubt / usable], weights)

    def _losses(self, rows: Rows) -> np.ndarray:
        """Each row's pull on the paired difference of log loss; zeros without it."""
        summary = self._whole.estimate.summary
        if not summary.losses.probabilities:
            return np.zeros(len(rows.positive))
        old, new = (losses(rows.positive, s) for s in (rows.baseline, rows.candidate))
        assert old is not None and new is not None
        mass = float(summary.mass[0].sum())
        gap = new - old - summary.losses.difference(summary.rows, mass).delta
        return (gap if rows.weights is None else gap * rows.weights) / mass


class Worst:
    """The rows that pull the difference hardest (stats.worst), to the certified bound's precision.

    Placements are those of the fine bins, so a share is off by half its bin's.
    """

    def __init__(self, estimate: Estimate, count: int) -> None:
        self._count = count
        self._sign = 1 if estimate.delta >= 0 else -1
        self._mass = np.array(estimate.class_mass)
        self._placements = estimate.placements(0)
        self._held: List[WorstRow] = []

    def add(self, rows: Rows, numbers: np.ndarray) -> None:
        """Rows and where they are in the data set."""
        label = rows.positive.astype(np.intp)
        old, new = (
            placed.values[label, bins_of(scores) - placed.first]
            for placed, scores in zip(self._placements, (rows.baseline, rows.candidate))
        )
        share = (new - old) / (2 * self._mass[label])
        if rows.weights is not None:
            share *= rows.weights
        towards = share * self._sign
        chosen = np.lexsort((numbers, -towards))[: self._count]
        self._held += picked(chosen[towards[chosen] > 0], rows, numbers, share)
        self._held.sort(key=lambda row: (-row.share * self._sign, row.row))
        del self._held[self._count :]

    def found(self) -> Tuple[WorstRow, ...]:
        """At most so many, the hardest first."""
        return tuple(self._held)


def put_aside(
    buckets: Buckets,
    rows: Rows,
    numbers: np.ndarray,
    group: pa.ChunkedArray,
    codes: Dict[str, np.ndarray],
) -> None:
    """Adds rows to the buckets of their groups; `read_back` undoes it."""
    columns: Dict[str, Any] = {
        "group": group,
        "number": numbers,
        "label": rows.positive,
        "baseline": rows.baseline.astype(np.float64, copy=False),
        "candidate": rows.candidate.astype(np.float64, copy=False),
    }
    if rows.weights is not None:
        columns["weight"] = rows.weights
    columns.update((f"code {name}", values.astype(np.int32)) for name, values in codes.items())
    buckets.add(pa.table(columns), "group")


def read_back(table: pa.Table) -> Tuple[Rows, np.ndarray, Dict[str, np.ndarray]]:
    """A bucket's rows with groups as clusters, their numbers, and their codes by column."""
    held = {name: table[name].to_numpy() for name in table.column_names if name != "group"}
    rows = Rows(
        held["label"],
        held["baseline"],
        held["candidate"],
        to_codes(table["group"]).astype(np.int64),
        held.get("weight"),
    )
    codes = {name[5:]: held[name] for name in held if name.startswith("code ")}
    return rows, held["number"], codes


def _groups(rows: Rows) -> np.ndarray:
    assert rows.clusters is not None, "read_back gives every row a group"
    return rows.clusters
