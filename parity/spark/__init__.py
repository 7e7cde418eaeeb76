"""The comparison where the scores are: rows of a Spark DataFrame, with the figures of `parity`.

    parity.spark.compare(df, "label", "old", "new", key="id", clusters="user") -> Comparison

1. The columns are checked in one pass and kept (parity.spark.given).
2. Each model's scores are sorted by ranges, and running sums of both classes give every row its
   placement (parity.spark.ranks).
3. Sums over rows, and over clusters, give the evidence and the figures, to which the code of
   `parity.compare` gives the verdict (parity.spark.spreads, figures, differences, parts).

Everything is operations of DataFrames: rows stay on the executors, which need no Python, and an
executor that is lost has its part computed again. Sums of doubles are added in another order than
on one machine, so figures agree to about 1e-14; counts and unweighted AUCs are the same numbers.

Importing the package needs no Spark.
"""

from typing import Any, Iterable, Mapping, Optional, Sequence, Tuple, Union

from parity.inputs.checks import check_margin
from parity.inputs.rows import of_sides
from parity.result import Comparison
from parity.runs import check_runs
from parity.verified import Record, read_record
from semisync.common.errors import UsageError
from semisync.common.extras import extra

__all__ = ["compare"]

_ONE, _TWO = ("the DataFrame",), ("the baseline's DataFrame", "the candidate's DataFrame")


def compare(
    df: Any,
    label: str,
    baseline: Union[str, Sequence[str]],
    candidate: Union[None, str, Sequence[str]] = None,
    *,
    key: Union[None, str, Iterable[str]] = None,
    clusters: Optional[str] = None,
    slices: Iterable[str] = (),
    day: Optional[str] = None,
    weights: Optional[str] = None,
    logits: Iterable[str] = (),
    fill: Optional[Mapping[str, Any]] = None,
    allow_misses: bool = False,
    seed_sd: Optional[float] = None,
    margin: float = 5e-4,
    verified: Optional[Record] = None,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Args:
        df: a pyspark.sql.DataFrame, one row per label; it is read once and kept meanwhile. In a
            tuple of two, the first has labels and the baseline's scores, the second the
            candidate's.
        label: its column of labels, 0 or 1.
        baseline, candidate: its columns of scores, finite, the higher the likelier a 1; in two
            DataFrames the candidate's has the baseline's name unless given. Several columns of one
            DataFrame are training runs, compared as `parity.compare_runs` does.
        key: a column, or columns, that name each row once, which is checked; two DataFrames are
            joined by them.
        clusters: a column with the key of rows that vary together, such as the user.
        slices: columns within each value of which the models are compared as well.
        day: a column of days or moments, compared day by day as well.
        weights: a column of sample weights >= 0; rows of weight 0 are left out.
        logits: "baseline", "candidate" or both, whose scores are logits.
        fill: by column, the fill of missing values of clusters, day or a slice.
        allow_misses: leave out rows whose key is in one DataFrame only, instead of refusing them.
        seed_sd: as for `parity.compare_runs`.
        margin, verified: as for `parity.compare`.

    Returns:
        A Comparison, as `parity.compare` gives it of the same rows; missing figures are named in
        `unavailable`.

    Raises:
        BadInput: a column is not as above; the message names it.
        UsageError: the margin is out of range, two DataFrames have no key, or runs are in two.
        MissingExtra: without pyspark.

    Examples:
        found = parity.spark.compare(
            df, "y", "old", "new", key="id", slices=["country"], day="day"
        )
    """
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    frames: Tuple[Any, ...] = tuple(df) if isinstance(df, (tuple, list)) else (df,)
    if not 1 <= len(frames) <= 2:
        raise UsageError(f"{len(frames)} DataFrames are given; one, or two to be joined")
    if candidate is None and len(frames) == 1:
        raise UsageError("candidate must name the DataFrame's column of the candidate's scores")
    old, new = (
        (names,) if isinstance(names, str) else tuple(names)
        for names in (baseline, baseline if candidate is None else candidate)
    )
    if len(old) + len(new) > 2:
        if len(frames) > 1:
            raise UsageError("training runs are columns of one DataFrame here; join them first")
        check_runs(len(old), len(new), seed_sd)
    with extra("spark", "to compare a DataFrame"):
        from parity.spark.frames import compare_frames
        from parity.spark.given import Names
    names = Names(
        label=label,
        baseline=old[0],
        candidate=new[0],
        keys=(key,) if isinstance(key, str) else tuple(key or ()),
        clusters=clusters,
        weights=weights,
        slices=tuple(slices),
        day=day,
        logits=of_sides(logits),
        fills=tuple((fill or {}).items()),
        runs=(old[1:], new[1:]),
        seed_sd=seed_sd,
    )
    sources = _ONE if len(frames) == 1 else _TWO
    return compare_frames(frames, names, sources, margin, record, allow_misses).comparison
