"""How near two models' scores are, row by row and as a whole (parity.stats.score_difference)."""

import math
from typing import Dict, List, Sequence

import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from parity.inputs.logits import logit, sigmoid
from parity.spark import scores as scale
from parity.spark.given import Given
from parity.spark.ranks import Ranked, Told, cumulated, in_ranges
from parity.spark.scores import SIDES
from parity.stats.score_difference import (
    BINS,
    CELLS,
    JointScores,
    Quantiles,
    ScoreDifference,
)

_SHARES = (0.5, 0.9, 0.99)  # of the rows, whose quantiles are computed


def first_sums(given: Given, old: Ranked, new: Ranked) -> List[Expression]:
    """Sums over all rows, for `score_difference`."""
    middle = given.total - 1  # of the doubled ranks
    # Products of two ranks, and their sum, would pass 2^63.
    first, second = ((ranks.doubled_rank - middle).cast("double") for ranks in (old, new))
    products = {"rank_xy": first * second, "rank_xx": first * first, "rank_yy": second * second}
    sums = [F.sum(product).alias(name) for name, product in products.items()]
    sums.append(F.max(F.abs(scale.apart(given.logits))).alias("apart"))
    if given.probabilities():
        sums.append(F.max(F.abs(scale.logits_apart(given.logits))).alias("logit"))
    return sums


def score_difference(given: Given, told: Told) -> ScoreDifference:
    """The figures of all rows; `told` is the result of `first_sums`."""
    size = _quantiles(given, "apart", scale.apart(given.logits), told)
    logit = None
    if given.probabilities():
        logit = _quantiles(given, "logit", scale.logits_apart(given.logits), told)
    reach = size.p99 or size.max or 1.0
    extent = math.sqrt(told["rank_xx"] * told["rank_yy"])
    return ScoreDifference(
        *size,
        logit=logit,
        ks=_farthest_apart(given),
        spearman=told["rank_xy"] / extent if extent else None,
        edges=np.linspace(-reach, reach, BINS + 1),
        counts=_histogram(given, reach),
        joint=_joint(given),
    )


def _quantiles(given: Given, name: str, value: Expression, told: Told) -> Quantiles:
    """Quantiles of the size of a difference, interpolated between two rows as numpy does."""
    rows = given.rows.select(F.abs(value).alias("size"))
    places = [share * (given.total - 1) for share in _SHARES]
    wanted = sorted({min(int(p) + step, given.total - 1) for p in places for step in (0, 1)})
    found = _at_places(rows, given.ranges[name], wanted)
    quantiles = []
    for place in places:
        low, high = (found[min(int(place) + step, given.total - 1)] for step in (0, 1))
        share = place - int(place)
        # From the nearer end, as numpy's _lerp, so that the last digits agree.
        between = low + (high - low) * share
        quantiles.append(between if share < 0.5 else high - (high - low) * (1 - share))
    return Quantiles._make([*quantiles, told[name]])


def _at_places(rows: DataFrame, edges: Sequence[float], places: Sequence[int]) -> Dict[int, float]:
    """The values of the column "size" at some places, from 0, of all of them sorted.

    The ranges are counted, and those alone are sorted that hold one of the places.
    """
    rows = in_ranges(rows, "size", edges, "range")
    counts = {row[0]: row[1] for row in rows.groupBy("range").count().collect()}
    before, inside = 0, {}
    for number in sorted(counts):
        held = [p for p in places if before <= p < before + counts[number]]
        if held:
            inside[number] = (before, held)
        before += counts[number]
    wanted = [
        (F.col("range") == number) & F.col("place").isin([p - start + 1 for p in held])
        for number, (start, held) in inside.items()
    ]
    place = F.row_number().over(Window.partitionBy("range").orderBy("size"))
    found = rows.where(F.col("range").isin(list(inside))).withColumn("place", place)
    chosen = wanted[0]
    for other in wanted[1:]:
        chosen = chosen | other
    return {
        inside[row["range"]][0] + row["place"] - 1: row["size"]
        for row in found.where(chosen).collect()
    }


def _farthest_apart(given: Given) -> float:
    """The Kolmogorov-Smirnov statistic, from both models' scores in one order."""
    pairs = [
        F.struct(given.on_one_scale(side).alias("score"), F.lit(step).alias("step"))
        for side, step in zip(SIDES, (1, -1))
    ]
    each = F.explode(F.array(*pairs)).alias("one")
    scores = given.rows.select(each).select(
        "one.score", F.col("one.step").cast("long").alias("step")
    )
    of_scale = "new" if given.logits == (False, True) else "old"
    edges = given.ranges[of_scale]
    steps = cumulated(scores, "score", {"step": F.col("step")}, edges=edges)
    gap = F.abs(F.col("score_step_below") + F.col("score_step_tied"))
    (told,) = steps.agg(F.max(gap)).collect()
    return told[0] / given.total


def _histogram(given: Given, reach: float) -> np.ndarray:
    """int64 (BINS,): rows by difference, up to reach; the outermost bins hold those beyond."""
    edges = np.linspace(-reach, reach, BINS + 1)[1:-1].tolist()  # open at both ends
    rows = in_ranges(
        given.rows.select(scale.apart(given.logits).alias("apart")), "apart", edges, "bin"
    )
    counts = np.zeros(BINS, np.int64)
    for place, count in rows.groupBy("bin").count().collect():
        counts[place] = count
    return counts


def _joint(given: Given) -> JointScores:
    """The joint counts of all rows, between about the quantiles 0.001 and 0.999 of both."""
    logits = given.probabilities()
    shown = scale.as_logit if logits else scale.probability
    ends = [_end(given, side, place, logits) for side in SIDES for place in (0, -1)]
    low, high = min(ends), max(ends)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, CELLS + 1)
    rows = given.rows.select(*(shown(given.logits, side).alias(side) for side in SIDES))
    for side in SIDES:
        rows = in_ranges(rows, side, edges[1:-1].tolist(), f"{side}_cell")
    counts = np.zeros((CELLS, CELLS))
    for first, second, count in rows.groupBy("old_cell", "new_cell").count().collect():
        counts[first, second] = count
    return JointScores(logits, edges, counts)


def _end(given: Given, side: str, place: int, logits: bool) -> float:
    """The first (0) or last (-1) edge of a side's scores, as a logit or as a probability."""
    edge = given.ranges[side][place]
    held = given.logits[SIDES.index(side)]
    if held and not logits:
        return float(sigmoid(np.array(edge)))
    return float(logit(np.array(edge))) if logits and not held else edge
