"""A DataFrame's columns, checked as `parity.inputs.checks` has it, and their figures from one pass.

The rows that are left have weight. Their columns:

    p               1 of a positive, else 0
    old, new        the scores, double
    run2, run3      those of further training runs
    w               the weight, double, 1.0 without weights
    cluster         where rows come in clusters
    part0, part1    days and slices
"""

import contextlib
import itertools
import math
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from pyspark import StorageLevel
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from parity.inputs.checks import LARGEST_SCORE, LARGEST_WEIGHT, Column, refuse_label
from parity.io.columns import FILL
from parity.io.join import Repeated, refuse_repeated
from parity.notes import Extent
from parity.spark import scores as scale
from parity.spark.scores import SIDES, number_of, score_of
from parity.spark.session import tasks_for
from semisync.common.errors import BadInput, UsageError

ENDS = (0.001, 0.999)  # shares of the rows that the outermost ranges end at
_ACCURACY = 10_000  # of the approximate quantiles that divide the scores into ranges
_MOST_RANGES = 4_000
_FILLED = ("cluster", "part")  # roles of columns that a value can be given for
_RANGES_PER_TASK = 4  # so that a task with a range of many ties has fewer others


class Names(NamedTuple):
    """The names of a DataFrame's columns, by role."""

    label: str
    baseline: str
    candidate: str
    keys: Tuple[str, ...] = ()  # name each row once
    clusters: Optional[str] = None
    weights: Optional[str] = None
    slices: Tuple[str, ...] = ()
    day: Optional[str] = None
    logits: scale.Logits = (False, False)  # whether the scores of either side are
    fills: Tuple[Tuple[str, Any], ...] = ()  # column: fill of missing values
    runs: Tuple[Tuple[str, ...], Tuple[str, ...]] = ((), ())  # further scores of either side
    seed_sd: Optional[float] = None  # of `parity.compare_runs`

    @property
    def several(self) -> bool:
        """Whether a side has several training runs."""
        return any(self.runs)

    @property
    def parts(self) -> Tuple[str, ...]:
        """Days and slices, once each."""
        return tuple(dict.fromkeys([*self.slices, *([self.day] if self.day else [])]))


class Given(NamedTuple):
    """Checked rows and the figures of all of them; classes come negatives first."""

    rows: DataFrame
    parts: Dict[str, str]  # column of `rows` by name
    weighted: bool
    clustered: bool
    counts: Tuple[int, int]
    masses: Tuple[float, float]  # sums of weights
    squares: Tuple[float, float]  # sums of their squares
    extents: Tuple[Extent, Extent]  # of either model's scores
    source: str  # the DataFrame's name in messages
    ranges: Dict[str, List[float]]  # edges, rising, that divide old, new, apart, logit evenly
    logits: scale.Logits  # whether the scores of either side are
    runs: Tuple[Tuple[str, ...], Tuple[str, ...]]  # columns of scores, of either side

    @property
    def total(self) -> int:
        """Rows with weight."""
        return sum(self.counts)

    def probabilities(self, *sides: int) -> bool:
        """Whether all scores of the models have a log loss: inside (0, 1), or logits."""
        return all(
            self.logits[m] or (self.extents[m].low > 0 and self.extents[m].high < 1)
            for m in sides or (0, 1)
        )

    def on_one_scale(self, side: str) -> Expression:
        """The scores of a side, which rank and can be compared with the other's."""
        return scale.on_one_scale(self.logits, side, self.within_0_to_1(SIDES.index(side)))

    def within_0_to_1(self, model: int) -> bool:
        """Whether the scores of a model are probabilities, 0 and 1 among them."""
        return self.extents[model].low >= 0 and self.extents[model].high <= 1


@contextlib.contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Computes rows once, and keeps them on the executors' disks: one partition may fill memory."""
    held = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield held
    finally:
        held.unpersist()


