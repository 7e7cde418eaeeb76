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

from typing import Any, Iterable, Optional

from parity.inputs.checks import check_margin
from parity.result import Comparison
from parity.verified import Record, read_record
from semisync.common.extras import extra

__all__ = ["compare"]


def compare(
    df: Any,
    label: str,
    baseline: str,
    candidate: str,
    *,
    key: Optional[str] = None,
    clusters: Optional[str] = None,
    slices: Iterable[str] = (),
    day: Optional[str] = None,
    weights: Optional[str] = None,
    margin: float = 5e-4,
    verified: Optional[Record] = None,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Args:
        df: a pyspark.sql.DataFrame, one row per label; it is read once and kept meanwhile.
        label: its column of labels, 0 or 1.
        baseline, candidate: its columns of scores, finite, the higher the likelier a 1.
        key: a column that names each row once, which is checked.
        clusters: a column of what rows share that vary together, such as the user.
        slices: columns within each value of which the models are compared as well.
        day: a column of days, compared one by one as well.
        weights: a column of sample weights >= 0; rows of weight 0 are left out.
        margin, verified: as for `parity.compare`.

    Returns:
        A Comparison, as `parity.compare` gives it of the same rows; what it lacks is said in
        `unavailable`.

    Raises:
        BadInput: a column is not as above; the message names it.
        UsageError: the margin is out of range.
        MissingExtra: without pyspark.

    Examples:
        found = parity.spark.compare(
            df, "y", "old", "new", key="id", slices=["country"], day="day"
        )
    """
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    with extra("spark", "to compare a DataFrame"):
        from parity.spark.given import Names
        from parity.spark.whole import compare_columns
    names = Names(
        label=label,
        baseline=baseline,
        candidate=candidate,
        key=key,
        clusters=clusters,
        weights=weights,
        slices=tuple(slices),
        day=day,
    )
    return compare_columns(df, names, margin, record)
