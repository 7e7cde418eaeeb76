"""Rows that stand more than once, as parity.stats.repeats finds them; here of all groups.

In place of the labels of a group's first two rows, of which there are none in a DataFrame, stands
how often two of its rows differ.
"""

import math
from typing import Optional

from pyspark.sql import Window
from pyspark.sql import functions as F

from parity.spark.given import Given, kept
from parity.spark.ranks import in_ranges
from parity.stats.repeats import ENOUGH, Repeats, are_copies, repeats_of


def repeats_in(given: Given) -> Optional[Repeats]:
    """None where chance explains the repeats, or may do so."""
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
        along = Window.partitionBy("range").orderBy("old", "new")
        share, before = F.col("share"), F.lag("share").over(along)
        pairs = in_ranges(several, "old", given.ranges["old"], "range").select(
            (2 * positives * negatives / (rows * (rows - 1))).alias("within"),
            (share * (1 - before) + before * (1 - share)).alias("between"),
        )
        (sums,) = pairs.agg(F.sum("within"), F.sum("between")).collect()
    copies = are_copies(*(amount or 0.0 for amount in sums))
    return repeats_of(given.total, told["cells"], times, copies)