@contextlib.contextmanager
def given(df: DataFrame, names: Names, source: str, told: Mapping[str, Column]) -> Iterator[Given]:
    """The checked rows, kept within the block.

    Args:
        source: the DataFrame's name in messages.
        told: {column of `rows`: its name in messages} for those that other DataFrames brought.

    Raises:
        BadInput: a column is not as above; the message names it.
    """
    columns = {
        role: Column(name, source) for role, name in _roles(names).items() if name is not None
    }
    fills = dict(names.fills)
    chosen = [_chosen(df, role, at, fills.get(at.name)) for role, at in columns.items()]
    at = {**columns, **told}
    with kept(df.select(*chosen)) as raw:
        found = _told(raw, at)
        _check(found, at)
        if names.keys:
            keys = [f"key{i}" for i in range(len(names.keys))]
            check_key(raw, keys, [at[key] for key in keys])
        rows = raw.where(_has_weight(at)).select(
            (F.col("label") == 1).cast("int").alias("p"),
            *(_plain_zero(role).alias(role) for role in at if _of_scores(role)),
            (F.col("weight") if "weight" in at else F.lit(1.0)).alias("w"),
            *(role for role in at if role == "cluster" or role.startswith("part")),
        )
        with tasks_for(df.sparkSession, found["rows"]) as tasks:
            yield _summed(rows, names, at, tasks)


def _roles(names: Names) -> Dict[str, Optional[str]]:
    return {
        "label": names.label,
        "old": names.baseline,
        "new": names.candidate,
        "cluster": names.clusters,
        "weight": names.weights,
        **{f"key{i}": name for i, name in enumerate(names.keys)},
        **{f"part{i}": name for i, name in enumerate(names.parts)},
        **{f"run{i}": name for i, name in enumerate(itertools.chain(*names.runs), 2)},
    }


def _of_scores(role: str) -> bool:
    return role in SIDES or role.startswith("run")


def _chosen(df: DataFrame, role: str, column: Column, fill: Any) -> Expression:
    """A column under the name of its role; numbers as double."""
    expression, kind = column_of(df, column), field_of(df, column).dataType
    if role in ("label", "weight") or _of_scores(role):
        if role == "label" and isinstance(kind, T.BooleanType):
            return expression.cast("int").cast("double").alias(role)
        if _of_scores(role):
            return score_of(df, expression, kind, column).alias(role)
        return number_of(expression, kind, column).alias(role)
    if not isinstance(kind, T.AtomicType):
        raise BadInput(f"{column} holds {kind.simpleString()}; numbers, text or dates are expected")
    if fill is not None:
        expression = _filled(df, expression, kind, column, fill)
    return expression.alias(role)


def _filled(df: DataFrame, expression: Expression, kind: Any, column: Column, fill: Any) -> Any:
    """A column with missing values and nan filled, in its own type."""
    value = F.lit(fill).try_cast(kind)
    (found,) = df.sparkSession.range(1).select(value).collect()
    if found[0] is None:
        raise UsageError(
            f"{column} holds {kind.simpleString()}; {fill!r} cannot fill what is missing"
        )
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        expression = F.nanvl(expression, F.lit(None).cast(kind))
    return F.coalesce(expression, value)


def field_of(df: DataFrame, column: Column) -> T.StructField:
    """A column's name and type; raises BadInput if there is none, or several."""
    count = df.columns.count(column.name)
    if count > 1:
        raise BadInput(f"{column.file} has {count} columns {column.name!r}; one is expected")
    if not count:
        raise BadInput(
            f"{column.file} has no column {column.name!r}; it has: {', '.join(df.columns)}"
        )
    return df.schema[df.columns.index(column.name)]


def column_of(df: DataFrame, column: Column) -> Expression:
    """A column, whatever its name has in it. Raises: as `field_of`."""
    return F.col("`" + field_of(df, column).name.replace("`", "``") + "`")


def _count(condition: Expression) -> Expression:
    # A sum over no rows is null.
    return F.coalesce(F.sum(condition.cast("long")), F.lit(0))


def _unsound(role: str) -> Expression:
    return F.isnan(role) | (F.abs(role) == math.inf)


