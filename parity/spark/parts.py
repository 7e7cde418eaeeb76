"""The comparison within each value of a column, slices and days, as parity.stats.strata has it."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from parity.spark.given import Given, Names, kept
from parity.spark.ranks import Ranked, area, ranked
from parity.spark.scores import SIDES
from parity.spark.spreads import (
    Sums,
    add_evidence,
    add_rows,
    cluster_sums,
    evidence_from,
    observations_of,
    spread_from,
)
from parity.stats.clusters import check_holding
from parity.stats.parts import Part, with_q
from parity.stats.strata import Days, days_of, error_of_alike

_CONSTANTS = ("n_total", "p_total", "delta")  # of a part, beside its value


class Parts(NamedTuple):
    """The results of `parity.compare_slices` and `compare_days`."""

    slices: Tuple[Tuple[str, Tuple[Part, ...]], ...]
    days: Optional[Days]


class _Compared(NamedTuple):
    """One column's parts, sorted by value, and the mean of their differences."""

    parts: List[Part]
    error: float  # of the mean; 0 without a part that has a difference
    observations: float


def parts_of(given: Given, names: Names, margin: float) -> Parts:
    """The slices and the days.

    Raises:
        BadInput: no day has two rows of each class.
    """
    compared = {name: _compared(given, name, margin, name == names.day) for name in names.parts}
    days = None
    if names.day is not None:
        of_days = compared[names.day]
        days = days_of(of_days.parts, of_days.error, of_days.observations, margin)
    slices = tuple((name, with_q(compared[name].parts)) for name in names.slices)
    return Parts(slices, days)


def _compared(given: Given, name: str, margin: float, mean: bool) -> _Compared:
    """Args: mean: whether the mean of the parts is asked for."""
    column = given.parts[name]
    with kept(ranked(given, given.rows, [column])) as placed:
        firsts = _firsts(given, placed, column)
        usable = {value: known for value, known in firsts.items() if known.part.rarer >= 2}
        if not usable:
            return _Compared([firsts[value].part for value in sorted(firsts)], 0.0, 0.0)
        # Each part's rows are pulled about the part's own AUCs: these come to them by a join.
        rows = _with_constants(given, placed, column, usable)
        ranks = [Ranked(s, given.weighted, [F.col(c) for c in _CONSTANTS[:2]]) for s in SIDES]
        sums = Sums(given.clustered)
        add_rows(sums)
        add_evidence(sums, ranks[0], ranks[1], F.col("delta"))
        parts, fewest = {value: known.part for value, known in firsts.items()}, []
        for told in sums.told(rows, [column]):
            value = told[column]
            known = usable[value]
            delta = known.aucs[1] - known.aucs[0]
            moves = spread_from(told, "moved", given.clustered)
            evidence = evidence_from(told, delta, moves)
            parts[value] = known.part.compared(known.aucs, evidence, margin)
            fewest.append(moves.observations)
        ordered = [parts[value] for value in sorted(parts)]
        if not mean:
            return _Compared(ordered, 0.0, 0.0)
        if not given.clustered:
            errors = [part.standard_error for part in ordered if part.standard_error is not None]
            return _Compared(ordered, *error_of_alike(errors, min(fewest)))
        (told,) = sums.told(rows)  # clusters may come on several days
        held = cluster_sums(told, "moved")
        check_holding(held.held)
        error = held.standard_error() / len(usable)
        return _Compared(ordered, error, min(observations_of(told, clustered=True)))


class _First(NamedTuple):
    """A part's figures from the first pass."""

    part: Part
    masses: Tuple[float, float]  # negatives first
    aucs: Tuple[float, float]  # nan without both classes


def _firsts(given: Given, placed: DataFrame, column: str) -> Dict[Any, _First]:
    positive, weight = F.col("p").cast("long"), F.col("w")
    ranks = [Ranked(side, given.weighted, ()) for side in SIDES]
    sums = placed.groupBy(column).agg(
        F.count("*").alias("rows"),
        F.sum(positive).alias("positives"),
        F.sum((1 - positive) * weight).alias("n_total"),
        F.sum(positive * weight).alias("p_total"),
        *ranks[0].wins(),
        *ranks[1].wins(),
    )
    found = {}
    for row in sums.collect():
        told = row.asDict()
        masses = told["n_total"], told["p_total"]
        aucs = (float("nan"), float("nan"))
        if all(masses):
            old, new = (area(told, side, masses, given.weighted) for side in SIDES)
            aucs = old, new
        part = Part(str(told[column]), told["rows"], told["positives"])
        found[told[column]] = _First(part, masses, aucs)
    return found


def _with_constants(
    given: Given, placed: DataFrame, column: str, usable: Dict[Any, _First]
) -> DataFrame:
    """The rows of the parts that have a difference, with the figures of their parts."""
    doubles = [T.StructField(name, T.DoubleType()) for name in _CONSTANTS]
    schema = T.StructType([T.StructField(column, placed.schema[column].dataType), *doubles])
    rows = [
        (value, *known.masses, known.aucs[1] - known.aucs[0]) for value, known in usable.items()
    ]
    constants = placed.sparkSession.createDataFrame(rows, schema)
    return placed.join(F.broadcast(constants), column)
