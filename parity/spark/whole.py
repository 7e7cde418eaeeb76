"""The comparison of all rows of a DataFrame: sums from Spark, the verdict by parity.comparison."""

import dataclasses
import math
from types import MappingProxyType
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from parity.comparison import check_rarer, concluded
from parity.doubts import SAME_SCORES, of_repeats, of_runs
from parity.inputs.checks import Column
from parity.notes import notes_on_unmoved, why_no_losses
from parity.result import Comparison
from parity.runs import concluded_runs
from parity.spark import differences, figures
from parity.spark import scores as scale
from parity.spark.given import Given, Names, given, kept
from parity.spark.parts import parts_of
from parity.spark.ranks import Ranked, Told, area, in_ranges, ranked
from parity.spark.runs import found_in
from parity.spark.scores import SIDES
from parity.spark.spreads import (
    Sums,
    add_evidence,
    add_reaches,
    add_rows,
    add_spread,
    evidence_from,
    holding_of,
    sample_from,
    spread_from,
)
from parity.stats.calibration import FARTHEST_LOSS, MeanDifference, mean_difference_of
from parity.stats.clusters import check_holding
from parity.stats.rare_failures import rare_failures
from parity.stats.repeats import ENOUGH, Repeats, are_copies, repeats_of
from parity.verified import Verified
from semisync.common.errors import BadInput


def compare_columns(
    df: DataFrame,
    names: Names,
    margin: float,
    verified: Optional[Verified] = None,
    source: str = "the DataFrame",
    told: Mapping[str, Column] = MappingProxyType({}),
) -> Comparison:
    """`parity.spark.compare`; `source` and `told` as for `given`."""
    with given(df, names, source, told) as rows:
        check_rarer(min(rows.counts))
        # Copies within a cluster vary together, which the error by clusters covers.
        repeated = () if rows.clustered else of_repeats(_repeats_in(rows), rows.total)
        scores = [*rows.runs[0], *rows.runs[1]]
        with kept(ranked(rows, rows.rows, scores=scores)) as placed:
            comparison = _compare(rows, placed, margin, verified, repeated)
            if names.several:
                found, shared = found_in(rows, placed, names.seed_sd)
                warnings = (*of_runs(shared), *repeated)
                comparison = concluded_runs(comparison, found, warnings, verified)
        return dataclasses.replace(comparison, **parts_of(rows, names, margin)._asdict())


def _compare(
    given: Given,
    placed: DataFrame,
    margin: float,
    verified: Optional[Verified],
    repeated: Tuple[str, ...],
) -> Comparison:
    """The comparison of the first runs; `repeated` warns of rows that stand more than once."""
    ranks = [Ranked(side, given.weighted, [F.lit(mass) for mass in given.masses]) for side in SIDES]
    first = _first_sums(given, placed, ranks)
    aucs = [area(first, side, given.masses, given.weighted) for side in SIDES]
    means = _means(given, first)
    # Each row's pull is about the AUCs and means of all rows, so they take a pass of their own.
    second = _second_sums(given, placed, ranks, aucs, means)
    clusters = check_holding(holding_of(second)).either if given.clustered else None
    moves = spread_from(second, "moved", given.clustered)
    evidence = evidence_from(second, aucs[1] - aucs[0], moves)
    gauc = figures.gauc_of(given)
    sides = [
        figures.side_of(
            given,
            model,
            placed,
            ranks[model],
            first,
            spread_from(second, side, given.clustered),
            gauc.old if model == 0 else gauc.new,
        )
        for model, side in enumerate(SIDES)
    ]
    return concluded(
        evidence,
        rare_failures(sample_from(given, second, moves), margin),
        margin,
        verified,
        baseline=sides[0],
        candidate=sides[1],
        rows=given.total,
        positives=given.counts[1],
        standard_error_independent=moves.independent,
        clusters=clusters,
        design_effect=moves.design_effect,
        weighted=given.weighted,
        logloss_difference=_difference(given, second, means, "loss"),
        pcoc_difference=_difference(given, second, means, "pcoc"),
        gauc_difference=gauc.difference,
        score_difference=differences.score_difference(given, first),
        warnings=(*(() if first["differ"] else (SAME_SCORES,)), *repeated),
        notes=notes_on_unmoved(evidence),
        unavailable=why_no_losses(
            *(None if held else extent for extent, held in zip(given.extents, given.logits))
        ),
    )


class _Mean(NamedTuple):
    """A paired difference of means."""

    delta: float
    pull: Expression  # psi of every row
    reach: float


