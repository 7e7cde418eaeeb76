"""Several training runs per side, of ranked rows: the inputs of `parity.runs`."""

import functools
import itertools
import operator
from typing import List, Optional, Tuple

import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from parity.runs import Found, Runs, difference
from parity.spark.given import Given
from parity.spark.ranks import Ranked, Told, area, in_halves, whole
from parity.spark.spreads import (
    Sums,
    add_reaches,
    add_rows,
    add_spread,
    sample_from,
    spread_from,
)


def found_in(given: Given, placed: DataFrame, seed_sd: Optional[float]) -> Tuple[Found, bool]:
    """The rows' evidence on all runs, and whether a run is on both sides.

    Args:
        placed: the rows, with the running sums of every run's scores.
        seed_sd: the known standard deviation of a lone run's AUC.
    """
    masses = [F.lit(mass) for mass in given.masses]
    runs = [*given.runs[0], *given.runs[1]]
    ranks = {run: Ranked(run, given.weighted, masses) for run in runs}
    first: List[Expression] = []
    for run, of_run in ranks.items():
        first += [*of_run.wins(), *in_halves(of_run.tied_negatives, f"{run}_tied")]
    for pair in itertools.combinations(runs, 2):  # 1 if the scores of any row differ
        first.append(F.max((F.col(pair[0]) != F.col(pair[1])).cast("int")).alias("_".join(pair)))
    (row,) = placed.agg(*first).collect()
    told = row.asDict()
    old, new = (_runs_of(given, side, told, seed_sd) for side in given.runs)
    before, after = (
        functools.reduce(operator.add, (ranks[run].placement for run in side)) / len(side)
        for side in given.runs
    )
    sums = Sums(given.clustered)
    add_rows(sums)
    add_spread(sums, "moved", after - before, F.lit(difference(old, new)), masses)
    add_reaches(sums, before)
    (second,) = sums.told(placed)
    moves = spread_from(second, "moved", given.clustered)
    shared = any(not told["_".join(pair)] for pair in itertools.product(*given.runs))
    return Found(old, new, moves, sample_from(given, second, moves)), shared


def _runs_of(given: Given, side: Tuple[str, ...], told: Told, seed_sd: Optional[float]) -> Runs:
    """The runs of one side; `told` has the sums of every run, and which pairs differ."""
    aucs = [area(told, run, given.masses, given.weighted) for run in side]
    tied = max(whole(told, f"{run}_tied") for run in side)
    copied = any(not told["_".join(pair)] for pair in itertools.combinations(side, 2))
    return Runs(np.array(aucs), tied, copied, seed_sd)
