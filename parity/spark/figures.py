"""One model's own figures from ranked rows: its AUC and curve, its fit to the labels; and GAUC."""

from typing import List, NamedTuple, Optional, Tuple

import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from parity.result import Side
from parity.spark import scores as scale
from parity.spark.given import Given, kept
from parity.spark.ranks import Ranked, Told, area, cumulated, in_halves, in_ranges, whole
from parity.spark.scores import SIDES
from parity.stats.calibration import (
    ECE_BINS,
    MeanDifference,
    Reliability,
    calibration_of,
    mean_difference_of,
    reliability_of_sums,
)
from parity.stats.delong import Spread
from parity.stats.tf1_auc import THRESHOLDS, area_above, thresholds

_CURVE = 128  # points of the ROC curve beside its first


def first_sums(given: Given, model: int, ranks: Ranked) -> List[Expression]:
    """Sums over all rows, for `side_of`."""
    side, weight = SIDES[model], F.col("w")
    caught, passed = ranks.masses[1] - ranks.below("p"), ranks.masses[0] - ranks.below("n")
    first, last = ranks.rows_below, ranks.rows_below + ranks.rows_tied - 1
    # A score at whose ties a bin begins is an edge of the bins, as in parity.stats.calibration.
    cut = _cuts_upto(last, given.total) > _cuts_upto(first - 1, given.total)
    sums = [
        *ranks.wins(),
        *in_halves(ranks.tied_negatives, f"{side}_tied"),
        F.sum(F.when(F.col("p") == 1, weight * caught / (caught + passed))).alias(f"{side}_caught"),
        F.sum(weight * scale.probability(given.logits, side)).alias(f"{side}_score"),
        F.collect_set(F.when(cut, F.col(side))).alias(f"{side}_cuts"),
    ]
    if given.probabilities(model):
        sums.append(F.sum(weight * scale.loss(given.logits, side)).alias(f"{side}_loss"))
    return sums


def _cuts_upto(place: Expression, rows: int) -> Expression:
    """How many of the places that divide the sorted rows into ECE_BINS are `place` or lower."""
    return F.greatest(F.lit(0), F.floor((place * ECE_BINS + (ECE_BINS - 1)) / rows))


def side_of(
    given: Given,
    model: int,
    ranked: DataFrame,
    ranks: Ranked,
    told: Told,
    own: Spread,
    gauc: Optional[float],
) -> Side:
    """The figures to report.

    Args:
        ranked: the rows, with the running sums of `ranks`.
        told: the result of `first_sums`.
        own: the spread of the AUC.
    """
    side = SIDES[model]
    fit = bins = old_style = None
    if given.probabilities(model):
        bins = _reliability(given, side, sorted(told[f"{side}_cuts"]))
        mass = sum(given.masses)
        loss, score = told[f"{side}_loss"], told[f"{side}_score"]
        fit = calibration_of(given.masses[1] / mass, loss / mass, score / mass, bins)
    if given.logits[model] or given.within_0_to_1(model):
        old_style = _thresholded(given, side)
    return Side(
        auc=area(told, side, given.masses, given.weighted),
        standard_error=own.standard_error,
        calibration=fit,
        pr_auc=told[f"{side}_caught"] / given.masses[1],
        gauc=gauc,
        tf1_compat_auc=old_style,
        tied_pairs=whole(told, f"{side}_tied"),
        curve=_curve(ranked, ranks),
        reliability=bins,
        freedom=own.freedom,
    )


def _reliability(given: Given, side: str, edges: List[float]) -> Reliability:
    weight = F.col("w")
    score = scale.probability(given.logits, side)
    amounts = (weight, weight * score, weight * F.col("p"))
    rows = in_ranges(given.rows, side, edges, "bin").groupBy("bin")
    told = rows.agg(*(F.sum(amount) for amount in amounts)).orderBy("bin").collect()
    return reliability_of_sums(*np.array([list(row)[1:] for row in told], float).T)


