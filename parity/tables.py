"""`parity.compare`: columns as arrays, or a table of any library, or two of them.

The rows of a table are read as those of a file are (parity.io.readers): the same checks, joins and
messages. A Spark DataFrame is compared where it is (parity.spark).
"""

import dataclasses
import os
from typing import Any, Dict, Iterable, Mapping, Optional, Union

from parity import comparison, spark
from parity.inputs.checks import check_margin
from parity.result import Comparison
from parity.stats.strata import compare_days, compare_slices
from parity.verified import Record
from semisync.common.errors import UsageError

_SIDES = ("the baseline's table", "the candidate's table")


def compare(
    labels: Any,
    baseline: Any,
    candidate: Any = None,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
    verified: Optional[Record] = None,
    *,
    logits: Iterable[str] = (),
    label: Optional[str] = None,
    key: Union[None, str, Iterable[str]] = None,
    group: Optional[str] = None,
    weight: Optional[str] = None,
    slices: Iterable[str] = (),
    day: Optional[str] = None,
    fill: Optional[Mapping[str, str]] = None,
    allow_misses: bool = False,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Takes columns, or with `label` a table: pandas, polars, pyarrow, a DuckDB relation, a mapping of
    columns, a Spark DataFrame, or the path of a data set. In a tuple of two, the first has the
    label and the baseline's scores, the second the candidate's; without `key` their rows are
    matched by place.

    Args:
        labels: (n,) 0 or 1, at least two rows of each; with `label` the table, or both tables.
        baseline: (n,) finite scores of the model to match, the higher the likelier a 1; with
            `label` their column, as the next ones.
        candidate: (n,) finite scores of the model in question, for the same rows; of two tables the
            baseline's name unless given.
        margin: the largest difference in AUC that does not matter, from 1e-9 to below 1.
        clusters: (n,) the key of rows that vary together, such as the user; numbers or strings. Of
            a table it is `group`.
        weights: (n,) sample weights >= 0; rows of weight 0 are left out. Of a table it is `weight`.
        verified: the output of `semisync verify --json` on the candidate's conversion, as a path or
            a mapping: it stands for the rows that it takes to exclude rare faults.
        logits: "baseline", "candidate" or both, whose scores are logits: ranked as they are, with
            the log loss of softplus, and shown as probabilities.
        label: the table's column of labels.
        key: its column, or columns, that name each row once in either table.
        group: its column of clusters.
        weight: its column of weights.
        slices: its columns within each value of which the models are compared as well.
        day: its column of days or moments, compared day by day as well.
        fill: by column, the fill of missing values of group, day or a slice.
        allow_misses: leave out rows whose key is in one table only, instead of refusing them.

    Returns:
        A Comparison; its `verdict` is EQUIVALENT, NOT_EQUIVALENT or INCONCLUSIVE.

    Raises:
        BadInput: a column is not as above; the message names it and the first row at fault.
        UsageError: the margin is out of range, `logits` names another side, or arguments of
            columns and tables are mixed.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate, margin=0.02)
        >>> comparison.verdict
        <Verdict.EQUIVALENT: 'EQUIVALENT'>
        >>> import pandas
        >>> table = pandas.DataFrame({"y": labels, "old": baseline, "new": candidate})
        >>> found = parity.compare(table, label="y", baseline="old", candidate="new", margin=0.02)
        >>> found.delta == comparison.delta
        True
    """
    columns: Dict[str, Any] = {"key": key, "group": group, "weight": weight, "day": day}
    columns.update(fill=fill, slices=tuple(slices), allow_misses=allow_misses)
    if label is None:
        given = [name for name, value in columns.items() if value]
        if given or isinstance(baseline, str):
            raise UsageError(
                f"{'baseline' if not given else given[0]} names a column of a table, whose labels "
                "label= must name"
            )
        return comparison.compare(
            labels, baseline, candidate, margin, clusters, weights, verified, logits
        )
    if clusters is not None or weights is not None:
        raise UsageError("of a table clusters are named by group=, and weights by weight=")
    check_margin(margin)
    columns["logits"] = logits
    return _of_tables(labels, label, baseline, candidate, columns, margin, verified)


def _of_tables(
    tables: Any,
    label: str,
    baseline: str,
    candidate: Optional[str],
    columns: Dict[str, Any],
    margin: float,
    verified: Optional[Record],
) -> Comparison:
    given = tuple(tables) if isinstance(tables, (tuple, list)) else (tables,)
    if not 1 <= len(given) <= 2:
        raise UsageError(f"{len(given)} tables are given; one, or the baseline's and candidate's")
    key = columns["key"]
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    if candidate is None:
        if len(given) == 1:
            raise UsageError("candidate= must name the table's column of the candidate's scores")
        candidate = baseline
    # By the type's name: pyspark need not be installed.
    if any(type(table).__module__.startswith("pyspark.") for table in given):
        return spark.compare(
            given,
            label,
            baseline,
            candidate,
            key=keys,
            clusters=columns["group"],
            slices=columns["slices"],
            day=columns["day"],
            weights=columns["weight"],
            logits=columns["logits"],
            fill=columns["fill"],
            allow_misses=columns["allow_misses"],
            margin=margin,
            verified=verified,
        )

    from parity.io.readers import ColumnNames, read_one, read_two

    names = ColumnNames(
        label,
        baseline,
        candidate,
        key=keys,
        group=columns["group"],
        weight=columns["weight"],
        parts=tuple(dict.fromkeys([*columns["slices"], *filter(None, [columns["day"]])])),
        day=columns["day"],
        fills=tuple((columns["fill"] or {}).items()),
    )
    if len(given) == 1:
        sample = read_one(_source(given[0], "the table", names), names)
    else:
        old, new = (_source(table, name, names) for table, name in zip(given, _SIDES))
        sample = read_two(old, new, names, columns["allow_misses"])
    found = comparison.compare(
        sample.labels,
        sample.baseline,
        sample.candidate,
        margin,
        sample.clusters,
        sample.weights,
        verified,
        columns["logits"],
    )
    return with_parts(found, sample, columns["day"], columns["slices"])


def _source(table: Any, name: str, names: Any) -> Any:
    """A path as it is, anything else as a `Frame`."""
    from parity.inputs.frames import to_frame

    if isinstance(table, (str, os.PathLike)):
        return os.fspath(table)
    # Rows matched by place: any column that both tables have may show that the order differs.
    return to_frame(table, name, names.all, every=not names.keys and name in _SIDES)


def with_parts(found: Comparison, sample: Any, day: Optional[str], slices: Iterable[str]) -> Any:
    """The comparison of a `parity.io.readers.Sample` with its days, its slices and its warnings."""
    columns = (sample.labels, sample.baseline, sample.candidate)
    more = (found.margin, sample.clusters, sample.weights)
    days = None if day is None else compare_days(*columns, sample.parts[day], *more)
    return dataclasses.replace(
        found,
        days=days,
        slices=tuple(
            (name, compare_slices(*columns, sample.parts[name], *more)) for name in slices
        ),
        warnings=(*sample.warnings, *found.warnings),
    )
