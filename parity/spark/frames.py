"""DataFrames as they are given: one with both models' scores, or one of each, to be joined."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from parity.inputs.checks import Column
from parity.io.join import refuse_misses, refuse_no_match
from parity.result import Comparison
from parity.spark.given import Names, check_key, column_of, field_of, together
from parity.spark.whole import compare_columns
from parity.verified import Verified
from semisync.common.errors import BadInput, UsageError


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
        frame, counts = joined.df, counts or joined.counts  # of the first candidate's
        columns.append(joined.candidate)
        told["new" if place == 1 else f"run{place}"] = Column(score, source)
    candidate, *runs = columns
    split = baselines - 1
    names = names._replace(
        candidate=candidate, keys=(), runs=(tuple(runs[:split]), tuple(runs[split:]))
    )
    return Compared(compare_columns(frame, names, margin, verified, sources[0], told), counts)


def _with_days(frame: DataFrame, day: Optional[str]) -> DataFrame:
    """The DataFrame with days in place of moments in its column of days, in Spark's time zone."""
    if day is None or not dict(frame.dtypes).get(day, "").startswith("timestamp"):
        return frame
    return frame.withColumn(day, frame[day].cast("date"))


class _Joined(NamedTuple):
    """The joined rows: the baseline's columns, and the candidate's scores."""

    df: DataFrame
    candidate: str  # the column of the candidate's scores
    counts: Dict[str, int]  # rows matched, and those of either side whose key the other lacks


def join(
    sides: Sequence[DataFrame],
    keys: Sequence[str],
    label: str,
    score: str,
    sources: Tuple[str, str],
    allow_misses: bool,
) -> _Joined:
    """Joins the candidate's scores to the baseline's rows.

    Args:
        sides: the baseline's DataFrame and the candidate's.
        label: a column of the baseline's; where the candidate has it too, it must agree.
        score: the candidate's column of scores.
        sources: the sides' names in messages.
        allow_misses: leave out rows without a partner instead of refusing them.

    Raises:
        BadInput: a missing column, duplicate keys, misses unless allowed, and labels that disagree.
    """
    columns = [[Column(key, source) for key in keys] for source in sources]
    names = [f"_key{i}" for i in range(len(keys))]
    pairs = [_alike(sides, pair) for pair in zip(*columns)]
    held = {"_score": column_of(sides[1], Column(score, sources[1]))}
    if label in sides[1].columns:
        held["_label"] = column_of(sides[1], Column(label, sources[1])).cast("double")
    ours = column_of(sides[0], Column(label, sources[0]))
    old = sides[0].withColumns({name: pair[0] for name, pair in zip(names, pairs)})
    held.update((name, pair[1]) for name, pair in zip(names, pairs))
    new = sides[1].select(*(value.alias(name) for name, value in held.items()))
    for frame, of_side in zip((old, new), columns):
        check_key(frame, names, of_side)
    counts, differ = _counts(old, new, names, ours.cast("double") if "_label" in held else None)
    ends = together(columns[0]), together(columns[1])
    if not counts["matched"]:
        refuse_no_match(0, (_first(old, names, ends[0]), _first(new, names, ends[1])), ends)
    if not allow_misses:
        refuse_misses(counts["only_baseline"], counts["only_candidate"], ends)
    if differ:
        raise BadInput(f"the labels of {differ:,} joined rows disagree; is the key right?")
    candidate = score
    while candidate in sides[0].columns:
        candidate = "candidate_" + candidate
    joined = old.join(new.withColumnRenamed("_score", candidate), names)
    joined = joined.drop(*names, "_label")
    return _Joined(joined, candidate, counts)


def _first(frame: DataFrame, names: List[str], column: Column) -> object:
    """The least of the keys, for a message. Raises BadInput where there is none."""
    key = frame.agg(F.min(F.struct(*names))).collect()[0][0]
    if key is None:
        raise BadInput(f"{column.file} has no rows; at least one row of each class is needed")
    return key[0] if len(key) == 1 else tuple(key)


def _alike(sides: Sequence[DataFrame], columns: Sequence[Column]) -> Tuple[Expression, Expression]:
    """A key's column of both sides, as text where one is text and the other whole numbers or
    dates."""
    kinds = [field_of(frame, column).dataType for frame, column in zip(sides, columns)]
    first, second = (column_of(frame, column) for frame, column in zip(sides, columns))
    if kinds[0] == kinds[1] or all(isinstance(kind, T.IntegralType) for kind in kinds):
        return first, second
    for kind, column in zip(kinds, columns):
        if not isinstance(kind, (T.StringType, T.IntegralType, T.DateType)):
            raise BadInput(
                f"{column} holds {kind.simpleString()}, which the other side's keys cannot be "
                "compared with"
            )
    return first.cast("string"), second.cast("string")


def _counts(
    old: DataFrame, new: DataFrame, names: List[str], label: Optional[Expression]
) -> Tuple[Dict[str, int], int]:
    """How many rows' keys are in both or one, and how many joined rows' labels disagree."""
    ours = old.select(
        *names, F.lit(1).alias("_old"), *([] if label is None else [label.alias("_ours")])
    )
    theirs = new.withColumn("_new", F.lit(1)).drop("_score")
    both, old_is, new_is = ours.join(theirs, names, "full"), F.col("_old"), F.col("_new")
    differ = F.lit(False)
    if label is not None:
        differ = (F.col("_ours") == 1) != (F.col("_label") == 1)
    conditions = {
        "matched": old_is.isNotNull() & new_is.isNotNull(),
        "only_baseline": new_is.isNull(),
        "only_candidate": old_is.isNull(),
        "differ": differ,
    }
    amounts = [F.count(F.when(where, 1)).alias(name) for name, where in conditions.items()]
    (told,) = both.agg(*amounts).collect()
    counts = told.asDict()
    return counts, counts.pop("differ")