def _told(raw: DataFrame, at: Dict[str, Column]) -> Row:
    """The figures that the checks need, in one pass."""
    label = F.col("label")
    sums = [F.count("*").alias("rows")]
    sums += [_count(F.isnull(role)).alias(f"{role}_missing") for role in at]
    sums += [_count(label == value).alias(f"label{value}") for value in (-1, 0, 1)]
    sums.append(F.max(F.when(~label.isin(-1, 0, 1), label)).alias("label_other"))
    for side in filter(_of_scores, at):
        sums.append(_count(_unsound(side)).alias(f"{side}_unsound"))
        sums.append(F.max(F.abs(side)).alias(f"{side}_largest"))
        for value in (0, 1):
            of_class = F.when((label == 1).cast("int") == value, F.col(side))
            sums += [F.min(of_class).alias(f"{side}_min{value}")]
            sums += [F.max(of_class).alias(f"{side}_max{value}")]
    for role in at:
        if role == "weight":
            weight = F.col(role)
            extreme = (weight > LARGEST_WEIGHT) | ((weight < 1 / LARGEST_WEIGHT) & (weight > 0))
            sums += [_count(_unsound(role)).alias("weight_unsound"), F.min(role).alias("weight")]
            sums += [F.max(F.when(extreme, weight)).alias("weight_extreme")]
            sums += [_count((weight > 0) & (label == 1)).alias("heavy1")]
            sums += [_count((weight > 0) & (label != 1)).alias("heavy0")]
        elif isinstance(raw.schema[role].dataType, T.FractionalType) and not _of_scores(role):
            sums.append(_count(F.isnan(role)).alias(f"{role}_nan"))
    (told,) = raw.agg(*sums).collect()
    return told


def _check(told: Row, at: Dict[str, Column]) -> None:
    """Raises: BadInput, naming the column."""
    label = at["label"]
    if not told["rows"]:
        raise BadInput(f"{label.file} has no rows; at least one row of each class is needed")
    for role, column in at.items():
        missing = told[f"{role}_missing"]
        if missing or told.asDict().get(f"{role}_nan"):
            raise BadInput(
                f"{column} has no value in {missing or told[f'{role}_nan']:,} of "
                f"{told['rows']:,} rows; every row needs one" + FILL * role.startswith(_FILLED)
            )
    if told["label_other"] is not None or (told["label-1"] and told["label0"]):
        odd = -1.0 if told["label_other"] is None else told["label_other"]
        raise BadInput(f"{label} holds {odd:g}; a label must be 0 or 1, or all be -1 or 1")
    if told["label1"] in (0, told["rows"]):
        raise BadInput(
            f"{label}: all {told['rows']:,} labels are {int(told['label1'] > 0)}; an AUC needs "
            "rows of both classes"
        )
    for side in filter(_of_scores, at):
        _check_scores(told, side, at[side])
    if "weight" in at:
        _check_weights(told, at["weight"])


def _check_scores(told: Row, side: str, column: Column) -> None:
    if told[f"{side}_unsound"]:
        raise BadInput(
            f"{column} is NaN or infinite in {told[f'{side}_unsound']:,} rows; a score must be "
            "finite"
        )
    if told[f"{side}_largest"] > LARGEST_SCORE:
        raise BadInput(
            f"{column} holds {told[f'{side}_largest']:g}; scores to compare are expected to lie "
            f"within +-{LARGEST_SCORE:g}"
        )
    refuse_label(
        column, *((told[f"{side}_min{value}"], told[f"{side}_max{value}"]) for value in (0, 1))
    )