def _thresholded(given: Given, side: str) -> float:
    """`parity.stats.tf1_auc`, from how many thresholds are no lower than each score."""
    # In float32, as tf.metrics.auc compares; negated, since it counts the thresholds below a score
    # and `in_ranges` those that are no larger.
    score = scale.probability(given.logits, side).cast("float").cast("double")
    rows = given.rows.select("p", "w", (-score).alias("score"))
    edges = sorted(-value for value in thresholds().astype(float).tolist())
    told = in_ranges(rows, "score", edges, "above").groupBy("p", "above").agg(F.sum("w")).collect()
    amounts = np.zeros((2, THRESHOLDS + 1))
    for label, above, mass in told:
        amounts[label, THRESHOLDS - above] = mass
    return area_above(amounts[1], amounts[0])


def _curve(ranked: DataFrame, ranks: Ranked) -> Tuple[np.ndarray, np.ndarray]:
    passed, missed = (
        (ranks.below(label) + ranks.tied(label)) / mass for label, mass in zip("np", ranks.masses)
    )
    along = (passed + missed) / 2
    # The first point of each of even pieces along the curve, which lies exactly on it.
    cells = ranked.groupBy(F.floor(along * _CURVE).alias("cell"))
    firsts = cells.agg(F.min(F.struct(along, passed, missed)).alias("first")).where("cell > 0")
    points = sorted(tuple(row["first"])[1:] for row in firsts.collect())
    along_curve = np.array([(0.0, 0.0), *points])[::-1]
    return 1 - along_curve[:, 0], 1 - along_curve[:, 1]


class Gauc(NamedTuple):
    """The GAUC of both models; None without a group that holds both classes."""

    old: Optional[float] = None
    new: Optional[float] = None
    difference: Optional[MeanDifference] = None


def gauc_of(given: Given) -> Gauc:
    """The GAUC within clusters, as parity.stats.gauc defines it."""
    if not given.clustered:
        return Gauc()
    rows, weight = given.rows.select("p", "w", "cluster", *SIDES), F.col("w")
    negatives = {"n": (1 - F.col("p")) * weight}
    for side in SIDES:
        rows = cumulated(rows, side, negatives, within=["cluster"])
    won = {
        side: F.sum(F.col("p") * weight * (F.col(f"{side}_n_below") + F.col(f"{side}_n_tied") / 2))
        for side in SIDES
    }
    groups = (
        rows.groupBy("cluster")
        .agg(
            *(amount.alias(side) for side, amount in won.items()),
            F.sum(F.col("p") * weight).alias("positives"),
            F.sum((1 - F.col("p")) * weight).alias("negatives"),
        )
        .where((F.col("positives") > 0) & (F.col("negatives") > 0))
    )
    pairs, share = F.col("positives") * F.col("negatives"), F.col("share")
    areas = groups.select(
        *((F.col(side) / pairs).alias(side) for side in SIDES),
        (F.col("positives") + F.col("negatives")).alias("share"),
    )
    with kept(areas) as areas:
        (told,) = areas.agg(
            F.count("*").alias("groups"),
            *(F.sum(F.col(side) * share).alias(side) for side in SIDES),
            F.sum(share).alias("share"),
            F.sum(share * share).alias("squares"),
        ).collect()
        if not told["groups"]:
            return Gauc()
        old, new = (told[side] / told["share"] for side in SIDES)
        if told["groups"] < 2:
            return Gauc(old, new)
        pull = (F.col("new") - F.col("old") - (new - old)) * share / told["share"]
        (sums,) = areas.agg(F.sum(pull**2), F.sum(pull**4)).collect()
    observations = told["share"] ** 2 / told["squares"]
    apart = mean_difference_of(new - old, sums[0], sums[1], told["groups"], observations, 1.0)
    return Gauc(old, new, apart)