def _first_sums(given: Given, placed: DataFrame, ranks: Sequence[Ranked]) -> Told:
    weight = F.col("w")
    sums: List[Expression] = differences.first_sums(given, *ranks)
    for model in (0, 1):
        sums += figures.first_sums(given, model, ranks[model])
    old, new = (given.on_one_scale(side) for side in SIDES)
    sums.append(F.sum((old != new).cast("long")).alias("differ"))
    sums.append(F.sum(weight * scale.apart(given.logits)).alias("score"))
    if given.probabilities():
        sums.append(F.sum(weight * _losses_apart(given)).alias("loss"))
    (told,) = placed.agg(*sums).collect()
    return told.asDict()


def _losses_apart(given: Given) -> Expression:
    return scale.loss(given.logits, "new") - scale.loss(given.logits, "old")


def _means(given: Given, first: Told) -> Dict[str, _Mean]:
    if not given.probabilities():
        return {}
    weight, mass, positives = F.col("w"), sum(given.masses), given.masses[1]
    loss, pcoc = first["loss"] / mass, first["score"] / positives
    of_loss = weight * (_losses_apart(given) - loss) / mass
    of_pcoc = weight * (scale.apart(given.logits) - pcoc * F.col("p")) / positives
    return {
        "loss": _Mean(loss, of_loss, FARTHEST_LOSS),
        "pcoc": _Mean(pcoc, of_pcoc, mass / positives),
    }


def _second_sums(
    given: Given,
    placed: DataFrame,
    ranks: Sequence[Ranked],
    aucs: Sequence[float],
    means: Dict[str, _Mean],
) -> Told:
    old, new = ranks
    sums = Sums(given.clustered)
    add_rows(sums)
    add_evidence(sums, old, new, F.lit(aucs[1] - aucs[0]))
    for side, rank, auc in zip(SIDES, ranks, aucs):
        add_spread(sums, side, rank.placement, F.lit(auc), rank.masses)
    add_reaches(sums, old.placement)
    for name, mean in means.items():
        by_cluster = sums.by_cluster(f"{name}_of_cluster", mean.pull)
        for power in (2, 4):
            sums.over(f"{name}_{power}", mean.pull**power)
            sums.over_clusters(f"{name}_clusters_{power}", by_cluster**power)
    (told,) = sums.told(placed)
    # A lost executor's part is computed again: from a source that changes, with other rows.
    if (told["n_rows"], told["p_rows"]) != given.counts:
        raise BadInput(
            f"the rows of {given.source} were {given.total:,} at first and "
            f"{told['row_count']:,} when a part of them was computed again; write them to files, "
            "and compare those"
        )
    return told


def _difference(
    given: Given, told: Told, means: Dict[str, _Mean], name: str
) -> Optional[MeanDifference]:
    if name not in means:
        return None
    of_units, units, squares = "", given.total, sum(given.squares)
    if given.clustered:
        of_units, units, squares = "_clusters", told["held"], told["clusters_squares"]
    return mean_difference_of(
        means[name].delta,
        told[f"{name}{of_units}_2"],
        told[f"{name}{of_units}_4"],
        units,
        sum(given.masses) ** 2 / squares,
        means[name].reach,
    )


def _repeats_in(given: Given) -> Optional[Repeats]:
    """The repeats, by the rules of `parity.stats.repeats`; None where chance may explain them.

    A DataFrame's rows have no order, so a group has no first two rows whose labels to compare: the
    probability that two of its rows differ takes their place.
    """
    positives, rows = F.col("positives"), F.col("rows")
    negatives = rows - positives
    groups = given.rows.groupBy("old", "new").agg(
        F.sum(F.col("p").cast("long")).alias("positives"), F.count("*").alias("rows")
    )
    with kept(groups) as groups:
        (told,) = groups.agg(
            F.sum((positives > 0).cast("long") + (negatives > 0).cast("long")).alias("cells"),
            F.collect_set(positives).alias("positives"),
            F.collect_set(negatives).alias("negatives"),
        ).collect()
        sizes = {*told["positives"], *told["negatives"]}
        times = math.gcd(*sizes) if told["cells"] >= ENOUGH else 1
        if told["cells"] == given.total:
            return None
        several = groups.where(rows > 1).withColumn("share", positives / rows)
        # By range: a window over all rows would bring them to one task.
        along = Window.partitionBy("range").orderBy("old", "new")
        share, before = F.col("share"), F.lag("share").over(along)
        # The chances that two rows of a group differ, and one of it and one of the group before.
        pairs = in_ranges(several, "old", given.ranges["old"], "range").select(
            (2 * positives * negatives / (rows * (rows - 1))).alias("within"),
            (share * (1 - before) + before * (1 - share)).alias("between"),
        )
        (sums,) = pairs.agg(F.sum("within"), F.sum("between")).collect()
    copies = are_copies(*(amount or 0.0 for amount in sums))
    return repeats_of(given.total, told["cells"], times, copies)
