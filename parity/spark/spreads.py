"""The spread of estimates (parity.stats.delong) as sums over rows, and over clusters.

One aggregation gives them for all rows, or for each value of a column. Where rows come in clusters
it has two steps: sums over the rows of each cluster, and sums over these.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from parity.spark.given import Given
from parity.spark.ranks import Ranked, Told
from parity.stats.clusters import ClusterSums, Holding
from parity.stats.delong import ROUNDING, Spread, evidence_of_moves, spread_of
from parity.stats.equivalence import Evidence
from parity.stats.rare_failures import Sample

_CLASSES = ("n", "p")  # negatives, positives


class Sums:
    """Sums over rows, and over the sums of clusters, computed together."""

    def __init__(self, clustered: bool) -> None:
        self._clustered = clustered
        self._of_rows: Dict[str, Tuple[str, Expression]] = {}
        self._of_clusters: Dict[str, Expression] = {}
        self._over_clusters: Dict[str, Expression] = {}
        self.over("row_count", F.lit(1).cast("long"))

    def over(self, name: str, amount: Expression, how: str = "sum") -> None:
        """Adds an amount over rows; `how` is sum, min or max."""
        self._of_rows[name] = (how, amount)

    def by_cluster(self, name: str, amount: Expression) -> Expression:
        """The amount's sum over each cluster, for `over_clusters`."""
        self._of_clusters[name] = amount
        return F.col(name)

    def over_clusters(self, name: str, amount: Expression) -> None:
        """Adds a sum over clusters, of expressions from `by_cluster`."""
        self._over_clusters[name] = amount

    def told(self, rows: DataFrame, within: Sequence[str] = ()) -> List[Told]:
        """A row of sums for each value of the columns `within`; one without any."""
        if self._clustered:
            sums = [F.sum(amount).alias(name) for name, amount in self._of_clusters.items()]
            rows = rows.groupBy(*within, "cluster").agg(*sums, *self._at_rows())
            # Sums of sums, least of least: the amounts over rows come out the same.
            again = [_add(how, F.col(name)).alias(name) for name, (how, _) in self._of_rows.items()]
            more = [F.sum(amount).alias(name) for name, amount in self._over_clusters.items()]
            told = rows.groupBy(*within).agg(*again, *more)
        else:
            told = rows.groupBy(*within).agg(*self._at_rows())
        return [row.asDict() for row in told.collect()]

    def _at_rows(self) -> List[Expression]:
        return [_add(how, amount).alias(name) for name, (how, amount) in self._of_rows.items()]


def _add(how: str, amount: Expression) -> Expression:
    return {"sum": F.sum, "min": F.min, "max": F.max}[how](amount)


def of_class(label: str, amount: Any) -> Expression:
    """The amount of a row of the class "p" or "n"; 0 of another."""
    return F.when(F.col("p") == int(label == "p"), amount).otherwise(F.lit(0.0))


def add_rows(sums: Sums) -> None:
    """Adds the number of each class's rows, their weights, and the clusters that hold them."""
    for label in _CLASSES:
        weight = of_class(label, F.col("w"))
        sums.over(f"{label}_rows", of_class(label, F.lit(1.0)))
        sums.over(f"{label}_mass", weight)
        sums.over(f"{label}_squares", weight * weight)
        mass = sums.by_cluster(f"{label}_cluster_mass", weight)
        sums.over_clusters(f"{label}_clusters_mass", mass)
        sums.over_clusters(f"{label}_clusters_squares", mass * mass)
        sums.over_clusters(f"{label}_held", (mass > 0).cast("long"))  # every weight is above 0
    both = F.col("n_cluster_mass") + F.col("p_cluster_mass")
    sums.over_clusters("clusters_mass", both)
    sums.over_clusters("clusters_squares", both * both)
    sums.over_clusters("held", F.lit(1).cast("long"))


