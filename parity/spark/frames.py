"""DataFrames as they are given: one with both models' scores, or one of each, to be joined."""

from typing import Dict, NamedTuple, Optional, Sequence

from pyspark.sql import DataFrame

from parity.inputs.checks import Column
from parity.result import Comparison
from parity.spark.given import Names
from parity.spark.join import join
from parity.spark.whole import compare_columns
from parity.verified import Verified
from semisync.common.errors import UsageError


class Compared(NamedTuple):
    """A comparison, and how many rows of two DataFrames matched, or did not, by key."""

    comparison: Comparison
    join: Optional[Dict[str, int]]  # None of a single one


def compare_frames(
    frames: Sequence[DataFrame],
    names: Names,
    sources: Sequence[str],
    margin: float,
    verified: Optional[Verified] = None,
    allow_misses: bool = False,
) -> Compared:
    """`parity.spark.compare`.

    Args:
        frames: one, or the baseline's and the candidate's.
        sources: what the messages call each.
        allow_misses: leave out rows whose key one side lacks, instead of refusing them.

    Raises:
        BadInput: as `parity.spark.compare`.
        UsageError: two DataFrames without a key.
    """
    frame, told, counts = _with_days(frames[0], names.day), {}, None
    if len(frames) > 1:
        if not names.keys:
            raise UsageError("two DataFrames need a key, as rows have no place on Spark: name it")
        told["new"] = Column(names.candidate, sources[1])
        sides, of_sides = (frame, frames[1]), (sources[0], sources[1])
        joined = join(sides, names.keys, names.label, names.candidate, of_sides, allow_misses)
        names = names._replace(candidate=joined.candidate, keys=())
        frame, counts = joined.df, joined.counts
    return Compared(compare_columns(frame, names, margin, verified, sources[0], told), counts)


def _with_days(frame: DataFrame, day: Optional[str]) -> DataFrame:
    """With days in the column of days where it had moments, in Spark's time zone."""
    if day is None or not dict(frame.dtypes).get(day, "").startswith("timestamp"):
        return frame
    return frame.withColumn(day, frame[day].cast("date"))
