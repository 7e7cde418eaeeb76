"""Running sums of both classes along the scores, from which each row has its placement.

1. A row's range is found by edges that the whole job agrees on (approximate quantiles), so it
   depends on the score alone, whoever computes it again.
2. The sums over each range are small: those of lower ranges come to each row by a broadcast.
3. Within a range the rows are sorted, and running sums do the rest. Ties have one sum.
"""

from typing import Any, List, Mapping, Sequence

from pyspark.ml.feature import Bucketizer
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from parity.spark.given import Given
from parity.spark.scores import SIDES

Told = Mapping[str, Any]  # a row of sums, by name

_LOW_BITS = 20  # integers are added in two halves, since their sum may pass 2^63


def in_ranges(rows: DataFrame, column: str, edges: Sequence[float], to: str) -> DataFrame:
    """The rows with an int column `to`: how many of the rising edges are at most the value."""
    if not edges:
        return rows.withColumn(to, F.lit(0))
    splits = [float("-inf"), *edges, float("inf")]
    found = Bucketizer(splits=splits, inputCol=column, outputCol="_" + to).transform(rows)
    return found.withColumn(to, F.col("_" + to).cast("int")).drop("_" + to)


def cumulated(
    rows: DataFrame,
    score: str,
    amounts: Mapping[str, Expression],
    within: Sequence[str] = (),
    edges: Sequence[float] = (),
) -> DataFrame:
    """The rows with columns {score}_{name}_below and {score}_{name}_tied for each amount.

    They are its sum over rows of a lower and of the same score, within equal values of `within`.
    """
    held = {name: f"_{name}" for name in amounts}
    rows = rows.withColumns({held[name]: amount for name, amount in amounts.items()})
    keys = [*within, "_range"]
    rows = in_ranges(rows, score, edges, "_range")
    # By value, not by row: the sum up to a score includes its ties, which are taken off below.
    upto = Window.partitionBy(*keys).orderBy(score).rangeBetween(Window.unboundedPreceding, 0)
    same = Window.partitionBy(*keys, score)
    ranked = rows.withColumns(
        {
            **{f"{score}_{name}_below": F.sum(column).over(upto) for name, column in held.items()},
            **{f"{score}_{name}_tied": F.sum(column).over(same) for name, column in held.items()},
        }
    )
    below = {
        f"{score}_{name}_below": F.col(f"{score}_{name}_below") - F.col(f"{score}_{name}_tied")
        for name in amounts
    }
    if edges:
        lower = (
            Window.partitionBy(*within).orderBy("_range").rowsBetween(Window.unboundedPreceding, -1)
        )
        sums = rows.groupBy(*keys).agg(*(F.sum(column).alias(column) for column in held.values()))
        before = {name: F.sum(column).over(lower) for name, column in held.items()}
        offsets = sums.select(
            *keys,
            # Nothing is below the lowest range: a sum over no rows is null.
            *(F.coalesce(sum_, F.lit(0)).alias(f"_{name}_before") for name, sum_ in before.items()),
        )
        ranked = ranked.join(F.broadcast(offsets), keys)
        below = {
            f"{score}_{name}_below": below[f"{score}_{name}_below"] + F.col(f"_{name}_before")
            for name in amounts
        }
    spare = [*held.values(), "_range", *(f"_{name}_before" for name in amounts)]
    return ranked.withColumns(below).drop(*spare)


def ranked(
    given: Given, rows: DataFrame, within: Sequence[str] = (), scores: Sequence[str] = SIDES
) -> DataFrame:
    """Rows with the running sums of some columns of scores, for `Ranked`."""
    positive = F.col("p").cast("long")
    amounts = {"rp": positive, "rn": 1 - positive}
    if given.weighted:
        amounts |= {"wp": F.col("p") * F.col("w"), "wn": (1 - F.col("p")) * F.col("w")}
    for side in scores:
        rows = cumulated(rows, side, amounts, within, given.ranges[side])
    return rows


class Ranked:
    """Expressions of one model's ranks, for rows from `ranked`."""

    def __init__(self, side: str, weighted: bool, masses: Sequence[Expression]) -> None:
        """Args: masses: of negatives and of positives, all that are ranked together."""
        self._side, self._weighted = side, weighted
        self._mass = "w" if weighted else "r"
        self.masses = masses

    def _of(self, what: str) -> Expression:
        return F.col(f"{self._side}_{what}")

    def below(self, label: str) -> Expression:
        """The mass of the class "p" or "n" that has a lower score."""
        return self._of(f"{self._mass}{label}_below")

    def tied(self, label: str) -> Expression:
        """The mass of the class "p" or "n" that has the same score, the row itself included."""
        return self._of(f"{self._mass}{label}_tied")

    @property
    def placement(self) -> Expression:
        """The placement, as parity.stats.roc defines it."""
        (negatives, positives), halves = self.masses, {}
        for label in "pn":
            halves[label] = self.below(label) + self.tied(label) / 2
        return F.when(F.col("p") == 1, halves["n"] / negatives).otherwise(
            1 - halves["p"] / positives
        )

    @property
    def doubled_wins(self) -> Expression:
        """Twice the mass of negatives that a positive wins against, ties half; else null."""
        return F.when(F.col("p") == 1, 2 * self.below("n") + self.tied("n"))

    @property
    def tied_negatives(self) -> Expression:
        """How many negative rows have a positive's score; null for a negative."""
        return F.when(F.col("p") == 1, self._of("rn_tied"))

    @property
    def rows_below(self) -> Expression:
        """How many rows have a lower score."""
        return self._of("rn_below") + self._of("rp_below")

    @property
    def rows_tied(self) -> Expression:
        """How many rows have the same score, the row itself among them."""
        return self._of("rn_tied") + self._of("rp_tied")

    @property
    def doubled_rank(self) -> Expression:
        """Twice the rank, from 0; of ties the middle one."""
        return 2 * self.rows_below + self.rows_tied - 1

    def wins(self) -> List[Expression]:
        """Sums for `area`."""
        if self._weighted:
            return [F.sum(self.doubled_wins * F.col("w")).alias(f"{self._side}_wins")]
        return in_halves(self.doubled_wins, f"{self._side}_wins")


def in_halves(amount: Expression, name: str) -> List[Expression]:
    """Sums of integers for `whole`, which no number of rows makes too large."""
    high = F.shiftright(amount, _LOW_BITS)
    low = amount.bitwiseAND(F.lit((1 << _LOW_BITS) - 1))
    return [F.sum(high).alias(f"{name}_high"), F.sum(low).alias(f"{name}_low")]


def whole(told: Told, name: str) -> int:
    """The sum that `in_halves` gave."""
    return ((told[f"{name}_high"] or 0) << _LOW_BITS) + (told[f"{name}_low"] or 0)


def area(told: Told, side: str, masses: Sequence[float], weighted: bool) -> float:
    """The AUC, from `Ranked.wins`; correctly rounded without weights."""
    if weighted:
        return told[f"{side}_wins"] / (2 * masses[0] * masses[1])
    return whole(told, f"{side}_wins") / (2 * int(masses[0]) * int(masses[1]))