def _check_weights(told: Row, column: Column) -> None:
    if told["weight_unsound"]:
        raise BadInput(
            f"{column} is NaN or infinite in {told['weight_unsound']:,} rows; a weight must be "
            "finite"
        )
    if told["weight"] < 0:
        raise BadInput(f"{column} holds {told['weight']:g}; a weight must not be negative")
    if told["weight_extreme"] is not None:
        raise BadInput(
            f"{column} holds {told['weight_extreme']:g}; a weight must be 0 or between "
            f"{1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        )
    for value in (1, 0):
        if not told[f"heavy{value}"]:
            raise BadInput(f"{column}: every row with label {value} has weight 0")


def check_key(rows: DataFrame, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raises BadInput unless the columns `names`, in messages `columns`, name each row once."""
    for name, column in zip(names, columns):
        kind = rows.schema[name].dataType
        if isinstance(kind, T.FractionalType):
            raise BadInput(
                f"{column} holds {kind.simpleString()}, which cannot name every row; write keys as "
                "whole numbers or as text"
            )
    counts = rows.groupBy(*names).agg(F.count("*").alias("times"))
    times = F.col("times")
    (told,) = counts.agg(
        *(F.sum(F.when(F.isnull(name), times)).alias(f"{name}_missing") for name in names),
        F.sum(times - 1).alias("surplus"),
        F.min(F.when(times > 1, F.struct(*names, "times"))).alias("first"),
    ).collect()
    for name, column in zip(names, columns):
        missing = told[f"{name}_missing"]
        if missing:
            raise BadInput(f"{column} has no value in {missing:,} rows; every row needs one")
    if told["surplus"]:
        *key, count = told["first"]
        first = Repeated(told["surplus"], key[0] if len(key) == 1 else tuple(key), count)
        refuse_repeated(first, together(columns))


def together(columns: Sequence[Column]) -> Column:
    """A key's columns as one, for messages."""
    return columns[0]._replace(name=", ".join(column.name for column in columns))


def _plain_zero(side: str) -> Expression:
    """The score, whose two zeros are one."""
    return F.when(F.col(side) == 0, F.lit(0.0)).otherwise(F.col(side))


def _has_weight(at: Dict[str, Column]) -> Expression:
    return F.col("weight") > 0 if "weight" in at else F.lit(True)


def _summed(rows: DataFrame, names: Names, at: Dict[str, Column], tasks: int) -> Given:
    """The checked rows with their sums, and with ranges of about as many rows each."""
    positive, weight = F.col("p"), F.col("w")
    sums = [
        F.sum(positive.cast("long")).alias("p1"),
        F.sum((1 - positive).cast("long")).alias("p0"),
    ]
    for value in (0, 1):
        mass = F.when(positive == value, weight)
        sums += [F.sum(mass).alias(f"m{value}"), F.sum(mass * mass).alias(f"s{value}")]
    for side in SIDES:
        sums += [F.min(side).alias(f"{side}_low"), F.max(side).alias(f"{side}_high")]
        sums += [_count(F.col(side) == edge).alias(f"{side}{edge}") for edge in (0, 1)]
    count = max(2, min(_RANGES_PER_TASK * tasks, _MOST_RANGES))
    shares = sorted({*ENDS, *(i / count for i in range(1, count))})
    divided = {side: F.col(side) for side in at if _of_scores(side)}
    # The logit of a probability of 0 or 1 is infinite.
    inside = F.lit(True)
    for side in itertools.compress(SIDES, (not given for given in names.logits)):
        inside &= (F.col(side) > 0) & (F.col(side) < 1)
    divided["apart"] = F.abs(scale.apart(names.logits))
    divided["logit"] = F.when(inside, F.abs(scale.logits_apart(names.logits)))
    sums += [
        F.percentile_approx(value, shares, _ACCURACY).alias(f"{name}_edges")
        for name, value in divided.items()
    ]
    (told,) = rows.agg(*sums).collect()
    runs, split = [role for role in divided if role.startswith("run")], len(names.runs[0])
    old, new = (
        Extent(*(told[f"{side}{what}"] for what in ("_low", "_high", "0", "1"))) for side in SIDES
    )
    return Given(
        rows=rows,
        parts={name: f"part{i}" for i, name in enumerate(names.parts)},
        weighted=names.weights is not None,
        clustered=names.clusters is not None,
        counts=(told["p0"], told["p1"]),
        masses=(told["m0"], told["m1"]),
        squares=(told["s0"], told["s1"]),
        extents=(old, new),
        source=str(at["label"].file),
        ranges={name: sorted(set(told[f"{name}_edges"] or ())) for name in divided},
        logits=names.logits,
        runs=(("old", *runs[:split]), ("new", *runs[split:])),
    )