def add_spread(
    sums: Sums,
    name: str,
    values: Expression,
    estimate: Expression,
    masses: Sequence[Expression],
) -> None:
    """Adds the sums for `spread_from`.

    Args:
        values: placements, or differences of placements.
        masses: of negatives and of positives.
    """
    psi = {label: (values - estimate) * F.col("w") / mass for label, mass in zip(_CLASSES, masses)}
    squares = {label: of_class(label, of * of) for label, of in psi.items()}
    for label in _CLASSES:
        sums.over(f"{name}_{label}2", squares[label])
    each = squares["n"] + squares["p"]  # one of them is 0
    sums.over(f"{name}_4", each * each)
    down, up = (
        sums.by_cluster(f"{name}_{label}", of_class(label, psi[label])) for label in _CLASSES
    )
    both = up + down
    for what, amount in (
        ("positives", up * up),
        ("negatives", down * down),
        ("across", up * down),
        ("squares", both * both),
        ("fourths", both * both * both * both),
    ):
        sums.over_clusters(f"{name}_{what}", amount)


def add_reaches(sums: Sums, placement: Expression) -> None:
    """Adds the extremes of the baseline's placements, for `sample_from`."""
    for label in _CLASSES:
        of_label = F.when(F.col("p") == int(label == "p"), placement)
        sums.over(f"{label}_most", of_label, "max")
        sums.over(f"{label}_least", of_label, "min")


def sample_from(given: Given, told: Told, moves: Spread) -> Sample:
    """The inputs to the judgement of rare failures, of all rows; `moves` is from `spread_from`."""
    negatives, positives = (
        max(told[f"{label}_most"], 1 - told[f"{label}_least"]) for label in _CLASSES
    )
    return Sample(
        rows=given.total,
        observations=observations_of(told, given.clustered),
        reaches=(negatives, positives),
        carriers=moves.carriers,
        step=moves.step,
        alike=not (given.weighted or given.clustered),
    )


def holding_of(told: Told) -> Holding:
    """How many clusters hold which class."""
    return Holding(told["p_held"], told["n_held"], told["held"])


def observations_of(told: Told, clustered: bool) -> Tuple[float, float]:
    """`parity.stats.delong.class_observations`, from `add_rows`."""
    which = "clusters_" if clustered else ""
    negatives, positives = (
        told[f"{label}_{which}mass"] ** 2 / told[f"{label}_{which}squares"] for label in _CLASSES
    )
    return negatives, positives


def spread_from(told: Told, name: str, clustered: bool) -> Spread:
    """The spread from the sums of `add_spread`; as of one observation in too few clusters."""
    sums: Optional[ClusterSums] = None
    if clustered:
        sums = cluster_sums(told, name)
    lone = sums is not None and sums.held.fewer < 2
    classes = [(told[f"{name}_{label}2"], int(told[f"{label}_rows"])) for label in _CLASSES]
    found = spread_of(
        classes,
        told[f"{name}_4"],
        observations_of(told, clustered and not lone),
        None if lone else sums,
    )
    return found.lone() if lone else found


def cluster_sums(told: Told, name: str) -> ClusterSums:
    """The `ClusterSums`, from the sums of `add_spread`."""
    fields = [field for field in ClusterSums._fields if field != "held"]
    return ClusterSums(**{of: told[f"{name}_{of}"] for of in fields}, held=holding_of(told))


def add_evidence(sums: Sums, old: Ranked, new: Ranked, delta: Expression) -> None:
    """Adds the sums for `evidence_from`."""
    moved = new.placement - old.placement
    add_spread(sums, "moved", moved, delta, old.masses)
    sums.over("moved_least", moved, "min")
    sums.over("moved_most", moved, "max")
    sums.over("passed2", F.abs(new.doubled_rank - old.doubled_rank), "max")


def evidence_from(told: Told, delta: float, moves: Spread) -> Evidence:
    """`parity.stats.delong.evidence_of`, from sums; `moves` is from `spread_from`."""
    alike = told["moved_most"] - told["moved_least"] <= ROUNDING
    common = int(max(told["p_rows"], told["n_rows"]))
    return evidence_of_moves(delta, moves, told["passed2"] / 2 if alike else None, common)
