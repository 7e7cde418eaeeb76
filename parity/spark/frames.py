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
    baselines: int = 1,
) -> Compared:
    """`parity.spark.compare`.

    Args:
        frames: one, or the baseline's, the candidate's, and those of further training runs, the
            baseline's before the candidate's; each with its side's column of scores.
        sources: their names in messages.
        allow_misses: leave out rows whose key one side lacks, instead of refusing them.
        baselines: how many of the frames are the baseline's.

    Raises:
        BadInput: as `parity.spark.compare`.
        UsageError: several DataFrames without a key.
    """
    frame = _with_days(frames[0], names.day)
    if len(frames) == 1:
        return Compared(compare_columns(frame, names, margin, verified, sources[0]), None)
    if not names.keys:
        raise UsageError("several DataFrames need a key, as rows have no place on Spark: name it")
    counts, columns, told = None, [], {}
    for place, (other, source) in enumerate(zip(frames[1:], sources[1:]), 1):
        score = names.baseline if 1 < place <= baselines else names.candidate
        pair = (sources[0], source)
        joined = join((frame, other), names.keys, names.label, score, pair, allow_misses)
        frame, counts = joined.df, counts or joined.counts
        columns.append(joined.candidate)
        told["new" if place == 1 else f"run{place}"] = Column(score, source)
    candidate, *runs = columns
    split = baselines - 1
    names = names._replace(
        candidate=candidate, keys=(), runs=(tuple(runs[:split]), tuple(runs[split:]))
    )
    return Compared(compare_columns(frame, names, margin, verified, sources[0], told), counts)


def _with_days(frame: DataFrame, day: Optional[str]) -> DataFrame:
    """With days in the column of days where it had moments, in Spark's time zone."""
    if day is None or not dict(frame.dtypes).get(day, "").startswith("timestamp"):
        return frame
    return frame.withColumn(day, frame[day].cast("date"))
